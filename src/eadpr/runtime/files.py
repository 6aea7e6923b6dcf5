"""Writing that leaves nothing unfinished under its final name, JSON, and hashes of contents."""

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
LITTLE = 4096  # bytes that may be free after a write failed for lack of space


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling path to write a file or a folder to; it replaces `path` when the block succeeds.

    It is synced to disk first, so a power cut leaves the earlier version or the new one. Its name holds the process id:
    siblings left by processes that are gone are cleared. An error of a full disk that names no file names `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for stale in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        if _is_running(stale.name.split(".")[-2]):
            continue
        if ".earlier." in stale.name:
            _restore(stale, path)
        else:
            discard(stale)
    temporary, earlier = (path.with_name(f".{path.name}.{kind}{os.getpid()}.tmp") for kind in ("", "earlier."))
    discard(temporary)
    discard(earlier)
    try:
        yield temporary
        _sync_tree(temporary)
        if path.exists() and (path.is_dir() or temporary.is_dir()):
            os.replace(path, earlier)  # renamed first: a kill during deletion leaves no part of it under its name
        os.replace(temporary, path)
        _sync(path.parent)
    except Exception as error:
        if not _is_full_disk(error, path.parent):
            raise
        raise OSError(errno.ENOSPC, "no space left on the disk; free some and run again", str(path)) from error
    finally:
        discard(temporary)
        _restore(earlier, path)


def _restore(earlier: Path, path: Path) -> None:
    """Move the earlier version back where `path` does not exist; otherwise delete it."""
    if earlier.exists() and not path.exists():
        os.replace(earlier, path)
    discard(earlier)


def _is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except PermissionError:  # it runs as another user
        return True
    return True


def _sync_tree(path: Path) -> None:
    for part in [*path.rglob("*"), path]:
        if not part.is_symlink():
            _sync(part)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_full_disk(error: Exception, folder: Path) -> bool:
    """Recognise an error of a full disk that names no file; torch's does not even mention space."""
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
    """Read JSON that a stage wrote; raises ValueError where it is malformed or no object with these keys."""
    rebuild = "run `dvc repro` to make it anew"
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); {rebuild}") from error
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            raise ValueError(f"{path} has no {key!r}; {rebuild}")
    return value


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_sha256(folder: Path) -> str:
    """Hash the relative names and contents of all files below a folder."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{sha256(path)}\n".encode())
    return digest.hexdigest()
