"""Records of runs: time, memory, libraries and machine of each command. No hash covers them, since they always differ.

There is one JSON file per command line in `$EADPR_CACHE/runs`, of its last successful run.
"""

import itertools
import json
import os
import platform
import resource
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from eadpr.runtime import cache, files

LIBRARIES = ("torch", "transformers", "tokenizers", "numpy", "pyarrow", "pyserini", "faiss-cpu", "faiss-gpu")
KIB_PER_GIB = 2**20


def record(command: Sequence[str], seconds: float) -> None:
    """Write the record of this process; `command` is the stage's name and its options.

    Where it cannot be written, print that and go on: the stage has done its work.
    """
    values = {
        "command": list(command),
        "config": _config(command),
        "seconds": round(seconds, 1),
        "memory_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_GIB, 3),
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        **_gpu(),
        "libraries": {name: number for name in LIBRARIES if (number := _version(name))},
        "machine": {"system": platform.platform(), "cores": os.cpu_count(), "python": platform.python_version()},
    }
    try:
        files.write_json(cache.root() / "runs" / f"{cache.fingerprint(list(command))}.json", values)
    except OSError as error:
        print(f"what the run took is not kept ({error})", file=sys.stderr, flush=True)


def recorded() -> Iterator[dict]:
    """Read all records, the oldest first."""
    for path in sorted((cache.root() / "runs").glob("*.json"), key=lambda path: path.stat().st_mtime_ns):
        yield json.loads(path.read_text(encoding="utf-8"))


def _config(command: Sequence[str]) -> str | None:
    """Hash the config file, because the path may hold another one later."""
    path = Path(dict(itertools.pairwise(command)).get("--config", ""))
    return files.sha256(path) if path.is_file() else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _gpu() -> dict[str, object]:
    """Return the GPU's name and the peak memory of tensors; None without a GPU or torch."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return {"gpu": None, "gpu_memory_gib": None}
    return {
        "gpu": torch.cuda.get_device_name(),
        "gpu_memory_gib": round(torch.cuda.max_memory_allocated() / 2**30, 3),
    }
