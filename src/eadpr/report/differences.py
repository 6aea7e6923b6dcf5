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
from eadpr.evaluation.statistics import Interval, bound_equals, holm, paired_bootstrap, paired_randomisation
from eadpr.report import markdown as md
from eadpr.report.config import UNTRAINED, Pairs, Sampling

Trainings = Sequence[pd.DataFrame]  # one metric of an arm, by training, as `Outcomes` give it


class Comparison(NamedTuple):
    """A row of a table: two sides for each of its columns. `fixed`: one side has no seed to vary."""

    label: str
    pairs: Iterable[tuple[Trainings, Trainings]]
    fixed: bool = False


class Difference(NamedTuple):
    """`p` is of the randomisation test; None for single trainings, which get no star."""

    interval: Interval
    p: float | None = None


Sides = tuple[Trainings, Trainings, bool]  # the second is empty for a mean, the last is `fixed`


def compare(sides: Iterable[Sides], sampling: Sampling) -> list[Difference | None]:
    """Return first minus second of `sides` over the questions with as many values in all trainings, None without any.

    Training i of one is paired with training i of the other, or if `fixed` with its only one; where they cannot be
    paired, as three and two, their means are compared. Single trainings share resamples, which is faster.
    """
    results: list[Difference | None] = []
    options = sampling.model_dump(include=set(Sampling.model_fields))
    single = defaultdict(list)  # by the counts of values per question: place, least difference, differences
    for first, second, fixed in sides:
        sums, counts = together([*first, *second])
        pair = sums[: len(first)], sums[len(first) :]
        if second and len(first) != len(second) and not (fixed and 1 in (len(first), len(second))):
            pair = tuple(side.mean(axis=0, keepdims=True) for side in pair)
        results.append(None)
        lowest = -1.0 if second else 0.0
        if not len(counts):
            continue
        if max(map(len, pair)) == 1:
            single[counts.tobytes()].append((len(results) - 1, lowest, pair[0][0] - pair[1].sum(axis=0)))
            continue
        p = None
        if second:
            p = paired_randomisation(*pair, counts=counts, resamples=sampling.resamples, seed=sampling.seed)
        reference = pair[1] if second else np.zeros_like(pair[0])
        both = paired_bootstrap(pair[0], reference, counts=counts, **options).both
        results[-1] = Difference(bound_equals(both, sampling.confidence, lowest), p)
    for key, group in single.items():
        counts, values = np.frombuffer(key, np.int64), np.array([differences for *_, differences in group])
        boot = paired_bootstrap(values, np.zeros_like(values), counts=counts, **options)
        for (place, lowest, _), interval in zip(group, boot.each, strict=True):
            results[place] = Difference(bound_equals(interval, sampling.confidence, lowest))
    return results


def is_fixed(*rows: str) -> bool:
    return not {BM25, UNTRAINED}.isdisjoint(rows)


def comparisons(
    outcomes: Mapping[str, Outcomes], pairs: Pairs, question_set: str, metrics: Sequence[str]
) -> Iterator[Comparison]:
    """Yield a row per pair; values are read when they are compared, as all together may not fit in memory."""

    def read_sides(row: str, reference: str) -> Iterator[tuple[Trainings, Trainings]]:
        for metric in metrics:
            yield tuple(outcomes[name].of_trainings(question_set, metric) for name in (row, reference))

    for row, reference in pairs:
        yield Comparison(f"{row} − {reference}", read_sides(row, reference), is_fixed(row, reference))


def difference_table(rows: Iterable[Comparison], metrics: Sequence[str], sampling: Sampling) -> list[str]:
    """Explain and tabulate differences in points, one family of Holm's correction; nothing without rows or metrics."""
    compared = {row.label: compare(((*pair, row.fixed) for pair in row.pairs), sampling) for row in rows}
    if not (compared and metrics):
        return []
    tested = [cell.p for cells in compared.values() for cell in cells if cell and cell.p is not None]
    adjusted, level = iter(holm(tested)), 1 - sampling.confidence
    body = []
    for label, cells in compared.items():
        texts = [label]
        for cell in cells:
            if cell is None:
                texts.append(md.NONE)
                continue
            significant = cell.p is not None and next(adjusted) < level
            starred = significant and (cell.interval.low > 0 or cell.interval.high < 0)
            texts.append(md.bounded(cell.interval, sign="+", starred=starred))
        body.append(texts)
    intro = (
        f"Differences in percentage points with {100 * sampling.confidence:g} % intervals ({sampling.resamples:,}"
        " resamples), over the questions that have a value on both sides. Where both sides have several trainings, as"
        " many of each, or one has several and the other no seed (BM25, untrained), intervals are over trainings and"
        f" questions (two-way bootstrap), and * stands where the interval is on one side of 0 and p below {level:.2g}"
        " in the paired randomisation test over questions, with Holm's correction over the table"
        f" ({len(tested)} in all). Elsewhere they are over questions alone (paired bootstrap), without stars: these say"
        " nothing of other trainings."
    )
    return [intro, md.table(["difference", *map(md.title, metrics)], body)]
