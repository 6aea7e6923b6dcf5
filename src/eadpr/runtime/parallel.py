"""Independent pieces of work side by side, each on one thread of torch.

The operations of a small encoder are too short to be split among threads: pieces side by side take less time than
pieces in turn with all threads in each operation. The number of threads does not change the results.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

from eadpr.runtime import machine

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def spread(work: Callable[[Piece], Result], pieces: Iterable[Piece], *, together: bool = True) -> Iterator[Result]:
    """Do `work` on each piece on as many threads as torch has, in the caller's modes, and yield the results in order.

    On a GPU, or unless `together`, pieces run in turn, as work that draws from torch's generator must.
    """
    threads = torch.get_num_threads()
    if threads == 1 or not together or machine.device() != "cpu":
        yield from map(work, pieces)
        return
    grad, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    low, dtype = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")

    def in_modes(piece: Piece) -> Result:
        with (
            torch.inference_mode(inference),
            torch.set_grad_enabled(grad),
            torch.autocast("cpu", dtype=dtype, enabled=low),
        ):
            return work(piece)

    torch.set_num_threads(1)  # this thread's own work between the pieces must not take their cores
    try:
        yield from _in_order(_pool(threads), in_modes, pieces, threads)
    finally:
        torch.set_num_threads(threads)


def ahead(make: Callable[[Piece], Result], pieces: Iterable[Piece], *, threads: int) -> Iterator[Result]:
    """Yield `make` of each piece in order; up to `threads`, perhaps 0, are prepared while the caller works on one."""
    if not threads:
        yield from map(make, pieces)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from _in_order(pool, make, pieces, threads)


def _in_order(
    pool: ThreadPoolExecutor, make: Callable[[Piece], Result], pieces: Iterable[Piece], most: int
) -> Iterator[Result]:
    waiting = deque()
    for piece in pieces:
        waiting.append(pool.submit(make, piece))
        if len(waiting) > most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def add_gradients(
    parameters: Sequence[Tensor],
    gradients: Callable[[Piece], Sequence[Tensor | None]],
    pieces: Iterable[Piece],
    *,
    together: bool = True,
) -> None:
    """Add the `gradients` of each piece, one or None a parameter, to `parameters`, in order, for the same bytes."""
    for piece_gradients in spread(gradients, pieces, together=together):
        for parameter, gradient in zip(parameters, piece_gradients, strict=True):
            if gradient is not None:
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)


def uses_dropout(module: torch.nn.Module) -> bool:
    """Check for a dropout above 0, in a module or an attribute of one: then training draws from torch's generator."""
    return any(
        "dropout" in name.lower() + type(part).__name__.lower() and isinstance(value, float) and value > 0
        for part in module.modules()
        for name, value in vars(part).items()
    )


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "torch", initializer=torch.set_num_threads, initargs=(1,))
