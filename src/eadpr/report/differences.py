"""Tables of differences between arms, with intervals and tests that tell whether they hold.

An interval over questions, and the test over them, take the trainings as fixed: what they find may be luck of these
seeds. So a star needs an interval over trainings and questions too, which a single training of each arm cannot give.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from eadpr.evaluation.config import BM25
from eadpr.evaluation.outcomes import Outcomes, together
from eadpr.evaluation.statistics import Interval, Intervals, holm, paired_bootstrap, paired_randomisation
from eadpr.report import markdown as md
from eadpr.report.config import UNTRAINED, Pairs, Sampling

Trainings = Sequence[pd.DataFrame]  # one metric of an arm, by training, as `Outcomes` give it


class Comparison(NamedTuple):
    """A row of a table: two sides for each of its columns.

    `labels` name the pairs of trainings, where they get rows too. `fixed`: one side has no seed to vary.
    """

    label: str
    pairs: Iterable[tuple[Trainings, Trainings]]
    labels: Sequence[str] = ()
    fixed: bool = False


class Difference(NamedTuple):
    """`p` is of the randomisation test; None for single trainings, which get no star. `values` are compared, of the
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


ComparedRow = tuple[Comparison, list[Difference | None]]


Sides = tuple[Trainings, Trainings, bool]  # the second is empty for a mean, the last is `fixed`


def compare(sides: Iterable[Sides], sampling: Sampling) -> list[Difference | None]:
    """Return first minus second of each of `sides` over the questions with as many values in all trainings; None
    without any.

    Training i of one is paired with training i of the other, or if `fixed` with its only one. Where they cannot be
    paired, as three and two, the means are compared as if they were single trainings. Single trainings with values of
    the same questions share their resamples, which is faster and changes nothing.
    """
    results: list[Difference | None] = []
    single = defaultdict(list)  # by the counts of values per question: place, differences, fewest
    for first, second, fixed in sides:
        sums, counts = together([*first, *second])
        fewest = min(int(training["counts"].sum()) for training in (*first, *second))
        pair = sums[: len(first)], sums[len(first) :]
        if second and len(first) != len(second) and not (fixed and 1 in (len(first), len(second))):
            pair = tuple(side.mean(axis=0, keepdims=True) for side in pair)
        if not len(counts):
            results.append(None)
        elif max(map(len, pair)) == 1:
            single[counts.tobytes()].append((len(results), pair[0][0] - pair[1].sum(axis=0), fewest))
            results.append(None)
        else:
            p = None
            if second:
                p = paired_randomisation(*pair, counts=counts, resamples=sampling.resamples, seed=sampling.seed)
            pair = pair if second else (pair[0], np.zeros_like(pair[0]))
            intervals = paired_bootstrap(*pair, counts=counts, **sampling.options)
            results.append(Difference(intervals, p, int(counts.sum()), fewest))
    for key, group in single.items():
        counts, values = np.frombuffer(key, np.int64), np.array([differences for _, differences, _ in group])
        boot = paired_bootstrap(values, np.zeros_like(values), counts=counts, **sampling.options)
        for (place, _, fewest), interval in zip(group, boot.each, strict=True):
            results[place] = Difference(Intervals(interval, None, [interval]), None, int(counts.sum()), fewest)
    return results


def is_fixed(*rows: str) -> bool:
    return not {BM25, UNTRAINED}.isdisjoint(rows)


def comparisons(
    outcomes: Mapping[str, Outcomes], pairs: Pairs, question_set: str, metrics: Sequence[str]
) -> Iterator[Comparison]:
    """Yield a row per pair. Values are read when they are compared: a million questions' columns do not fit in memory
    together."""

    def read_sides(row: str, reference: str) -> Iterator[tuple[Trainings, Trainings]]:
        for metric in metrics:
            yield tuple(outcomes[name].of_trainings(question_set, metric) for name in (row, reference))

    for row, reference in pairs:
        names, references = outcomes[row].trainings, outcomes[reference].trainings
        count = max(len(names), len(references))
        if len(references) == 1:
            references = references * count
        if len(names) == 1:
            names = names * count
        labels = [f"{first} − {second}" for first, second in zip(names, references, strict=False)]
        yield Comparison(f"{row} − {reference}", read_sides(row, reference), labels, fixed=is_fixed(row, reference))


def difference_table(rows: Iterable[Comparison], columns: Sequence[str], sampling: Sampling) -> list[str]:
    """Return the parts of a table of differences in percentage points; nothing without rows or columns.

    All of the table is one family of Holm's correction. Rows of several trainings stand in a second table too, with
    intervals over questions alone, of the means and of each training.
    """
    compared = [(row, compare(((*pair, row.fixed) for pair in row.pairs), sampling)) for row in rows]
    if not (compared and columns):
        return []
    tested = [cell.p for _, cells in compared for cell in cells if cell and cell.p is not None]
    adjusted = iter(holm(tested))
    body = []
    for row, cells in compared:
        texts = [row.label]
        for cell in cells:
            if cell is None:
                texts.append(md.NONE)
            else:
                significant = cell.p is not None and next(adjusted) < 1 - sampling.confidence
                texts.append(md.difference(cell.interval, starred=significant and cell.beyond_zero))
        body.append(texts)
    intro, table = _introduce(compared, len(tested), sampling), md.table(["difference", *columns], body)
    return [intro, table, *_note_fewer_pairs(compared, columns), *_table_over_questions(compared, columns)]


def _several(cells: list[Difference | None]) -> bool:
    return any(cell and cell.intervals.both for cell in cells)


def _introduce(compared: Sequence[ComparedRow], tested: int, sampling: Sampling) -> str:
    intro = f"Differences in percentage points with {100 * sampling.confidence:g} % intervals"
    resamples = f"{sampling.resamples:,} resamples"
    if not tested:
        return (
            f"{intro} over questions (paired bootstrap, {resamples}). No stars: without several trainings of both"
            " sides, as many of each, nothing is said of other trainings:"
        )
    intro = (
        f"{intro} over trainings and questions (two-way bootstrap, {resamples}); * where the interval is on one side of"
        f" 0 and p below {1 - sampling.confidence:.2g} in the paired randomisation test over questions, with Holm's"
        f" correction over the table ({tested} in all)"
    )
    single = ", ".join(row.label for row, cells in compared if any(cells) and not _several(cells))
    if single:
        intro += (
            f"; without several trainings of both sides, as many of each ({single}), over questions alone, no stars"
        )
    return f"{intro}:"


def _note_fewer_pairs(compared: Sequence[ComparedRow], columns: Sequence[str]) -> list[str]:
    fewer = []
    for row, cells in compared:
        for column, cell in zip(columns, cells, strict=True):
            if cell and cell.values < cell.fewest:
                fewer.append(f"{row.label} at {column} {cell.values:,} of {cell.fewest:,}")
    if not fewer:
        return []
    intro = "Fewer pairs are compared than each side has, as only questions count of which both have equally many"
    return [f"{intro}: {', '.join(fewer)}."]


def _table_over_questions(compared: Sequence[ComparedRow], columns: Sequence[str]) -> list[str]:
    body = []
    for row, cells in compared:
        if _several(cells):
            intervals = [cell and cell.intervals for cell in cells]
            body.append([f"{row.label}, mean", *(md.difference(cell and cell.questions) for cell in intervals)])
            for i, label in enumerate(row.labels):
                body.append([label, *(md.difference(cell and cell.each[i]) for cell in intervals)])
    if not body:
        return []
    intro = "The same with intervals over questions alone (paired bootstrap), which say nothing of other trainings:"
    return [intro, md.table(["difference", *columns], body)]
