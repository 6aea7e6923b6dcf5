"""The cache of work between runs that is no output of DVC: checkpoints, finished shards, Lucene indexes, vectors.

The folder is `$EADPR_CACHE`, by default `.cache/eadpr` in the folder that holds `.git`, also for experiments that DVC
runs in a copy of the tree. Everything in it can be deleted at any time, which changes speed and never bytes, except for
`endpoint`: answers of language models cost time or money, and other answers make other bytes.
"""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from eadpr.runtime import files, stage_code


@cache
def _default_root() -> Path:
    command = ["git", "rev-parse", "--path-format=absolute", "--git-common-dir"]
    try:
        folder = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()).parent
    except (FileNotFoundError, subprocess.CalledProcessError):  # no git installed, or no repository
        folder = Path.cwd()
    return Path(str(folder).partition("/.dvc/tmp/exps/")[0]) / ".cache" / "eadpr"


def root() -> Path:
    """Return the cache folder. It is created readable by its owner alone, because it holds users' questions and
    endpoints' answers; create it yourself to share it."""
    configured = os.environ.get("EADPR_CACHE")
    folder = Path(configured).absolute() if configured else _default_root()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"no folder for kept work can be made, set EADPR_CACHE to another ({error})") from error
    return folder


def fingerprint(*parts: object) -> str:
    """Hash JSON values to sixteen hex digits; pass files by their `files.sha256`."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def code(module: str) -> str:
    """Hash the code of a module (its `__file__`) and of all modules of eadpr that it imports, for keys of kept work."""
    return fingerprint(stage_code.listed(Path(module).resolve(), Path(__file__).resolve().parents[2]))


@contextmanager
def workspace(kind: str, key: str) -> Iterator[Path]:
    """Yield the folder of a key, locked during the block. Where another process holds the lock (another clone, or the
    child of a killed `dvc`), print a line and wait for it."""
    folder = root() / kind / key
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{key}.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            print(f"{folder} is in use by process {lock.read()}; waiting for it to end", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(f"{os.getpid()}")
        lock.flush()
        folder.mkdir(exist_ok=True)  # the process that held it may have removed it
        yield folder


def seal(piece: Path) -> None:
    """Write the checksum of a complete file or folder next to it, for `intact`."""
    files.write_text(piece.with_name(f"{piece.name}.sha256"), files.tree_sha256(piece))


def intact(piece: Path) -> bool:
    """Check that a file or folder is as it was sealed; a damaged one becomes NAME.damaged, a kill leaves no seal."""
    sealed = piece.with_name(f"{piece.name}.sha256")
    if not piece.exists() or not sealed.exists():
        return False
    if sealed.read_bytes() == files.tree_sha256(piece).encode():
        return True
    aside = piece.with_name(f"{piece.name}.damaged")
    files.discard(aside)
    files.discard(piece.with_name(f"{piece.name}.sha256"))  # first, so that it is not taken for that of the next piece
    os.replace(piece, aside)
    print(f"{piece} was damaged: it is {aside.name} now, and is made anew", file=sys.stderr, flush=True)
    return False
