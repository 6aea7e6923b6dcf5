"""Inputs and settings of the stage `explore`; the stage `configs` names the rankings."""

from pathlib import Path
from typing import NamedTuple

from eadpr.runtime.section import Section


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


class Explore(Section):
    """`rankings` are all that the pipeline makes."""

    rankings: list[str]
