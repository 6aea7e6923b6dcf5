"""Shards made by the actors of a Ray Data job, on a cluster of this machine or on a running one (requirements/ray.txt).

Ray restarts an actor that died; a shard gets its name when it is complete.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType

from eadpr.runtime import machine
from eadpr.runtime.machine import Machine

ADDRESS = "EADPR_RAY"  # `local` for a cluster of this machine, else the address of one that it belongs to
# Variables that `machine.settle` sets: an actor imports torch, which reads them, before it can settle.
SETTLED = (
    "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "CUBLAS_WORKSPACE_CONFIG",
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM",
)  # fmt: skip
CARRIED = (*SETTLED, "HF_HOME", "HF_HUB_OFFLINE", "EADPR_CACHE", "EADPR_MEMORY")
RESTARTS = 10  # of an actor; Ray's default is endless, even for a shard that kills every actor
Work = Callable[[int], Iterator[int]]  # makes a shard by its number and yields counts of finished units


def make_shards(make: Callable[[], Work], numbers: Sequence[int], hardware: Machine, workers: int) -> Iterator[int]:
    """Make shards by actors, each with the threads of `hardware`, or `workers` of them on each GPU.

    Raises ValueError where Ray is missing, where the cluster has no room for an actor, and with the message of a
    ValueError or OSError in an actor.
    """
    with connect(os.environ[ADDRESS]) as ray:
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


@contextmanager
def connect(address: str) -> Iterator[ModuleType]:
    """Import Ray and connect to the cluster; its processes import the same code and get the variables CARRIED."""
    if not find_spec("ray"):
        raise ValueError(f"{ADDRESS} is set ({address}), but Ray is not installed; install requirements/ray.txt")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # by default Ray's workers give way to all other processes
    os.environ.setdefault("RAY_DATA_LOG_LEVEL", "ERROR")
    import ray

    variables = {name: os.environ[name] for name in CARRIED if name in os.environ}
    variables["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, sys.path))
    options = {"include_dashboard": False} if address == "local" else {}
    ray.init(address, runtime_env={"env_vars": variables}, logging_level="warning", log_to_driver=False, **options)
    try:
        yield ray
    finally:
        ray.shutdown()


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
                f"take machines of one kind, or unset {ADDRESS}"
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
            f"the Ray cluster at {os.environ[ADDRESS]} has no room for an actor of {resources}; "
            f"give it more, lower machine.threads, or unset {ADDRESS}"
        )
    return resources, actors
