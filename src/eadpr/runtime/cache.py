"""Work kept between runs outside of DVC's outputs: checkpoints, finished shards, Lucene indexes, vectors.

The folder is `$EADPR_CACHE`, by default `.cache/eadpr` beside the repository's git folder, also for experiments that
DVC runs in a copy of the tree. Everything in it but `endpoint` and `seq2seq` can be deleted at any time; it changes
speed, never bytes. What language models answered costs time or money, and another answer makes other bytes.
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
def _beside_git() -> Path:
    command = ["git", "rev-parse", "--path-format=absolute", "--git-common-dir"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):  # no git installed, or no repository
        return Path.cwd() / ".cache" / "eadpr"
    repository, *_ = str(Path(found.stdout.strip()).parent).split("/.dvc/tmp/exps/")
    return Path(repository) / ".cache" / "eadpr"


def root() -> Path:
    """Made for its owner alone, as it holds what users asked and endpoints answered; make it yourself to share it."""
    given = os.environ.get("EADPR_CACHE")
    folder = Path(given).absolute() if given else _beside_git()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def fingerprint(*parts: object) -> str:
    """Sixteen hex digits that change with any part; parts are JSON values, hash files with `files.sha256` first."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def code(module: str) -> str:
    """Hash of what a module (its `__file__`) and all of eadpr that it imports do, for the fingerprint of work that it
    keeps. Installed without the repository around it, eadpr is found as well."""
    return fingerprint(stage_code.listed(Path(module).resolve(), Path(__file__).resolve().parents[2]))


@contextmanager
def workspace(kind: str, key: str) -> Iterator[Path]:
    """The folder kept for `key`, locked against other processes for the length of the block. Where one holds it,
    another clone's or one that a killed `dvc` left running, that is said, and this one waits for it."""
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
        folder.mkdir(exist_ok=True)  # who held it may have taken it away
        yield folder


def seal(piece: Path) -> None:
    """Note the checksum of a file or folder that is whole, beside it, for `intact`."""
    files.write_text(_seal(piece), _checksum(piece))


def intact(piece: Path) -> bool:
    """Whether the file or folder lies there as it was sealed. One that does not is named and set aside, as `damaged`;
    one that was not sealed yet is of a killed process, and not taken up."""
    if not piece.exists() or not _seal(piece).exists():
        return False
    if _seal(piece).read_text(encoding="utf-8") == _checksum(piece):
        return True
    set_aside(piece)
    return False


def set_aside(piece: Path) -> None:
    """Keep damaged work under another name, and say so."""
    aside = piece.with_name(f"{piece.name}.damaged")
    files.discard(aside)
    os.replace(piece, aside)
    print(f"{piece} was damaged: it is {aside.name} now, and is made anew", file=sys.stderr, flush=True)


def _checksum(piece: Path) -> str:
    return files.tree_sha256(piece) if piece.is_dir() else files.sha256(piece)


def _seal(piece: Path) -> Path:
    return piece.with_name(f"{piece.name}.sha256")
