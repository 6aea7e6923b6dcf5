"""Means of outcomes by question set and by kind of question, with the counts behind them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from eadpr.evaluation import outcomes
from eadpr.evaluation.awareness import AWARENESS, CUT, quantiles
from eadpr.evaluation.config import count_name
from eadpr.evaluation.question_types import TYPES

DIGITS = 6  # of every number
# Metrics that only count: under which names, and what of their values.
COUNTED = {
    "ranked": {"n": len, "n_ranked": np.count_nonzero, "deepest_rank": np.max},
    "read": {"n": len, "n_read": np.count_nonzero},
    "no_answers": {"n_without_answers": len},
    "unjudged": {"n_unjudged": len},
} | {f"{metric}{CUT}": {f"n_{metric}{CUT}": len} for metric in AWARENESS}
EVERYONE = ("ranked", "read")  # have a value of every question of the set
BY = {"type": "by_type", "hop_type": "by_hop_type"}


def summary(path: Path, question_sets: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Of a table of outcomes, for each set: every metric's mean and, where not each question has one value, their
    number; the same under `by_type` and, where there are hops, `by_hop_type`; counts.

    Where every question of the set has a relation, `macro` has the means over relations of their means, as
    EntityQuestions (Sciavolino et al., 2021) reports. Raises ValueError where the table lacks a set.
    """
    known = outcomes.metrics(path)
    for name in question_sets:
        if name not in known:
            raise ValueError(f"{path} has no question set {name!r} (it has {', '.join(known)}); run `dvc repro`")
    return {name: _rounded(_of_set(path, name, known[name])) for name in question_sets}


def _of_set(path: Path, name: str, metrics: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"n_without_answers": 0, "n_unjudged": 0, "by_type": {}, "by_hop_type": {}, "macro": {}}
    for metric in sorted(metrics, key=lambda metric: metric not in EVERYONE):  # n of a group stands first
        frame = _frame(path, name, metric)
        values = frame["value"].to_numpy()
        if metric in COUNTED:
            found |= {count: int(of(values)) for count, of in COUNTED[metric].items()}
            if metric in EVERYONE:
                _count_groups(found, frame)
            continue
        found |= _shares(metric, float(values.mean()), len(values))
        if metric == "score_difference":
            found["score_difference_quantiles"] = quantiles(values)
        for column, groups in BY.items():
            means = frame.groupby(column, observed=True)["value"].agg(["mean", "size"])
            for kind, mean, size in means.itertuples():
                found[groups][kind] |= _shares(metric, mean, size)
        if found["macro"]:
            found["macro"][metric] = frame.groupby("relation", observed=True)["value"].mean().mean()
    found["by_type"] = {kind: found["by_type"][kind] for kind in TYPES if kind in found["by_type"]}
    found["by_hop_type"] = dict(sorted(found["by_hop_type"].items()))
    return {key: value for key, value in found.items() if value != {}}


def _frame(path: Path, name: str, metric: str) -> pd.DataFrame:
    table = outcomes.read(path, name, metric, [*outcomes.GROUPS, "value"])
    frame = table.to_pandas(categories=list(outcomes.GROUPS))
    return frame.assign(value=frame["value"].astype(np.float64))


def _count_groups(found: dict[str, Any], everyone: pd.DataFrame) -> None:
    for column, groups in BY.items():
        found[groups] = {kind: {"n": int(n)} for kind, n in everyone[column].value_counts(sort=False).items()}
    relations = everyone["relation"]
    if not relations.isna().any() and relations.nunique() > 1:
        found["macro"] = {"relations": int(relations.nunique())}


def _shares(metric: str, mean: float, count: int) -> dict[str, Any]:
    name = count_name(metric)
    return {metric: float(mean)} | ({name: int(count)} if name else {})


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return round(value, DIGITS) if isinstance(value, float) else value


def averaged(found: Sequence[Any]) -> Any:
    """Means of the numbers of several trainings' summaries; what is the same in all of them stays as it is."""
    first = found[0]
    if isinstance(first, dict):
        return {key: averaged([of[key] for of in found]) for key in first if all(key in of for of in found)}
    return first if all(value == first for value in found) else sum(found) / len(found)
