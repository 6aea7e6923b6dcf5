"""Deletion of files that the settings no longer name: a folder that DVC hashes whole must equal a fresh clone's."""

from collections.abc import Collection
from pathlib import Path

from eadpr.runtime import files


def delete_inactive(folder: Path, active: Collection[Path]) -> list[Path]:
    """Delete and return the paths in the folder that are not active and hold nothing active."""
    deleted = []
    for path in sorted(folder.glob("[!.]*")):
        if any(path in file.parents for file in active):
            deleted += delete_inactive(path, active)
        elif path not in active:
            files.discard(path)
            deleted.append(path)
    return deleted
