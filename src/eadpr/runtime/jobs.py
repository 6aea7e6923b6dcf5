"""Long work in independent pieces, done by this process, by threads on its GPUs, or by a Ray cluster (EADPR_RAY).

Results do not depend on who does a piece.
"""

import copy
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import torch
from torch.nn import Module, Parameter

from eadpr.runtime import machine, parallel, ray_cluster
from eadpr.runtime.machine import WORKERS
from eadpr.runtime.ray_cluster import ADDRESS, Work

Loaded = TypeVar("Loaded")  # a model, or a tuple or list of models and tokenizers
Piece = TypeVar("Piece")
Result = TypeVar("Result")


def make_shards(
    load: Callable[[], Loaded], make: Callable[[Loaded], Work], numbers: Sequence[int], hardware: machine.Machine
) -> Iterator[int]:
    """Make the shards with these numbers and yield counts of finished units (passages, pairs). `load` and `make`
    prepare a worker as in `map_pieces`; with Ray each actor calls both."""
    if os.environ.get(ADDRESS):
        yield from ray_cluster.make_shards(os.environ[ADDRESS], lambda: make(load()), numbers, hardware)
    elif WORKERS[machine.device()] * len(machine.devices()) == 1:
        work = make(load())
        for number in numbers:
            yield from work(number)
    else:

        def make_counting(loaded: Loaded) -> Callable[[int], int]:
            work = make(loaded)
            return lambda number: sum(work(number))

        yield from map_pieces(load, make_counting, numbers)


def map_pieces(
    load: Callable[[], Loaded], make: Callable[[Loaded], Callable[[Piece], Result]], pieces: Iterable[Piece]
) -> Iterator[Result]:
    """Yield the results in order, by WORKERS on each GPU or on the CPU. Each GPU calls `load`, each worker `make`."""
    devices = machine.devices()
    threads = WORKERS[machine.device()] * len(devices)
    if threads == 1:
        yield from map(make(load()), pieces)
        return
    worker, loading, turns, loaded = threading.local(), threading.Lock(), itertools.count(), {}

    def work(piece: Piece) -> Result:
        if not hasattr(worker, "work"):
            with loading:
                card = next(turns) % len(devices)
                if devices[card] != "cpu":
                    torch.cuda.set_device(devices[card])
                if card not in loaded:
                    loaded[card] = load()
                # Use in a thread changes a tokenizer, and may change a module: all but the weights is copied.
                weights = {id(weight): weight for weight in _weights(loaded[card])}
                worker.work = make(copy.deepcopy(loaded[card], weights))
        return worker.work(piece)

    yield from parallel.ahead(work, pieces, threads=threads)


def _weights(loaded: object) -> Iterator[Parameter]:
    if isinstance(loaded, Module):
        yield from loaded.parameters()
    elif isinstance(loaded, tuple | list):
        for part in loaded:
            yield from _weights(part)
