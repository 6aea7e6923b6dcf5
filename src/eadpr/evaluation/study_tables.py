"""What stands beside a report in a study: a grid over two settings, as Markdown tables and one heat map, and what each
arm was trained with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eadpr.evaluation import plots
from eadpr.evaluation import tabulate as md
from eadpr.evaluation.config import Evaluate

TITLES = ["arm", "form", "L_dpr", "lambda", "tau1", "tau2", "distractors", "hard negatives", "from", "batch", "length"]


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


def trained_with(active: Mapping[str, Mapping[str, Any]], configs: Mapping[str, Any]) -> str:
    """Of the section `active` and the config files of its arms, as `params.configs` makes them; other seeds are left
    out."""
    rows = [_row(arm, edges, configs) for arm, edges in active.items() if "repeats" not in edges]
    return md.table([*TITLES, "rate"], rows)


def _row(arm: str, edges: Mapping[str, Any], configs: Mapping[str, Any]) -> list[str]:
    stages = ("train", "examples", "negatives")
    settings, examples, negatives = (configs[f"{arm}/{stage}.json"] for stage in stages)
    loss, train = settings["loss"], settings["train"]
    mined = negatives["negatives"]
    source = f"{edges['negatives']} (best {mined['keep']})" if mined["kind"] == "ranked" else mined["kind"]
    hard = f"{train['hard_negatives']} of {source}"
    length = f"{train['epochs']} epochs" if train["steps"] is None else f"{train['steps']:,} steps"
    if train["step_factor"] != 1:
        length += f" x {train['step_factor']:g}"
    return [
        arm,
        loss["form"],
        *(f"{loss[weight]:g}" for weight in ("dpr", "lambda", "tau1", "tau2")),
        examples["examples"]["strategy"],
        hard if train["hard_negatives"] else "none",
        edges["init"],
        str(train["batch_size"]),
        length,
        f"{train['learning_rate']:g}",
    ]
