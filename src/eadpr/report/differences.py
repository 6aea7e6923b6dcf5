"""Tables of differences between arms, with what says whether they hold: for other questions, and for other trainings.

An interval over questions, and the test of them, take the trainings as they are: what they find may be luck of these
seeds. So a star needs an interval over trainings and questions too, which a single training of each arm cannot give.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from eadpr.evaluation.config import BM25, Report
from eadpr.evaluation.outcomes import Outcomes, together
from eadpr.evaluation.statistics import Interval, Intervals, holm, paired_bootstrap, paired_randomisation
from eadpr.report import markdown as md

Trainings = Sequence[pd.DataFrame]  # one metric of an arm, by training, as `Outcomes` give it


class Comparison(NamedTuple):
    """A row of a table: for each of its columns, what is compared with what. `each` names the pairs of trainings where
    these have rows of their own. `fixed`: a side of one has no seed that could be another (BM25)."""

    label: str
    pairs: Iterable[tuple[Trainings, Trainings]]
    each: Sequence[str] = ()
    fixed: bool = False


class Difference(NamedTuple):
    """`p` is of the randomisation test; None of what no star can hold for, single trainings. `values` are compared, of
    `fewest` that a training has."""

    intervals: Intervals
    p: float | None
    values: int
    fewest: int

    @property
    def interval(self) -> Interval:
        return self.intervals.both or self.intervals.questions

    @property
    def beyond_zero(self) -> bool:
        return self.interval.low > 0 or self.interval.high < 0


def compare(first: Trainings, second: Trainings, settings: Report, *, fixed: bool = False) -> Difference | None:
    """`first` minus `second` over the questions with as many values in all trainings; None where there are none.

    Training i of one is paired with training i of the other, or if `fixed` with its only one. Where they cannot be
    paired, as three and two, the means are compared as if they were single trainings.
    """
    sums, counts = together([*first, *second])
    if not len(counts):
        return None
    sides = sums[: len(first)], sums[len(first) :]
    if len(first) != len(second) and not (fixed and 1 in (len(first), len(second))):
        sides = tuple(side.mean(axis=0) for side in sides)
    options = {"counts": counts, "resamples": settings.resamples, "seed": settings.seed}
    intervals = paired_bootstrap(*sides, **options, confidence=settings.confidence)
    fewest = min(int(of["counts"].sum()) for of in (*first, *second))
    p = paired_randomisation(*sides, **options) if intervals.both else None
    return Difference(intervals, p, int(counts.sum()), fewest)


def comparisons(
    outcomes: Mapping[str, Outcomes], pairs: Sequence[tuple[str, str]], question_set: str, metrics: Sequence[str]
) -> Iterator[Comparison]:
    """Nothing is read before it is compared: at a million questions, not all columns fit in memory together."""

    def of(name: str, other: str) -> Iterator[tuple[Trainings, Trainings]]:
        return (tuple(outcomes[row].of_trainings(question_set, metric) for row in (name, other)) for metric in metrics)

    for name, other in pairs:
        names, others = (outcomes[row].trainings for row in (name, other))
        others = others * len(names) if len(others) == 1 else others
        names = names * len(others) if len(names) == 1 else names
        each = [f"{one} − {beside}" for one, beside in zip(names, others, strict=False)]
        yield Comparison(f"{name} − {other}", of(name, other), each, fixed=BM25 in (name, other))


def difference_table(rows: Iterable[Comparison], columns: Sequence[str], settings: Report) -> list[str]:
    """Differences in percentage points beneath what they show; nothing without rows or columns.

    All of the table is one family of Holm's correction, whatever its rows and columns are. Rows of several trainings
    stand in a second table too, with intervals over questions alone, of the means and of each training.
    """
    found = [(row, [compare(*pair, settings, fixed=row.fixed) for pair in row.pairs]) for row in rows]
    if not (found and columns):
        return []
    tested = [one.p for _, of_row in found for one in of_row if one and one.p is not None]
    holds = iter([p < 1 - settings.confidence for p in holm(tested)])

    def cell(one: Difference | None) -> str:
        starred = one is not None and one.p is not None and next(holds) and one.beyond_zero
        return md.difference(one and one.interval, starred=starred)

    table = md.table(["difference", *columns], [[row.label, *map(cell, of_row)] for row, of_row in found])
    return [_said(found, len(tested), settings), table, *_over_fewer(found, columns), *_over_questions(found, columns)]


Found = Sequence[tuple[Comparison, list[Difference | None]]]


def _several(of_row: list[Difference | None]) -> bool:
    return any(one and one.intervals.both for one in of_row)


def _said(found: Found, tested: int, settings: Report) -> str:
    said = f"Differences in percentage points with {100 * settings.confidence:g} % intervals"
    drawn = f"{settings.resamples:,} resamples"
    if not tested:
        return (
            f"{said} over questions (paired bootstrap, {drawn}). No stars: without several trainings of both"
            " sides, as many of each, nothing is said of other trainings:"
        )
    said = (
        f"{said} over trainings and questions (two-way bootstrap, {drawn}); * where the interval is on one side of 0"
        f" and p below {1 - settings.confidence:.2g} in the paired randomisation test over questions, with Holm's"
        f" correction over the table ({tested} in all)"
    )
    single = ", ".join(row.label for row, of_row in found if any(of_row) and not _several(of_row))
    return (
        f"{said}; without several trainings of both sides, as many of each ({single}), over questions alone, no stars:"
        if single
        else f"{said}:"
    )


def _over_fewer(found: Found, columns: Sequence[str]) -> list[str]:
    fewer = [
        f"{row.label} at {column} {one.values:,} of {one.fewest:,}"
        for row, of_row in found
        for column, one in zip(columns, of_row, strict=True)
        if one and one.values < one.fewest
    ]
    said = "Fewer pairs are compared than each side has, as only questions count of which both have equally many"
    return [f"{said}: {', '.join(fewer)}."] if fewer else []


def _over_questions(found: Found, columns: Sequence[str]) -> list[str]:
    cells = []
    for row, of_row in found:
        if _several(of_row):
            intervals = [one and one.intervals for one in of_row]
            cells.append([f"{row.label}, mean", *(md.difference(one and one.questions) for one in intervals)])
            for i, label in enumerate(row.each):
                cells.append([label, *(md.difference(one and one.each[i]) for one in intervals)])
    said = "The same with intervals over questions alone (paired bootstrap), which say nothing of other trainings:"
    return [said, md.table(["difference", *columns], cells)] if cells else []
