"""Long work in independent pieces, done by this process, by threads on its GPUs, or by a Ray cluster (EADPR_RAY).

Results do not depend on who does a piece. Only shards, each a file that depends on its number alone, are made by Ray:
actors on this machine, or on several that share their files. Ray restarts an actor that died; a shard gets its name
when it is complete.
"""

import copy
import itertools
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import TypeVar

import torch
from torch.nn import Module, Parameter

from eadpr.runtime import cluster, machine, parallel
from eadpr.runtime.machine import Machine

Loaded = TypeVar("Loaded")  # a model, or a tuple or list of models and tokenizers
Piece = TypeVar("Piece")
Result = TypeVar("Result")
Work = Callable[[int], Iterator[int]]  # makes a shard by its number and yields counts of finished units
WORKERS = {"cpu": 1, "cuda": 3}  # on a GPU, one tokenises or writes while another computes
# Variables that `machine.settle` sets: an actor imports torch, which reads them, before it can settle.
SETTLED = (
    "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "CUBLAS_WORKSPACE_CONFIG",
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM",
)  # fmt: skip
CARRIED = (*SETTLED, "HF_HOME", "HF_HUB_OFFLINE", "EADPR_CACHE", "EADPR_MEMORY")
RESTARTS = 10  # of an actor; Ray's default is endless, even for a shard that kills every actor


def make_shards(
    load: Callable[[], Loaded],
    make: Callable[[Loaded], Work],
    numbers: Sequence[int],
    hardware: Machine,
    cards: int | None = None,
) -> Iterator[int]:
    """Make the shards with these numbers and yield counts of finished units (passages, pairs).

    `load` and `make` prepare a worker as in `map_pieces`; with Ray each actor calls both.
    """
    workers = WORKERS[machine.device()]
    if os.environ.get(cluster.ADDRESS):
        yield from _on_ray(lambda: make(load()), numbers, hardware, workers)
    elif workers * len(machine.devices()[:cards]) == 1:
        work = make(load())
        for number in numbers:
            yield from work(number)
    else:

        def make_counting(loaded: Loaded) -> Callable[[int], int]:
            work = make(loaded)
            return lambda number: sum(work(number))

        yield from map_pieces(load, make_counting, numbers, cards)


def map_pieces(
    load: Callable[[], Loaded],
    make: Callable[[Loaded], Callable[[Piece], Result]],
    pieces: Iterable[Piece],
    cards: int | None = None,
) -> Iterator[Result]:
    """Yield the results of the pieces in order, by WORKERS on each of the first `cards` GPUs (None for all) or on the
    CPU.

    `load` is called once for each GPU, by one thread at a time, and `make` by each worker. torch remembers the GPU of
    each thread.
    """
    devices = machine.devices()[:cards]
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
                worker.work = make(_twin(loaded[card]))
        return worker.work(piece)

    yield from parallel.ahead(work, pieces, threads=threads)


def _twin(loaded: Loaded) -> Loaded:
    """Copy all but the weights: use in a thread changes a tokenizer, and may change a module."""
    return copy.deepcopy(loaded, {id(weight): weight for weight in _weights(loaded)})


def _weights(loaded: object) -> Iterator[Parameter]:
    if isinstance(loaded, Module):
        yield from loaded.parameters()
    elif isinstance(loaded, tuple | list):
        for part in loaded:
            yield from _weights(part)


def _on_ray(make: Callable[[], Work], numbers: Sequence[int], hardware: Machine, workers: int) -> Iterator[int]:
    """Make shards by actors, each with the threads of `hardware`, or `workers` of them on each GPU.

    Raises ValueError where Ray is missing, where the cluster has no room for an actor, and with the message of a
    ValueError or OSError in an actor.
    """
    os.environ.setdefault("RAY_DATA_LOG_LEVEL", "ERROR")
    carried = {name: os.environ[name] for name in CARRIED if name in os.environ}
    with cluster.joined(os.environ[cluster.ADDRESS], carried) as ray:
        ray.data.DataContext.get_current().enable_progress_bars = False
        resources, actors = _find_room(ray, hardware, workers)
        rows = ray.data.from_items([{"number": number} for number in numbers], override_num_blocks=len(numbers))
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of max_restarts
            done = rows.map(
                Actor,
                fn_constructor_args=(make, hardware, machine.device(), os.getcwd()),
                compute=ray.data.ActorPoolStrategy(size=min(actors, len(numbers)), max_tasks_in_flight_per_actor=1),
                max_restarts=RESTARTS,
                **resources,
            )
        for row in done.iter_rows():
            if row["error"]:
                raise ValueError(row["error"])
            yield row["units"]


class Actor:
    """A worker in another process, on the same kind of device as the stage, because the device decides bytes."""

    def __init__(self, make: Callable[[], Work], hardware: Machine, device: str, folder: str) -> None:
        self._make, self._hardware, self._device, self._folder = make, hardware, device, folder
        self._work: Work | None = None

    def __call__(self, row: dict[str, int]) -> dict[str, int | str]:
        """Make a shard; an error that a user can mend is returned, since Ray Data wraps exceptions in its own."""
        try:
            self._work = self._work or self._start()
            return {"units": sum(self._work(int(row["number"]))), "error": ""}
        except (ValueError, OSError) as error:
            return {"units": 0, "error": str(error)}

    def _start(self) -> Work:
        machine.settle(self._hardware)
        if machine.device() != self._device:
            raise ValueError(
                f"the stage runs on {self._device}, an actor of the Ray cluster on {machine.device()}; "
                f"take machines of one kind, or unset {cluster.ADDRESS}"
            )
        os.chdir(self._folder)
        return self._make()


def _find_room(ray: ModuleType, hardware: Machine, workers: int) -> tuple[dict[str, float], int]:
    """Return the resources that an actor takes and the number of actors that the cluster has room for."""
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if machine.device() == "cuda":
        resources = {"num_gpus": 1 / workers}
        actors = sum(int(available.get("GPU", 0)) * workers for available in machines)
    else:
        resources = {"num_cpus": hardware.threads}
        actors = sum(int(available.get("CPU", 0)) // hardware.threads for available in machines)
    if not actors:
        raise ValueError(
            f"the Ray cluster at {os.environ[cluster.ADDRESS]} has no room for an actor of {resources}; "
            f"give it more, lower machine.threads, or unset {cluster.ADDRESS}"
        )
    return resources, actors
