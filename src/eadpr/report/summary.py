"""Means of outcomes as one long table, which every table and plot of the report is cut from."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from eadpr.evaluation.awareness import AWARENESS, CUT, WITHOUT
from eadpr.evaluation.config import count_name
from eadpr.evaluation.kinds import KINDS, UNKNOWN
from eadpr.evaluation.outcomes import Outcomes
from eadpr.report import markdown as md
from eadpr.storage import engine
from eadpr.storage.records import Outcome

DIGITS = 6  # of every number in a JSON file
# Metrics that only count: the names they are shown under, with the column of `MEANS` to show.
COUNTED = {
    "ranked": {"n": "n", "n_ranked": "above"},
    "read": {"n": "n", "n_read": "above"},
    "no_answers": {"n_without_answers": "n"},
    "unjudged": {"n_unjudged": "n"},
} | {f"{metric}{suffix}": {f"n_{metric}{suffix}": "n"} for metric in AWARENESS for suffix in (CUT, WITHOUT)}
EVERYONE = ("ranked", "read")  # have a value of every question of the set
MACRO = "macro"
# Keys of the long table. `row` is a training or an arm. `by` is empty for the whole question set; else one of `KINDS`,
# with a `group` of its questions, or one of the constants above. A metric that only counts has no mean.
KEYS = ["row", "question_set", "by", "group", "metric"]
MEANS = " UNION ALL ".join(
    f"""SELECT question_set, '{column}' AS "by", {group} AS "group", metric, avg(value::DOUBLE) AS mean, count(*) AS n,
        count(*) FILTER (WHERE value > 0) AS above, min({engine.POSITION}) AS place
    FROM outcomes LEFT JOIN positions USING (question_id) WHERE {group} IS NOT NULL GROUP BY ALL"""
    for column, group in {"": "''", **{kind: f'"{kind}"' for kind in KINDS}}.items()
)


class MeasuredRows(NamedTuple):
    """The outcomes of a table's rows, and the long table of means by training and by row."""

    outcomes: dict[str, Outcomes]
    trainings: pd.DataFrame
    rows: pd.DataFrame


def load_rows(
    folder: Path, rows: Mapping[str, Sequence[str]], question_sets: Sequence[str], positions: pa.Table = UNKNOWN
) -> MeasuredRows:
    """Read and average the outcomes of each row's trainings, tables in `folder`."""
    paths = {name: folder / f"{name}.parquet" for names in rows.values() for name in names}
    outcomes = {row: Outcomes([paths[name] for name in names]) for row, names in rows.items()}
    trainings = read_means(paths, question_sets, positions)
    return MeasuredRows(outcomes, trainings, average_trainings(trainings, rows))


def select_set(means: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the means over all questions of a set."""
    return means[(means["question_set"] == name) & (means["by"] == "")]


def read_means(tables: Mapping[str, Path], question_sets: Sequence[str], positions: pa.Table = UNKNOWN) -> pd.DataFrame:
    """Return the long table of `tables` of outcomes: every metric's mean and number `n` of values, for each set as a
    whole and by kind of question; and the counts of `COUNTED`. `positions` come from `kinds.positions`.

    Where every question of the set has a relation, MACRO has the means over relations of their means, as
    EntityQuestions (Sciavolino et al., 2021) reports; there `n` counts the relations with a value.
    """
    parts = []
    for row, path in tables.items():
        with engine.connect() as connection:
            connection.execute("SET threads = 1")  # the order of a sum is in its last digits
            engine.view(connection, "outcomes", path, Outcome)
            connection.from_arrow(positions).create("positions")
            groups = connection.execute(f'FROM ({MEANS}) ORDER BY place, "by", "group"').df()
        groups = groups[groups["question_set"].isin(question_sets)]
        values = groups[~groups["metric"].isin(COUNTED)]
        means = pd.concat([values, *_counts(groups), _macro_means(groups, values)])
        parts.append(means.assign(row=row))
    means = pd.concat(parts)[[*KEYS, "mean", "n"]].astype({"mean": np.float64, "n": np.float64})
    return means.assign(mean=[round(mean, DIGITS) for mean in means["mean"]])  # the order of a sum decides more digits


def _counts(groups: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the rows of `COUNTED`; `n` by kind of question too."""
    for metric, names in COUNTED.items():
        rows = groups[groups["metric"] == metric]
        for name, column in names.items():
            counted = rows if name == "n" else rows[rows["by"] == ""]
            yield counted.assign(metric=name, n=counted[column], mean=np.nan)


def _macro_means(groups: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    """Return the macro averages of sets of several relations in which every question has one."""
    everyone = groups[groups["metric"].isin(EVERYONE)]
    relations = everyone[everyone["by"] == "relation"].groupby("question_set")["n"].agg(["size", "sum"])
    questions = everyone[everyone["by"] == ""].set_index("question_set")["n"]
    relations = relations["size"][(relations["size"] > 1) & (relations["sum"] == questions.reindex(relations.index))]
    of_relations = values[(values["by"] == "relation") & values["question_set"].isin(relations.index)]
    by_metric = of_relations.groupby(["question_set", "metric"], sort=False, as_index=False)
    macro = by_metric.agg(mean=("mean", "mean"), n=("mean", "size"))
    counts = relations.rename("n").reset_index().assign(metric="relations")
    return pd.concat([macro, counts]).assign(by=MACRO, group="")


def average_trainings(means: pd.DataFrame, rows: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return means over each row's trainings, where all have a value; `spread` is their standard deviation."""
    arms = pd.DataFrame([(arm, name) for arm, names in rows.items() for name in names], columns=["arm", "row"])
    means = arms.merge(means, on="row").drop(columns="row").rename(columns={"arm": "row"})
    groups = means.groupby(KEYS, sort=False)
    result = groups.agg(mean=("mean", "mean"), n=("n", "mean"), spread=("mean", "std"), trainings=("mean", "size"))
    result = result.reset_index()
    return result[result["trainings"] == result["row"].map({row: len(names) for row, names in rows.items()})]


def nest_means(means: pd.DataFrame) -> dict[str, Any]:
    """Return the means of one row as its JSON file has them: by set, kind and group, with counts of values."""
    result: dict[str, Any] = {}
    for mean in means.itertuples(index=False):
        target = result.setdefault(mean.question_set, {})
        for key in (f"by_{mean.by}" if mean.by in KINDS else mean.by, mean.group):
            if key:
                target = target.setdefault(key, {})
        metric, n = mean.metric, md.as_count(mean.n)
        if not np.isnan(mean.mean) and mean.by != MACRO and (name := count_name(metric)):
            target[name] = n
        target[metric] = n if np.isnan(mean.mean) else round(mean.mean, DIGITS)
    return result
