"""Long work in pieces that need nothing of each other, so that who does one decides none of its bytes: this process, or
threads of it on GPUs. Shards, each a file that depends on its number only, may also be made by the actors of a Ray Data
job (EADPR_RAY), on this machine or on several that share their files. Ray starts an actor again that died; a shard
takes its name when it is whole."""

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

Loaded = TypeVar("Loaded")  # a model, or several in tuples or lists, with what else they need
Piece = TypeVar("Piece")
Result = TypeVar("Result")
Work = Callable[[int], Iterator[int]]  # makes a shard by its number; gives the units done (passages, pairs) as it goes
WORKERS = {"cpu": 1, "cuda": 3}  # on a GPU, one tokenises or writes while another computes
# What `machine.settle` sets: an actor imports torch, which reads them, before it can settle.
SETTLED = (
    "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "CUBLAS_WORKSPACE_CONFIG",
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM",
)  # fmt: skip
CARRIED = (*SETTLED, "HF_HOME", "HF_HUB_OFFLINE", "EADPR_CACHE", "EADPR_MEMORY")
RESTARTS = 10  # of one actor; Ray's default is without end, also for a shard that kills whoever makes it


def make_shards(
    load: Callable[[], Loaded],
    make: Callable[[Loaded], Work],
    numbers: Sequence[int],
    hardware: Machine,
    cards: int | None = None,
) -> Iterator[int]:
    """Make the shards `numbers`, each by the work of a worker (`map_pieces`); gives units done as they are done."""
    workers = WORKERS[machine.device()]
    if os.environ.get(cluster.ADDRESS):
        yield from _on_ray(lambda: make(load()), numbers, hardware, workers)
    elif workers * len(machine.devices()[:cards]) == 1:
        work = make(load())
        for number in numbers:
            yield from work(number)
    else:

        def whole(loaded: Loaded) -> Callable[[int], int]:
            work = make(loaded)
            return lambda number: sum(work(number))

        yield from map_pieces(load, whole, numbers, cards)


def map_pieces(
    load: Callable[[], Loaded],
    make: Callable[[Loaded], Callable[[Piece], Result]],
    pieces: Iterable[Piece],
    cards: int | None = None,
) -> Iterator[Result]:
    """What the workers give for the pieces, in their order. `load` is called once for each of the first `cards` GPUs,
    with None for all, and `make` by each of their workers; on a CPU there is one. Models are loaded by one thread at a
    time. torch keeps the card of each thread."""
    devices = machine.devices()[:cards]
    threads = WORKERS[machine.device()] * len(devices)
    if threads == 1:
        yield from map(make(load()), pieces)
        return
    mine, loading, turns, loaded = threading.local(), threading.Lock(), itertools.count(), {}

    def work(piece: Piece) -> Result:
        if not hasattr(mine, "work"):
            with loading:
                card = next(turns) % len(devices)
                if devices[card] != "cpu":
                    torch.cuda.set_device(devices[card])
                if card not in loaded:
                    loaded[card] = load()
                mine.work = make(_twin(loaded[card]))
        return mine.work(piece)

    yield from parallel.ahead(work, pieces, threads=threads)


def _twin(loaded: Loaded) -> Loaded:
    """Another with the same weights: a thread's use changes its tokenizer, and may change a module."""
    return copy.deepcopy(loaded, {id(weight): weight for weight in _weights(loaded)})


def _weights(loaded: object) -> Iterator[Parameter]:
    if isinstance(loaded, Module):
        yield from loaded.parameters()
    elif isinstance(loaded, tuple | list):
        for part in loaded:
            yield from _weights(part)


def _on_ray(make: Callable[[], Work], numbers: Sequence[int], hardware: Machine, workers: int) -> Iterator[int]:
    """As `make_shards`; every actor has the threads of `hardware`, or every GPU `workers` actors.

    Raises ValueError where Ray is missing, where the cluster has no room for an actor, and with the message of a
    ValueError or OSError of an actor.
    """
    os.environ.setdefault("RAY_DATA_LOG_LEVEL", "ERROR")
    carried = {name: os.environ[name] for name in CARRIED if name in os.environ}
    with cluster.joined(os.environ[cluster.ADDRESS], carried) as ray:
        ray.data.DataContext.get_current().enable_progress_bars = False
        needs, most = _needs(ray, hardware, workers)
        rows = ray.data.from_items([{"number": number} for number in numbers], override_num_blocks=len(numbers))
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of max_restarts
            done = rows.map(
                Actor,
                fn_constructor_args=(make, hardware, machine.device(), os.getcwd()),
                compute=ray.data.ActorPoolStrategy(size=min(most, len(numbers)), max_tasks_in_flight_per_actor=1),
                max_restarts=RESTARTS,
                **needs,
            )
        for row in done.iter_rows():
            if row["error"]:
                raise ValueError(row["error"])
            yield row["units"]


class Actor:
    """A worker in a process of its own. The device decides bytes, so it has to be that of the stage."""

    def __init__(self, make: Callable[[], Work], hardware: Machine, device: str, folder: str) -> None:
        self._make, self._hardware, self._device, self._folder = make, hardware, device, folder
        self._work: Work | None = None

    def __call__(self, row: dict[str, int]) -> dict[str, int | str]:
        """An error that a user can mend is a result, since Ray Data makes an exception of its own of any other."""
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


def _needs(ray: ModuleType, hardware: Machine, workers: int) -> tuple[dict[str, float], int]:
    """What an actor takes of the cluster, and how many there is room for."""
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if machine.device() == "cuda":
        needs = {"num_gpus": 1 / workers}
        most = sum(int(found.get("GPU", 0)) * workers for found in machines)
    else:
        needs = {"num_cpus": hardware.threads}
        most = sum(int(found.get("CPU", 0)) // hardware.threads for found in machines)
    if not most:
        raise ValueError(
            f"the Ray cluster at {os.environ[cluster.ADDRESS]} has no room for an actor of {needs}; "
            f"give it more, lower machine.threads, or unset {cluster.ADDRESS}"
        )
    return needs, most
