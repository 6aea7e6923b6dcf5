"""Commands with a Ray cluster of their own."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.repository import ROOT


@contextmanager
def variables(folder: Path) -> Iterator[dict[str, str]]:
    """An environment for one cluster, of which no process is left behind. Ray's sockets need a short path."""
    session = tempfile.mkdtemp(dir="/tmp")
    given = {
        "EADPR_RAY": "local", "EADPR_CACHE": str(folder / "cache"), "RAY_TMPDIR": session, "RAY_AUTH_TOKEN": "a" * 32,
    }  # fmt: skip
    try:
        yield given
        wait_for(lambda: not any(session in line for line in commands()))
    finally:
        shutil.rmtree(session)


def on_ray(*command: object, folder: Path) -> subprocess.CompletedProcess:
    with variables(folder) as given:
        command = [sys.executable, *map(str, command)]
        environment = os.environ | given
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def wait_for(true: Callable[[], bool]) -> None:
    """Ray does not wait for all that it has killed."""
    end = time.monotonic() + 180
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def commands() -> list[str]:
    """Those of all processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:  # it has ended
            continue
    return found
