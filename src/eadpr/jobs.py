"""Long work in shards, each a file that depends on its number only, so that who makes it decides none of its bytes:
this process, threads of it on GPUs, or with EADPR_RAY set the actors of a Ray Data job, on this machine or on several
that share their files. Ray starts an actor again that died; a shard takes its name when it is whole."""

import itertools
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

import torch

from eadpr import cluster, machine, parallel
from eadpr.machine import Machine

Work = Callable[[int], Iterator[int]]  # makes a shard by its number; gives the units done (passages, pairs) as it goes
WORKERS = {"cpu": 1, "cuda": 3}  # on a GPU, one tokenises or writes while another computes
# What `machine.settle` sets: an actor imports torch, which reads them, before it can settle.
SETTLED = (
    "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "CUBLAS_WORKSPACE_CONFIG",
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM",
)  # fmt: skip
CARRIED = (*SETTLED, "HF_HOME", "HF_HUB_OFFLINE")
RESTARTS = 10  # of one actor; Ray's default is without end, also for a shard that kills whoever makes it


def run(make: Callable[[], Work], numbers: Sequence[int], hardware: Machine, cards: int = 0) -> Iterator[int]:
    """Make the shards `numbers`; gives units done as they are done. `make` is called once by every worker, on the first
    `cards` GPUs of this machine, with 0 on all."""
    workers = WORKERS[machine.device()]
    if os.environ.get(cluster.ADDRESS):
        yield from _on_ray(make, numbers, hardware, workers)
    elif workers == 1:
        work = make()
        for number in numbers:
            yield from work(number)
    else:
        cards = cards or torch.cuda.device_count()
        yield from parallel.ahead(_each_thread(make, cards), numbers, threads=workers * max(cards, 1))


def _each_thread(make: Callable[[], Work], cards: int) -> Callable[[int], int]:
    """Work of its own for every thread, since tokenizers keep their settings; the libraries that load models are used
    by one thread at a time. The threads take turns in choosing a card, which torch keeps for each thread."""
    mine, loading, turns = threading.local(), threading.Lock(), itertools.count()

    def whole(number: int) -> int:
        if not hasattr(mine, "work"):
            with loading:
                if cards:
                    torch.cuda.set_device(next(turns) % cards)
                mine.work = make()
        return sum(mine.work(number))

    return whole


def _on_ray(make: Callable[[], Work], numbers: Sequence[int], hardware: Machine, workers: int) -> Iterator[int]:
    """As `run`; every actor has the threads of `hardware`, or every GPU `workers` actors.

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
