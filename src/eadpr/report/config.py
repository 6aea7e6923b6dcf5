"""Settings of the stage `report`, and the rows and comparisons that follow from them."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from eadpr.evaluation.config import BM25
from eadpr.evaluation.kinds import KindName
from eadpr.runtime.section import Section
from eadpr.supervision.config import Strategy

UNTRAINED = "untrained"  # the arm without a step
Rows = Mapping[str, Sequence[str]]  # a row of the tables -> its trainings, which are files of outcomes
Pairs = Sequence[tuple[str, str]]  # (row, the row it is compared with)


class ReportInputs(NamedTuple):
    """Folders, the table `evidence`, and the file `accuracy` that `evaluate_evidence` wrote."""

    records: Path
    positives: Path
    evidence: Path
    distractors: Path
    negatives: Path
    examples: Path
    training: Path
    pairs: Path
    outcomes: Path
    accuracy: Path


class Sampling(Section):
    """The resampling behind intervals and tests."""

    resamples: int = Field(ge=100)
    confidence: float = Field(gt=0, lt=1)
    seed: int = Field(ge=0)


class Report(Sampling):
    """`columns`, `differences` and the lists of `by`, one per kind of question, name metrics of `evaluate`; `configs`
    checks them. `compare` maps an arm to the row or rows it is compared with; all others have the `baseline`."""

    columns: list[str] = Field(min_length=1)
    differences: list[str] = Field(min_length=1)
    by: dict[KindName, list[str]]
    baseline: str
    compare: dict[str, str | list[str]]

    def references(self, name: str) -> list[str]:
        rows = self.compare.get(name, [])
        return [rows] if isinstance(rows, str) else rows


class MeasuredBy(Section):
    """Arms or rankings with their trainings, measured `by` generators of near-duplicates or readers."""

    by: list[str]
    trainings: dict[str, list[str]]


class ReportArms(Report):
    """The config of the stage, to which `configs` adds the active arms.

    `trainings` maps each arm, in order, to its trainings: itself, then those with other seeds. `fused` names rankings
    made of two, or of paths; `one_hop` maps a ranking of paths to the arm of its examples. `of_paths` names readers of
    paths. `strategy`, `annotated`: probe's. `bases` are the first encoders' models, `seeds` those of the trainings.
    """

    trainings: dict[str, list[str]] = Field(min_length=1)
    fused: list[str]
    one_hop: dict[str, str]
    robustness: MeasuredBy
    reading: MeasuredBy
    of_paths: list[str]
    strategy: Strategy
    annotated: bool
    bases: list[str]
    seeds: list[int]

    @property
    def rows(self) -> Rows:
        """BM25, the untrained encoder, the other arms and the fused rankings."""
        untrained = {name: arms for name, arms in self.trainings.items() if name == UNTRAINED}
        return {BM25: [BM25]} | untrained | self.trainings | {name: [name] for name in self.fused}

    def pair(self, names: Sequence[str], rows: Collection[str], baseline: str | None = None) -> Pairs:
        """Pair each name with others of `rows`, no two of them twice: those of `compare`, else the baseline."""
        pairs: Pairs = []
        for name in names:
            references = [row for row in self.references(name) if row in rows] or [baseline or self.baseline]
            for row in references:
                repeated = (row, name) in pairs if row in self.references(name) else name in self.references(row)
                if row in rows and row != name and not repeated:
                    pairs.append((name, row))
        return pairs

    @property
    def comparisons(self) -> Pairs:
        return self.pair([*self.trainings, *self.fused], self.rows)
