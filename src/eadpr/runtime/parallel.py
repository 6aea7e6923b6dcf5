"""Independent pieces of work side by side, one thread of torch for each.

The operations of a small encoder are too short to be shared among threads: pieces side by side take less time than one
after the other with all threads in each operation. What a piece computes does not depend on how many there are.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

from eadpr.runtime import machine

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def spread(work: Callable[[Piece], Result], pieces: Iterable[Piece], *, together: bool = True) -> Iterator[Result]:
    """`work` of each piece, in their order, on as many threads as torch has here; gradient, inference and autocast mode
    are the caller's.

    One after the other on a GPU, and where not `together`: what draws from torch's generator, whose numbers would go to
    whichever piece came first. At most one result more than there are threads is held.
    """
    threads = torch.get_num_threads()
    if threads == 1 or not together or machine.device() != "cpu":
        yield from map(work, pieces)
        return
    modes = _modes()

    def alone(piece: Piece) -> Result:
        with ExitStack() as stack:
            for mode in modes:
                stack.enter_context(mode())
            return work(piece)

    torch.set_num_threads(1)  # this thread's own work between the pieces must not take their cores
    try:
        yield from _in_order(_pool(threads), alone, pieces, threads)
    finally:
        torch.set_num_threads(threads)


def ahead(make: Callable[[Piece], Result], pieces: Iterable[Piece], *, threads: int) -> Iterator[Result]:
    """`make` of each piece, in their order; up to `threads` of them are made while the caller works on an earlier one,
    with 0 each when it is asked for."""
    if not threads:
        yield from map(make, pieces)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from _in_order(pool, make, pieces, threads)


def _in_order(
    pool: ThreadPoolExecutor, make: Callable[[Piece], Result], pieces: Iterable[Piece], most: int
) -> Iterator[Result]:
    """At most one result more than `most` is held."""
    waiting = deque()
    for piece in pieces:
        waiting.append(pool.submit(make, piece))
        if len(waiting) > most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def add_gradients(
    parameters: Sequence[Tensor],
    of: Callable[[Piece], Sequence[Tensor | None]],
    pieces: Iterable[Piece],
    *,
    together: bool = True,
) -> None:
    """Add to the gradients of `parameters` those that `of` each piece gives, None for none; in the order of the pieces,
    so that the sums have the same bytes every time."""
    for found in spread(of, pieces, together=together):
        for parameter, gradient in zip(parameters, found, strict=True):
            if gradient is not None:
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)


def uses_dropout(module: torch.nn.Module) -> bool:
    """Whether a forward pass while training draws from torch's generator: whether any dropout is above 0.

    Some models keep the share of a dropout in an attribute and not in a module.
    """
    return any(
        "dropout" in name.lower() + type(part).__name__.lower() and isinstance(value, float) and value > 0
        for part in module.modules()
        for name, value in vars(part).items()
    )


def _modes() -> list[Callable]:
    """Contexts with which another thread gets this one's modes."""
    grad, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    low, dtype = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    return [
        lambda: torch.inference_mode(inference),
        lambda: torch.set_grad_enabled(grad),
        lambda: torch.autocast("cpu", dtype=dtype, enabled=low),
    ]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "torch", initializer=torch.set_num_threads, initargs=(1,))
