"""Means of outcomes as one long table, which every table and plot of the report is cut from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from eadpr.evaluation import outcomes
from eadpr.evaluation import tabulate as md
from eadpr.evaluation.awareness import AWARENESS, CUT, WITHOUT, quantiles
from eadpr.evaluation.config import count_name
from eadpr.evaluation.kinds import KINDS
from eadpr.evaluation.outcomes import Outcomes

DIGITS = 6  # of every number in a JSON file
# Metrics that only count: under which names, and what of their values.
COUNTED = {
    "ranked": {"n": len, "n_ranked": np.count_nonzero, "deepest_rank": np.max},
    "read": {"n": len, "n_read": np.count_nonzero},
    "no_answers": {"n_without_answers": len},
    "unjudged": {"n_unjudged": len},
} | {f"{metric}{suffix}": {f"n_{metric}{suffix}": len} for metric in AWARENESS for suffix in (CUT, WITHOUT)}
ONE_HOP = "one_hop_"  # begins the metrics that another arm's one-hop ranking has beside those of paths
EVERYONE = ("ranked", "read")  # have a value of every question of the set
MACRO, QUANTILES = "macro", "score_difference_quantiles"
KEYS = ["row", "question_set", "by", "group", "metric"]
UNKNOWN = pd.Series(dtype=object)  # positions of no question


class Mean(NamedTuple):
    """A row of the long table, which has the name of a training, or of an arm, before it as `row`.

    `by` is empty for the whole question set; else one of `KINDS`, and `group` the questions of it, or one of the
    constants above. A row that only counts has no mean.
    """

    question_set: str
    by: str
    group: str
    metric: str
    mean: float | None
    n: int | None


def means(tables: Mapping[str, Path], question_sets: Sequence[str], positions: pd.Series = UNKNOWN) -> pd.DataFrame:
    """Of tables of outcomes by name: every metric's mean over its values and their number `n`, for each set as a whole
    and by kind of question; and the counts that the report shows. `positions` are those of `kinds.positions`.

    Where every question of the set has a relation, MACRO has the means over relations of their means, as
    EntityQuestions (Sciavolino et al., 2021) reports. Raises ValueError where a table lacks a set.
    """
    rows: list[tuple] = []
    for table, path in tables.items():
        known = outcomes.metrics(path)
        for name in question_sets:
            if name not in known:
                raise ValueError(f"{path} has no question set {name!r} (it has {', '.join(known)}); run `dvc repro`")
            rows += ((table, *mean) for mean in _of_set(path, name, known[name], positions))
    return pd.DataFrame(rows, columns=["row", *Mean._fields]).astype({"mean": np.float64, "n": np.float64})


def _of_set(path: Path, name: str, metrics: Sequence[str], positions: pd.Series) -> Iterator[Mean]:
    for metric in (metric for metric in ("no_answers", "unjudged") if metric not in metrics):
        yield from (Mean(name, "", "", count, None, 0) for count in COUNTED[metric])
    relations = 0
    for metric in sorted(metrics, key=lambda metric: metric not in EVERYONE):
        frame = _frame(path, name, metric, positions)
        values = frame["value"].to_numpy()
        if metric in COUNTED:
            yield from (Mean(name, "", "", count, None, int(of(values))) for count, of in COUNTED[metric].items())
            if metric in EVERYONE:
                for kind in KINDS:
                    yield from (Mean(name, kind, of, "n", None, n) for of, n in frame[kind].value_counts().items() if n)
                relations = 0 if frame["relation"].isna().any() else frame["relation"].nunique()
            continue
        yield Mean(name, "", "", metric, values.mean(), len(values))
        for kind in KINDS:
            found = frame.groupby(kind, observed=True)["value"].agg(["mean", "size"])
            yield from (Mean(name, kind, of, metric, mean, n) for of, mean, n in found.itertuples())
            if kind == "relation" and relations > 1:
                yield Mean(name, MACRO, "", metric, found["mean"].mean(), None)
        if metric == "score_difference":
            yield from (Mean(name, QUANTILES, "", key, value, None) for key, value in quantiles(values).items())
    if relations > 1:
        yield Mean(name, MACRO, "", "relations", None, relations)


def _frame(path: Path, name: str, metric: str, positions: pd.Series) -> pd.DataFrame:
    """Of the outcomes of one metric: the kinds of question and the value."""
    ids = ["question_id"] if len(positions) else []  # strings take time
    frame = outcomes.read(path, name, metric, [*outcomes.GROUPS, "value", *ids]).to_pandas(
        categories=list(outcomes.GROUPS)
    )
    position = frame["question_id"].map(positions) if ids else None
    return frame.assign(value=frame["value"].astype(np.float64), position=position)


def rounded(found: pd.DataFrame) -> pd.DataFrame:
    """With means as JSON files have them; what the order of a sum decides is gone with the last digits."""
    return found.assign(mean=[round(mean, DIGITS) for mean in found["mean"]])


def averaged(found: pd.DataFrame, rows: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Means over the trainings of each of `rows`, of what all of them have; `spread` is the standard deviation of a
    sample, NaN of a single training."""
    arms = pd.DataFrame([(arm, name) for arm, names in rows.items() for name in names], columns=["arm", "row"])
    of_arms = arms.merge(found, on="row").drop(columns="row").rename(columns={"arm": "row"})
    groups = of_arms.groupby(KEYS, sort=False)
    result = groups.agg(mean=("mean", "mean"), n=("n", "mean"), spread=("mean", "std"), trainings=("mean", "size"))
    result = result.reset_index()
    return result[result["trainings"] == result["row"].map({row: len(of) for row, of in rows.items()})]


def details(found: pd.DataFrame) -> dict[str, Any]:
    """Of one row as its JSON file has it, by question set: each metric and, where not every question has one value,
    their number; the same under the name of what they are grouped by."""
    result: dict[str, Any] = {}
    for mean in found.itertuples(index=False):
        into = result.setdefault(mean.question_set, {})
        by = f"by_{mean.by}" if mean.by in KINDS else mean.by
        for key in (by, mean.group):
            into = into.setdefault(key, {}) if key else into
        n = md.whole(mean.n)
        if np.isnan(mean.mean):
            into[mean.metric] = n
        elif mean.metric.startswith(ONE_HOP):
            into.setdefault("one_hop", {})[mean.metric.removeprefix(ONE_HOP)] = round(mean.mean, DIGITS)
        else:
            into[mean.metric] = round(mean.mean, DIGITS)
            if mean.by != MACRO and (name := count_name(mean.metric)):
                into[name] = n
    return result


class MeasuredRows(NamedTuple):
    """What was measured of the rows of a table, each an arm with its trainings: outcomes, and the long table of means,
    by training and by row."""

    outcomes: dict[str, Outcomes]
    trainings: pd.DataFrame
    rows: pd.DataFrame


def measured(
    folder: Path, rows: Mapping[str, Sequence[str]], question_sets: Sequence[str], positions: pd.Series = UNKNOWN
) -> MeasuredRows:
    """`rows` name the trainings of each, whose tables of outcomes stand in the folder."""
    tables = {name: folder / f"{name}.parquet" for names in rows.values() for name in names}
    outcomes_ = {row: Outcomes([tables[name] for name in names]) for row, names in rows.items()}
    found = means(tables, question_sets, positions)
    return MeasuredRows(outcomes_, found, averaged(found, rows))


def summary(path: Path, question_sets: Sequence[str]) -> dict[str, Any]:
    """The `details` of a table of outcomes."""
    return details(means({path.stem: path}, question_sets))
