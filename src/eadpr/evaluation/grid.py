"""A study's grid over two settings: means over its trainings as Markdown tables and one heat map."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eadpr.evaluation import plots
from eadpr.evaluation import tabulate as md
from eadpr.evaluation.config import Evaluate


class Axis(NamedTuple):
    """A setting by dotted name and its values."""

    name: str
    values: Sequence[float]

    @property
    def labels(self) -> list[str]:
        return [f"{value:g}" for value in self.values]


def check(metrics: Sequence[str], settings: Evaluate) -> None:
    """Raises ValueError for what `evaluate` does not measure, before anything is trained."""
    for metric in metrics:
        if metric not in settings.metrics:
            known = ", ".join(settings.metrics)
            raise ValueError(f"studies.yaml: grid.metrics: {metric!r} is not a metric; known are {known}")


def read(folder: Path, question_set: str, arms: Sequence[Sequence[Sequence[str]]]) -> list[list[list[dict[str, Any]]]]:
    """Metrics of every training of every cell."""
    return [
        [[json.loads((folder / f"{arm}.json").read_text("utf-8"))[question_set] for arm in cell] for cell in row]
        for row in arms
    ]


def shares(found: Sequence[Sequence[Sequence[dict[str, Any]]]], metric: str) -> NDArray[np.float64]:
    """Means of a metric by row and column; `found[row][column]` are metrics of one question set, one per training."""
    if not all(metric in training for row in found for cell in row for training in cell):
        raise ValueError(f"studies.yaml: grid.metrics: not every training has {metric!r}; take it out and run again")
    return np.array([[np.mean([training[metric] for training in cell]) for cell in row] for row in found])


def tables(found: dict[str, NDArray[np.float64]], rows: Axis, columns: Axis) -> str:
    """One Markdown table per metric, in per cent."""
    parts = []
    for metric, of_metric in found.items():
        header = [f"{md.title(metric)} (%), {rows.name} ↓ {columns.name} →", *columns.labels]
        body = [
            [label, *(f"{100 * share:.1f}" for share in of_row)]
            for label, of_row in zip(rows.labels, of_metric, strict=True)
        ]
        parts.append(md.table(header, body))
    return "\n\n".join(parts)


def drawn(found: dict[str, NDArray[np.float64]], rows: Axis, columns: Axis) -> str:
    panels = {md.title(metric): of_metric for metric, of_metric in found.items()}
    return plots.heat_map(panels, (rows.name, rows.labels), (columns.name, columns.labels))
