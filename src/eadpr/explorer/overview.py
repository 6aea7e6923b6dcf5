"""The explorer's overview of a question set: means and differences with intervals, as the report has them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from eadpr.evaluation.outcomes import together
from eadpr.evaluation.statistics import Interval, paired_bootstrap
from eadpr.report.config import ReportArms, Sampling
from eadpr.report.differences import compare, is_fixed
from eadpr.report.summary import MeasuredRows

DIGITS = 5


class Side(NamedTuple):
    """One metric of a row's trainings and, for a difference, of the row it is compared with."""

    row: str
    metric: str
    trainings: Sequence[pd.DataFrame]
    reference: Sequence[pd.DataFrame] = ()
    fixed: bool = False


def make_overview(name: str, measured: MeasuredRows, settings: ReportArms) -> dict[str, Any]:
    def read(row: str, metric: str) -> list[pd.DataFrame]:
        return measured.outcomes[row].of_trainings(name, metric)

    columns, rows = settings.columns, list(settings.rows)
    means = _intervals((Side(row, metric, read(row, metric)) for row in rows for metric in columns), settings)
    compared = (
        Side(row, metric, read(row, metric), read(reference, metric), is_fixed(row, reference))
        for row, reference in settings.comparisons
        for metric in columns
    )
    differences = _intervals(compared, settings)
    return {
        "means": {row: means[row] for row in rows},
        "differences": [
            {"row": row, "with": other, "metrics": differences[row]} for row, other in settings.comparisons
        ],
        "trainings": {row: len(names) for row, names in settings.rows.items()},
    }


def _intervals(sides: Iterable[Side], sampling: Sampling) -> dict[str, dict[str, list[float]]]:
    """Return by row and metric the estimate, its bounds and the number of questions, as the report has them; nothing
    for trainings that share no question."""
    intervals: dict[str, dict[str, list[float]]] = defaultdict(dict)
    single = defaultdict(list)  # by the counts of values per question: these share their resamples, which is fast
    for side in sides:
        sums, counts = together([*side.trainings, *side.reference])
        if not len(counts):
            continue
        if len(side.trainings) == 1 and len(side.reference) < 2:
            single[counts.tobytes()].append((side, sums[0] - sums[1:].sum(axis=0), counts))
        elif side.reference:
            difference = compare(side.trainings, side.reference, sampling, fixed=side.fixed)
            intervals[side.row][side.metric] = _as_list(difference.interval)
        else:
            mean = paired_bootstrap(sums, np.zeros_like(sums), counts=counts, **sampling.options)
            intervals[side.row][side.metric] = _as_list(mean.both)
    for group in single.values():
        values = np.array([differences for _, differences, _ in group])
        boot = paired_bootstrap(values, np.zeros_like(values), counts=group[0][2], **sampling.options)
        for (side, _, _), interval in zip(group, boot.each, strict=True):
            intervals[side.row][side.metric] = _as_list(interval)
    return intervals


def _as_list(interval: Interval) -> list[float]:
    return [*map(_round, interval[:3]), interval.n]


def _round(value: float) -> float:
    return round(float(value), DIGITS)
