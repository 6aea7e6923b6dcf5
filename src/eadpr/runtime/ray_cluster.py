"""Shards made by a Ray cluster (requirements/ray.txt).

Each is a file that depends on its number alone and gets its name when it is complete; Ray restarts an actor that died.
"""

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType

from eadpr.runtime import machine
from eadpr.runtime.machine import WORKERS, Machine

Work = Callable[[int], Iterator[int]]  # makes a shard by its number and yields counts of finished units
ADDRESS = "EADPR_RAY"  # `local` for a cluster of this machine, else the address of one that it belongs to
# Variables that `machine.settle` sets: an actor imports torch, which reads them, before it can settle.
SETTLED = (
    "CUBLAS_WORKSPACE_CONFIG", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY",
)  # fmt: skip
CARRIED = (*SETTLED, "HF_HOME", "HF_HUB_OFFLINE", "EADPR_CACHE", "EADPR_MEMORY")
RESTARTS = 10  # of an actor; Ray's default is endless, even for a shard that kills every actor


def make_shards(address: str, make: Callable[[], Work], numbers: Sequence[int], hardware: Machine) -> Iterator[int]:
    """Make shards by actors, each with the threads of `hardware`, or WORKERS of them on each GPU. Raises ValueError
    where Ray or room for an actor is missing, and the ValueError or OSError of an actor."""
    with connect(address) as ray:
        kind, share = ("GPU", 1 / WORKERS["cuda"]) if machine.device() == "cuda" else ("CPU", hardware.threads)
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        room = sum(int(resources.get(kind, 0) / share) for resources in machines)
        if not room:
            reason = f"the cluster has no room for {share:g} {kind}"
            raise ValueError(f"{ADDRESS}: {reason}; lower machine.threads, or unset it")
        options = {f"num_{kind.lower()}s": share, "max_restarts": RESTARTS, "max_task_retries": RESTARTS}
        remote = ray.remote(**options)(Actor)
        actors = [remote.remote(make, hardware, machine.device(), os.getcwd()) for _ in numbers[:room]]
        try:
            yield from ray.util.ActorPool(actors).map_unordered(lambda actor, n: actor.make.remote(n), numbers)
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, (ValueError, OSError)) else error from error


@contextmanager
def connect(address: str) -> Iterator[ModuleType]:
    """Import Ray and connect to the cluster; its processes import the same code and get the variables CARRIED."""
    if not find_spec("ray"):
        raise ValueError(f"{ADDRESS} is set ({address}), but Ray is not installed; install requirements/ray.txt")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # by default Ray's workers give way to all other processes
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
        machine.settle(hardware)
        os.chdir(folder)
        self._load, self._device = functools.cache(make), device

    def make(self, number: int) -> int:
        """Make a shard and return the number of its units."""
        if machine.device() != self._device:
            raise ValueError(f"an actor of the Ray cluster runs on {machine.device()}, the stage on {self._device}")
        return sum(self._load()(number))
