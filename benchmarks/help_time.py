"""`--help` of the stage that takes longest for it, against importing the library that prints it."""

import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.runner import ROOT, Comparison, Different, Goal, Side, timed


class Size(NamedTuple):
    stages: int | None  # how many are looked at; None for all
    repeats: int


FULL = Size(stages=None, repeats=3)
QUICK = Size(stages=2, repeats=1)


def comparisons(size: Size, folder: Path) -> list[Comparison]:
    sides = {name: Side(lambda _, name=name: help_of(name)) for name in stages()[: size.stages]}
    seconds = {name: statistics.median(timed(side) for _ in range(size.repeats)) for name, side in sides.items()}
    slowest = max(seconds, key=seconds.__getitem__)
    return [
        Comparison(
            path=f"--help of every stage (slowest of {len(sides)}: {slowest})",
            peer='python -c "import typer"',
            goal=Goal("time", 2),
            unit="run",
            ours=sides[slowest],
            theirs=Side(lambda _: python("-c", "import typer")),
            same=_shows_help,
        )
    ]


def stages() -> list[str]:
    return sorted(path.stem for path in (ROOT / "stages").glob("*.py") if path.stem != "__init__")


def help_of(stage: str) -> str:
    return python("-m", f"stages.{stage}", "--help")


def python(*arguments: str) -> str:
    """What it prints; raises CalledProcessError where it fails."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT)))}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def _shows_help(ours: str, theirs: str) -> str:
    if "Usage" not in ours or theirs:
        raise Different(f"--help printed {ours[:200]!r}, the import {theirs[:200]!r}")
    return "help shown"
