"""Paired comparisons of two arms over the questions that both have outcomes for, and the table of them in a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from eadpr.evaluation import tabulate as md
from eadpr.evaluation.config import Report
from eadpr.evaluation.outcomes import Outcomes, PerQuestion, shared
from eadpr.evaluation.statistics import Interval, holm, paired_bootstrap, paired_randomisation


class Difference(NamedTuple):
    interval: Interval
    p: float  # of the randomisation test


def compare(
    first: PerQuestion, second: PerQuestion, *, resamples: int, seed: int, confidence: float
) -> Difference | None:
    """`first` minus `second` over the questions with as many values on both sides; None where there are none.

    The numbers of values differ only for AA, where arms that truncate differently keep other pairs.
    """
    i, j = shared(first, second)
    if not len(i):
        return None
    values = {"first": first.sums[i], "second": second.sums[j], "counts": first.counts[i]}
    return Difference(
        paired_bootstrap(**values, resamples=resamples, seed=seed, confidence=confidence),
        paired_randomisation(**values, resamples=resamples, seed=seed),
    )


Pair = tuple[PerQuestion, PerQuestion]
Row = tuple[str, Iterable[Pair]]  # a label and, for each column, what is compared with what


def rows_of_pairs(
    outcomes: Mapping[str, Outcomes], pairs: Sequence[tuple[str, str]], question_set: str, metrics: Sequence[str]
) -> Iterator[Row]:
    """Nothing is read before it is compared: at a million questions, not all columns fit in memory together."""

    def of(name: str, other: str) -> Iterator[Pair]:
        return (tuple(outcomes[row].per_question(question_set, metric) for row in (name, other)) for metric in metrics)

    return ((f"{name} − {other}", of(name, other)) for name, other in pairs)


def compared(row: Row, settings: Report) -> list[Difference | None]:
    options = {"resamples": settings.resamples, "seed": settings.seed, "confidence": settings.confidence}
    return [compare(*pair, **options) for pair in row[1]]


def difference_table(rows: Iterable[Row], columns: Sequence[str], settings: Report) -> list[str]:
    """Differences in percentage points beneath what their stars mean; nothing without rows.

    All of the table is one family of Holm's correction, whatever its rows and columns are.
    """
    found = [(row[0], compared(row, settings)) for row in rows]
    if not found:
        return []
    known = [difference.p for _, of_row in found for difference in of_row if difference]
    level = 1 - settings.confidence
    starred = iter([p < level for p in holm(known)])
    cells = [
        [label, *(md.difference(one.interval, starred=next(starred)) if one else md.NONE for one in of_row)]
        for label, of_row in found
    ]
    said = (
        f"Differences in percentage points with {100 * settings.confidence:g} % intervals (paired bootstrap over"
        f" questions, {settings.resamples:,} resamples); * below {level:.2g} in the paired randomisation test, with"
        f" Holm's correction over the table ({len(known)} in all):"
    )
    return [said, md.table(["difference", *columns], cells)]
