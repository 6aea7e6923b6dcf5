"""The commit that a table was measured at."""

import re
import subprocess
from collections.abc import Sequence

# Code and settings. What a run writes, dvc.lock, metrics and tables, may differ from the commit.
SOURCES = ("src", "stages", "dvc.yaml", "params.yaml", "data/studies", "data/collections")
FOLDER = "FOLDER"  # stands for a path of this machine
_ABSOLUTE = re.compile(r"(?<![\w.:/~-])/[\w./+-]+")


def commit() -> str:
    """Return the commit of this checkout, with a word where code or settings differ from it."""
    name = git("rev-parse", "--short=7", "HEAD")
    return f"{name} with uncommitted changes" if git("status", "--porcelain", "--", *SOURCES) else name


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"a table names its commit; run in a checkout. git {arguments[0]} says: {done.stderr.strip()}")
    return done.stdout.strip()


def hide_paths(words: Sequence[str]) -> list[str]:
    """Return command line words with FOLDER for every absolute path."""
    return [_ABSOLUTE.sub(FOLDER, word) for word in words]
