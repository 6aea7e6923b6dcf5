"""Records of runs: time, memory and versions of each command. No hash covers them, since they always differ.

There is one JSON file per command line in `$EADPR_CACHE/runs`, of its last successful run.
"""

import itertools
import json
import os
import platform
import resource
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from eadpr.runtime import cache, files

KIB_PER_GIB = 2**20


def record(command: Sequence[str], seconds: float) -> None:
    """Write the record of this process; `command` is the stage's name and its options.

    Where it cannot be written, print that and go on: the stage has done its work.
    """
    # The path of a config file may hold another one later.
    config, torch = Path(dict(itertools.pairwise(command)).get("--config", "")), sys.modules.get("torch")
    on_gpu = torch is not None and torch.cuda.is_available()
    values = {
        "command": list(command),
        "config": files.sha256(config) if config.is_file() else None,
        "seconds": round(seconds, 1),
        "memory_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_GIB, 3),
        "gpu": torch.cuda.get_device_name() if on_gpu else None,
        "gpu_memory_gib": round(torch.cuda.max_memory_allocated() / 2**30, 3) if on_gpu else None,
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "libraries": {name: version(name) for name in ("torch", "transformers", "tokenizers", "numpy", "pyarrow")},
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
