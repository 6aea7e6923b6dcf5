"""The commit that a table or page was measured at, and settings that differ from it and from the defaults."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eadpr.settings.yaml import COLLECTIONS, PARAMS, flatten, load, of_collection, read_yaml
from eadpr.studies.overrides import make_overrides

# Code and settings. What a run writes, dvc.lock, metrics and tables, may differ from the commit.
SOURCES = ("src", "stages", "dvc.yaml", "params.yaml", "data/studies", "data/collections")
DEFAULTS = Path("src/eadpr/settings/defaults.yaml")
FOLDER = "FOLDER"  # stands for a path of this machine
_ABSOLUTE = re.compile(r"(?<![\w.:/~-])/[\w./+-]+")


def commit() -> str:
    """Return the commit of this checkout, with a word where code or settings differ from it."""
    return git("rev-parse", "--short=7", "HEAD") + _uncommitted()


def _uncommitted() -> str:
    return " with uncommitted changes" if git("status", "--porcelain", "--", *SOURCES) else ""


def describe_run(collection: str) -> dict[str, Any]:
    """Return the last commit that changed code or settings, its date, and what differs from it and from the defaults.

    A commit of results is none, so that a clone of it makes the same page, where the code was committed before the run.
    """
    over, defaults = flatten(read_yaml(PARAMS)), flatten(read_yaml(DEFAULTS))
    local = flatten(of_collection(load(PARAMS), collection)["settings"])
    differing = {key: over[key] for key in over if defaults.get(key, over[key]) != over[key]}
    differing |= {key: value for key, value in local.items() if (defaults | over).get(key) != value}
    changed = hide_paths([f"{key}={value}" for key, value in differing.items()])
    if not (last := last_change()):
        return {"changed": changed}
    run = {"commit": last[0] + _uncommitted(), "date": last[1]}
    return run | {"edits": hide_paths([*edits(collection)]), "changed": changed}


def last_change() -> list[str]:
    """Return name and date of the last commit that changed code or settings, nothing without one."""
    try:
        return git("log", "-1", "--abbrev=7", "--format=%h %cs", "--", *SOURCES).split()
    except (ValueError, FileNotFoundError):  # no commit, or no git
        return []


def edits(collection: str) -> Iterator[str]:
    """Yield the settings that differ from the commit, none where there is no commit."""
    if not last_change():
        return
    for path in (PARAMS, DEFAULTS, COLLECTIONS / f"{collection}.yaml"):
        if not git("ls-tree", "HEAD", "--", str(path)):  # not committed yet
            continue
        try:
            committed = read_yaml(path, git("show", f"HEAD:./{path}"))
        except ValueError:  # a mistake that was committed, and perhaps mended since
            yield f"{path}, which cannot be read there"
            continue
        changes = make_overrides(committed, read_yaml(path))
        place = "" if path == PARAMS else f"{path}:"
        yield from (place + change.removeprefix("++") for change in changes)


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"a table names its commit; run in a checkout. git {arguments[0]} says: {done.stderr.strip()}")
    return done.stdout.strip()


def hide_paths(words: Sequence[str]) -> list[str]:
    """Return command line words with FOLDER for every absolute path."""
    return [_ABSOLUTE.sub(FOLDER, word) for word in words]
