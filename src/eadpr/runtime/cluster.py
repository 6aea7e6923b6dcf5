"""A Ray cluster: one of this machine, for as long as a command needs it, or one that runs (requirements/ray.txt)."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType

ADDRESS = "EADPR_RAY"  # `local`: a cluster of this machine; else the address of one that this machine is part of


@contextmanager
def joined(address: str, variables: dict[str, str]) -> Iterator[ModuleType]:
    """Ray, connected; `variables` are set for its processes, which import what this one does."""
    if not find_spec("ray"):
        raise ValueError(f"{ADDRESS} is set ({address}), but Ray is not installed; install requirements/ray.txt")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's workers would give way to all else on the machine
    import ray

    variables = variables | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    given = {"include_dashboard": False} if address == "local" else {}
    ray.init(address, runtime_env={"env_vars": variables}, logging_level="warning", log_to_driver=False, **given)
    try:
        yield ray
    finally:
        ray.shutdown()
