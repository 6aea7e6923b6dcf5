"""Paired comparisons of two arms over the questions that both have outcomes for, and the table of them in a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eadpr import tables
from eadpr.evaluation import tabulate as md
from eadpr.evaluation.config import Report
from eadpr.evaluation.statistics import Interval, holm, paired_bootstrap, paired_randomisation
from eadpr.records import Outcome


class PerQuestion(NamedTuple):
    """One metric of one question set: sums of a question's values and how many values there are (pairs, else 1)."""

    question_ids: list[str]
    sums: NDArray[np.float64]
    counts: NDArray[np.int64]


class Outcomes:
    """The outcomes of an arm's trainings, read once."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._tables = [tables.read(path, Outcome) for path in paths]

    def per_training(self, question_set: str, metric: str) -> list[PerQuestion]:
        return [self._of(table, question_set, metric) for table in self._tables]

    def per_question(self, question_set: str, metric: str) -> PerQuestion:
        """Means over the trainings."""
        return mean(self.per_training(question_set, metric))

    def _of(self, table: pa.Table, question_set: str, metric: str) -> PerQuestion:
        """Questions in the order of the file; empty where the arm has no such metric."""
        found = table.filter(pc.and_(pc.equal(table["question_set"], question_set), pc.equal(table["metric"], metric)))
        place: dict[str, int] = {}
        rows = [place.setdefault(question_id, len(place)) for question_id in found["question_id"].to_pylist()]
        values = found["value"].to_numpy().astype(np.float64)
        sums = np.bincount(rows, weights=values, minlength=len(place)) if rows else np.zeros(0)
        counts = np.bincount(rows, minlength=len(place)) if rows else np.zeros(0, dtype=np.int64)
        return PerQuestion(list(place), sums, counts)


def mean(trainings: Sequence[PerQuestion]) -> PerQuestion:
    """Mean sums of the questions that have as many values in every training; only AA can differ in that."""
    first, *others = trainings
    if not others:
        return first
    values = [dict(zip(t.question_ids, zip(t.sums, t.counts, strict=True), strict=True)) for t in trainings]
    kept = [
        question_id
        for question_id in first.question_ids
        if len({of_training.get(question_id, (0, 0))[1] for of_training in values}) == 1
    ]
    sums = np.array([[of_training[question_id][0] for question_id in kept] for of_training in values])
    counts = np.array([values[0][question_id][1] for question_id in kept], dtype=np.int64)
    return PerQuestion(kept, sums.mean(axis=0), counts)


class Difference(NamedTuple):
    interval: Interval
    p: float  # of the randomisation test


def compare(
    first: PerQuestion, second: PerQuestion, *, resamples: int, seed: int, confidence: float
) -> Difference | None:
    """`first` minus `second` over the questions with as many values on both sides; None where there are none.

    The numbers of values differ only for AA, where arms that truncate differently keep other pairs.
    """
    at = {question_id: i for i, question_id in enumerate(second.question_ids)}
    shared = [(i, at[question_id]) for i, question_id in enumerate(first.question_ids) if question_id in at]
    shared = [(i, j) for i, j in shared if first.counts[i] == second.counts[j]]
    if not shared:
        return None
    i, j = np.array(shared).T
    values = {"first": first.sums[i], "second": second.sums[j], "counts": first.counts[i]}
    return Difference(
        paired_bootstrap(**values, resamples=resamples, seed=seed, confidence=confidence),
        paired_randomisation(**values, resamples=resamples, seed=seed),
    )


class Row(NamedTuple):
    """A label and, for each column, what is compared with what."""

    label: str
    first: Sequence[PerQuestion]
    second: Sequence[PerQuestion]


def rows_of_pairs(
    outcomes: Mapping[str, Outcomes], pairs: Sequence[tuple[str, str]], question_set: str, metrics: Sequence[str]
) -> list[Row]:
    def of(name: str) -> list[PerQuestion]:
        return [outcomes[name].per_question(question_set, metric) for metric in metrics]

    return [Row(f"{name} − {other}", of(name), of(other)) for name, other in pairs]


def compare_row(row: Row, settings: Report) -> list[Difference | None]:
    options = {"resamples": settings.resamples, "seed": settings.seed, "confidence": settings.confidence}
    return [compare(*pair, **options) for pair in zip(row.first, row.second, strict=True)]


def difference_table(rows: Sequence[Row], columns: Sequence[str], settings: Report) -> list[str]:
    """Differences in percentage points beneath what their stars mean; nothing without rows.

    All of the table is one family of Holm's correction, whatever its rows and columns are.
    """
    if not rows:
        return []
    found = [compare_row(row, settings) for row in rows]
    known = [difference.p for of_row in found for difference in of_row if difference]
    level = 1 - settings.confidence
    starred = iter([p < level for p in holm(known)])
    cells = [
        [row.label, *(md.difference(one.interval, starred=next(starred)) if one else md.NONE for one in of_row)]
        for row, of_row in zip(rows, found, strict=True)
    ]
    said = (
        f"Differences in percentage points with {100 * settings.confidence:g} % intervals (paired bootstrap over"
        f" questions, {settings.resamples:,} resamples); * below {level:.2g} in the paired randomisation test, with"
        f" Holm's correction over the table ({len(known)} in all):"
    )
    return [said, md.table(["difference", *columns], cells)]
