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
# Metrics that only count: under which names, and which column of `MEANS`.
COUNTED = {
    "ranked": {"n": "n", "n_ranked": "above", "deepest_rank": "highest"},
    "read": {"n": "n", "n_read": "above"},
    "no_answers": {"n_without_answers": "n"},
    "unjudged": {"n_unjudged": "n"},
} | {f"{metric}{suffix}": {f"n_{metric}{suffix}": "n"} for metric in AWARENESS for suffix in (CUT, WITHOUT)}
ONE_HOP = "one_hop_"  # begins the metrics that another arm's one-hop ranking has beside those of paths
EVERYONE = ("ranked", "read")  # have a value of every question of the set
MACRO, QUANTILES = "macro", "score_difference_quantiles"
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
# The long table, which has the name of a training, or of an arm, as `row`. `by` is empty for the whole question set;
# else one of `KINDS`, and `group` the questions of it, or one of the constants above. What only counts has no mean.
KEYS = ["row", "question_set", "by", "group", "metric"]
MEANS = " UNION ALL ".join(
    f"""SELECT question_set, '{by}' AS "by", {group} AS "group", metric, avg(value::DOUBLE) AS mean, count(*) AS n,
        count(*) FILTER (WHERE value > 0) AS above, max(value) AS highest, min({engine.POSITION}) AS place
    FROM outcomes LEFT JOIN positions USING (question_id) WHERE {group} IS NOT NULL GROUP BY ALL"""
    for by, group in {"": "''", **{kind: f'"{kind}"' for kind in KINDS}}.items()
)
OF_DIFFERENCES = f"""
    SELECT question_set, quantile_cont(value::DOUBLE, {[*SHARES]}) AS mean FROM outcomes
    WHERE metric = 'score_difference' GROUP BY question_set
"""


def means(tables: Mapping[str, Path], question_sets: Sequence[str], positions: pa.Table = UNKNOWN) -> pd.DataFrame:
    """Of tables of outcomes by name: every metric's mean over its values and their number `n`, for each set as a whole
    and by kind of question; and the counts that the report shows. `positions` are those of `kinds.positions`.

    Where every question of the set has a relation, MACRO has the means over relations of their means, as
    EntityQuestions (Sciavolino et al., 2021) reports; `n` are the relations with a value. Raises
    ValueError where a table lacks a set.
    """
    parts = []
    for row, path in tables.items():
        found, quantiles = _grouped(path, positions)
        known = found["question_set"].unique()
        if missing := [name for name in question_sets if name not in known]:
            raise ValueError(f"{path} has no question set {missing[0]!r} (it has {', '.join(known)}); run `dvc repro`")
        of_values = found[~found["metric"].isin(COUNTED)]
        whole = pd.concat([of_values, *_counts(found), _macro(found, of_values), quantiles])
        parts.append(whole[whole["question_set"].isin(question_sets)].assign(row=row))
    return pd.concat(parts)[[*KEYS, "mean", "n"]].astype({"mean": np.float64, "n": np.float64})


def _grouped(path: Path, positions: pa.Table) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`MEANS` in the order of the file, and the quantiles of score differences."""
    with engine.connect() as connection:
        connection.execute("SET threads = 1")  # the order of a sum is in its last digits
        engine.view(connection, "outcomes", path, Outcome)
        connection.from_arrow(positions).create("positions")
        found = connection.execute(f'FROM ({MEANS}) ORDER BY place, "by", "group"').df()
        quantiles = connection.execute(OF_DIFFERENCES).df()
    names = [[f"q{round(100 * share):02d}" for share in SHARES]] * len(quantiles)
    return found, quantiles.assign(by=QUANTILES, group="", metric=names).explode(["mean", "metric"])


def _counts(found: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """What COUNTED names, 0 of questions without answers or judgements where none is; `n` by kind of question too."""
    for metric, names in COUNTED.items():
        of_metric = found[found["metric"] == metric]
        for name, column in names.items():
            of_name = of_metric if name == "n" else of_metric[of_metric["by"] == ""]
            yield of_name.assign(metric=name, n=of_name[column], mean=np.nan)
    for metric in ("no_answers", "unjudged"):
        have = {*found[found["metric"] == metric]["question_set"]}
        without = pd.DataFrame({"question_set": [name for name in found["question_set"].unique() if name not in have]})
        yield without.assign(by="", group="", metric=next(iter(COUNTED[metric])), n=0, mean=np.nan)


def _macro(found: pd.DataFrame, of_values: pd.DataFrame) -> pd.DataFrame:
    everyone = found[found["metric"].isin(EVERYONE)]
    relations = everyone[everyone["by"] == "relation"].groupby("question_set")["n"].agg(["size", "sum"])
    asked = everyone[everyone["by"] == ""].set_index("question_set")["n"]
    relations = relations["size"][(relations["size"] > 1) & (relations["sum"] == asked.reindex(relations.index))]
    each = of_values[(of_values["by"] == "relation") & of_values["question_set"].isin(relations.index)]
    groups = each.groupby(["question_set", "metric"], sort=False, as_index=False)
    macro = groups.agg(mean=("mean", "mean"), n=("mean", "size"))
    counted = relations.rename("n").reset_index().assign(metric="relations")
    return pd.concat([macro, counted]).assign(by=MACRO, group="")


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
        n = md.counted(mean.n)
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
    folder: Path, rows: Mapping[str, Sequence[str]], question_sets: Sequence[str], positions: pa.Table = UNKNOWN
) -> MeasuredRows:
    """`rows` name the trainings of each, whose tables of outcomes stand in the folder."""
    tables = {name: folder / f"{name}.parquet" for names in rows.values() for name in names}
    outcomes_ = {row: Outcomes([tables[name] for name in names]) for row, names in rows.items()}
    found = means(tables, question_sets, positions)
    return MeasuredRows(outcomes_, found, averaged(found, rows))
