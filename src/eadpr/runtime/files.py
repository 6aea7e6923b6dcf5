"""Writing that never leaves something half-made under its final name, and content hashes."""

import errno
import glob
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
LITTLE = 4096  # bytes: what a write that failed for want of space may leave free


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling to write a file or a folder to; it takes the place of `path` when the block succeeds,
    and then lies on the disk, not only in memory: a power cut leaves the earlier one or the new one.

    The sibling's name is this process's own. Those that killed processes left are cleared; one of a process that still
    runs stays. An error of a full disk that names no file names `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        if not _running(left.name.split(".")[-2]):
            _put_back(left, path) if ".earlier." in left.name else discard(left)
    temporary, earlier = (path.with_name(f".{path.name}.{kind}{os.getpid()}.tmp") for kind in ("", "earlier."))
    discard(temporary)
    discard(earlier)
    try:
        yield temporary
        _to_disk(temporary)
        if path.exists() and (path.is_dir() or temporary.is_dir()):
            os.replace(path, earlier)  # whole: a kill while it is deleted leaves no part of it under its name
        os.replace(temporary, path)
        _sync(path.parent)
    except Exception as error:
        if not _for_want_of_space(error, path.parent):
            raise
        raise OSError(errno.ENOSPC, "no space left on the disk; free some and run again", str(path)) from error
    finally:
        discard(temporary)
        _put_back(earlier, path)


def _put_back(earlier: Path, path: Path) -> None:
    """Where nothing has taken its place; else it goes."""
    if earlier.exists() and not path.exists():
        os.replace(earlier, path)
    discard(earlier)


def _running(process: str) -> bool:
    """Whether a process of this machine has that number."""
    try:
        os.kill(int(process), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except PermissionError:  # another user's
        pass
    return True


def _to_disk(path: Path) -> None:
    for part in [*path.rglob("*"), path]:
        if not part.is_symlink():
            _sync(part)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _for_want_of_space(error: Exception, folder: Path) -> bool:
    """Whether the error is one of a full disk that does not name its file; torch's says nothing of space either."""
    if isinstance(error, OSError):
        return error.errno in FULL and error.filename is None
    full = "No space left" in str(error) or shutil.disk_usage(folder).free < LITTLE
    return full and not isinstance(error, ValueError)


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


def write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Canonical JSON: sorted keys, two spaces, final newline; NaN is refused."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path, *keys: str) -> Any:
    """What a stage wrote; ValueError names the file where it is no JSON, or no object with these keys."""
    again = "run `dvc repro` to make it anew"
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); {again}") from error
    for key in keys:
        if not isinstance(found, dict) or key not in found:
            raise ValueError(f"{path} has no {key!r}; {again}")
    return found


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_sha256(folder: Path) -> str:
    """Hash of the relative names and contents of all files below `folder`."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{sha256(path)}\n".encode())
    return digest.hexdigest()
