"""Inputs of the stage `explore`."""

from pathlib import Path
from typing import NamedTuple


class ExploreInputs(NamedTuple):
    """Folders, the table `evidence`, and the folder `report` that the stage of that name wrote."""

    records: Path
    positives: Path
    evidence: Path
    distractors: Path
    pairs: Path
    rankings: Path
    outcomes: Path
    report: Path
