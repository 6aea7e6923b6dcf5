"""A forward pass and its graph, held until its gradient is wanted, or made again then (gradient cache)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from eadpr import machine

Pass = Callable[[], Tensor]


def held(work: Pass, *, draws: bool) -> tuple[Tensor, Pass]:
    """The result of `work`, and a function that gives it with its graph."""
    found = work()
    return found.detach(), lambda: found


def cached(work: Pass, *, draws: bool) -> tuple[Tensor, Pass]:
    """As `held`, but the function does the work again, so that no graph waits for it (Gao et al., 2021).

    Work that `draws` from torch's generators draws the same numbers both times.
    """
    before = _state() if draws else []
    with torch.no_grad():
        found = work()

    def again() -> Tensor:
        _restore(before)
        return work()

    return found, again


@contextmanager
def generators_kept() -> Iterator[None]:
    """After the block torch's generators are as they were before it."""
    before = _state()
    try:
        yield
    finally:
        _restore(before)


def _state() -> list[Tensor]:
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if machine.device() == "cuda" else [])]


def _restore(state: list[Tensor]) -> None:
    for restore, saved in zip((torch.set_rng_state, torch.cuda.set_rng_state), state, strict=False):
        restore(saved)
