"""Writing that leaves nothing unfinished under its final name, JSON, and hashes of contents."""

import glob
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling path to write a file or a folder to; it replaces `path` when the block succeeds.

    It is synced to disk first, so a power cut leaves the earlier version or the new one. Its name holds the process id:
    siblings left by processes that are gone are cleared. An error of a full disk, which names no file, names `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for stale in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        if not is_running(stale.name.split(".")[-2]):
            if ".earlier." in stale.name and not path.exists():
                os.replace(stale, path)  # killed between the two renames below
            discard(stale)
    temporary, earlier = (path.with_name(f".{path.name}.{kind}{os.getpid()}.tmp") for kind in ("", "earlier."))
    discard(temporary)
    try:
        yield temporary
        for part in [*temporary.rglob("*"), temporary]:
            if not part.is_symlink():
                _sync(part)
        if path.exists() and (path.is_dir() or temporary.is_dir()):
            os.replace(path, earlier)  # renamed first: a kill during deletion leaves no part of it under its name
        os.replace(temporary, path)
        _sync(path.parent)
    except OSError as error:
        if error.errno and error.filename is None:  # a full disk
            error.filename = str(path)
        raise
    finally:
        discard(temporary)
        if earlier.exists() and not path.exists():
            os.replace(earlier, path)
        discard(earlier)


def is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except PermissionError:  # it runs as another user
        return True
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    return True


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def discard(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    with replacing(path) as temporary:
        temporary.mkdir()
        yield temporary


def link_or_copy(source: Path, target: Path) -> None:
    """Make a hard link, which costs no disk, or a copy. Nothing may be written through either."""
    try:
        os.link(source, target)
    except OSError:  # another disk, or one that has no hard links
        shutil.copyfile(source, target)


def write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Canonical JSON: sorted keys, two spaces, final newline; NaN is refused."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def check_file(path: Path) -> None:
    """Raise FileNotFoundError for what is not there, or is no file: a pipe would be waited for without end."""
    if not path.is_file():
        problem = "is no file" if path.exists() else "does not exist"
        raise FileNotFoundError(f"{path} {problem}; run `dvc repro` to make it")


def read_json(path: Path, *keys: str) -> Any:
    """Read JSON that a stage wrote; raises FileNotFoundError or ValueError, also where it lacks one of these keys."""
    check_file(path)
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:  # brackets in brackets
        raise ValueError(f"{path} is not JSON ({error}); run `dvc repro` to rebuild it") from error
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            raise ValueError(f"{path} has no {key!r}; run `dvc repro` to rebuild it")
    return value


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_sha256(path: Path) -> str:
    """Hash a file, or the relative names and contents of all files below a folder."""
    if not path.is_dir():
        return sha256(path)
    digest = hashlib.sha256()
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        digest.update(f"{file.relative_to(path).as_posix()}\0{sha256(file)}\n".encode())
    return digest.hexdigest()
