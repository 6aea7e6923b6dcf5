"""Paired comparisons of two arms over the questions that both have outcomes for."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from eadpr import tables
from eadpr.evaluation.statistics import Interval, paired_bootstrap
from eadpr.records import Outcome


class PerQuestion(NamedTuple):
    """One metric of one question set: sums of a question's values and how many values there are (pairs, else 1)."""

    question_ids: list[str]
    sums: NDArray[np.float64]
    counts: NDArray[np.int64]


class Outcomes:
    """The outcomes of one arm, read once."""

    def __init__(self, path: Path) -> None:
        self._table = tables.read(path, Outcome)

    def per_question(self, question_set: str, metric: str) -> PerQuestion:
        """Questions in the order of the file; empty where the arm has no such metric."""
        keep = pc.and_(pc.equal(self._table["question_set"], question_set), pc.equal(self._table["metric"], metric))
        found = self._table.filter(keep)
        place: dict[str, int] = {}
        rows = [place.setdefault(question_id, len(place)) for question_id in found["question_id"].to_pylist()]
        values = found["value"].to_numpy().astype(np.float64)
        sums = np.bincount(rows, weights=values, minlength=len(place)) if rows else np.zeros(0)
        counts = np.bincount(rows, minlength=len(place)) if rows else np.zeros(0, dtype=np.int64)
        return PerQuestion(list(place), sums, counts)


def compare(
    first: PerQuestion, second: PerQuestion, *, resamples: int, seed: int, confidence: float
) -> Interval | None:
    """`first` minus `second` over the questions with as many values on both sides; None where there are none.

    The numbers of values differ only for AA, where arms that truncate differently keep other pairs.
    """
    at = {question_id: i for i, question_id in enumerate(second.question_ids)}
    shared = [(i, at[question_id]) for i, question_id in enumerate(first.question_ids) if question_id in at]
    shared = [(i, j) for i, j in shared if first.counts[i] == second.counts[j]]
    if not shared:
        return None
    i, j = np.array(shared).T
    return paired_bootstrap(
        first.sums[i],
        second.sums[j],
        counts=first.counts[i],
        resamples=resamples,
        seed=seed,
        confidence=confidence,
    )
