"""The explorer's overview of a question set: means and differences with intervals, as the report has them."""

from itertools import product
from typing import Any

import pandas as pd

from eadpr.report.config import ReportArms
from eadpr.report.differences import compare, is_fixed
from eadpr.report.summary import MeasuredRows

DIGITS = 5


def make_overview(name: str, measured: MeasuredRows, settings: ReportArms) -> dict[str, Any]:
    def read(row: str, metric: str) -> list[pd.DataFrame]:
        return measured.outcomes[row].of_trainings(name, metric)

    def estimate(pairs: list[tuple[str, str | None]]) -> list[dict[str, list[float]]]:
        """Return by metric estimate, bounds and number of questions, for each row alone or with another."""
        sides = (
            (read(row, metric), read(other, metric) if other else [], is_fixed(row, other))
            for (row, other), metric in product(pairs, settings.columns)
        )
        intervals: list[dict[str, list[float]]] = [{} for _ in pairs]
        cells = product(intervals, settings.columns)
        for (by_metric, metric), difference in zip(cells, compare(sides, settings), strict=True):
            if difference:
                estimate, low, high, n = difference.interval
                by_metric[metric] = [*(round(value, DIGITS) for value in (estimate, low, high)), n]
        return intervals

    differences = zip(settings.comparisons, estimate(settings.comparisons), strict=True)
    return {
        "means": dict(zip(settings.rows, estimate([(row, None) for row in settings.rows]), strict=True)),
        "differences": [{"row": row, "with": other, "metrics": metrics} for (row, other), metrics in differences],
        "trainings": {row: len(names) for row, names in settings.rows.items()},
    }
