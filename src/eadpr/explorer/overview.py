"""The explorer's overview of a question set: means with intervals, differences, points of the plots, and counts."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eadpr.evaluation.awareness import AWARENESS
from eadpr.evaluation.config import BM25
from eadpr.evaluation.outcomes import together
from eadpr.evaluation.statistics import Interval, paired_bootstrap
from eadpr.explorer import words
from eadpr.explorer.rankings import ExploreInputs
from eadpr.report import markdown as md
from eadpr.report.differences import compare
from eadpr.report.loss_log import read_loss
from eadpr.report.plan import ReportPlan
from eadpr.report.summary import MeasuredRows, select_set
from eadpr.runtime import files

POINTS = 120  # of a loss curve
DIGITS = 5


def of_set(name: str, found: MeasuredRows, inputs: ExploreInputs, settings: ReportPlan) -> dict[str, Any]:
    """What the page shows above the questions; `settings` hold the rows shown."""

    def of(row: str, metric: str) -> list[pd.DataFrame]:
        return found.outcomes[row].of_trainings(name, metric)

    columns, pairs = settings.columns, settings.comparisons
    means = _intervals((Side(row, metric, of(row, metric)) for row in settings.rows for metric in columns), settings)
    compared = (
        Side(row, metric, of(row, metric), of(other, metric), BM25 in (row, other))
        for row, other in pairs
        for metric in columns
    )
    apart = _intervals(compared, settings)
    return {
        "means": {row: means.get(row, {}) for row in settings.rows},
        "differences": [{"row": row, "with": other, "metrics": apart.get(row, {})} for row, other in pairs],
        "trainings": {row: len(names) for row, names in settings.rows.items()},
        "topk": _curves(_table(inputs.report / "topk.csv", name), settings, "accuracy"),
        "types": _by_type(inputs.report / "aa_by_type.csv", name, settings),
        "scores": {
            metric: _curves(of_metric, settings, "low", "high", "share")
            for metric, of_metric in _table(inputs.report / "score_differences.csv", name).groupby("metric", sort=False)
        },
        "counts": list(_counts(name, found.rows, inputs, settings)),
    }


def losses(training: Path, settings: ReportPlan) -> dict[str, list[list[float]]]:
    """Of each arm's first training steps and the mean loss around them."""
    curves = {}
    for row, (name, *_) in settings.arms.items():
        found = read_loss(training / name)
        parts = np.array_split(found.to_numpy(np.float64), min(POINTS, len(found))) if len(found) else []
        curves[row] = [[round(float(part[-1, 0])), _rounded(part[:, 1].mean())] for part in parts]
    return curves


class Side(NamedTuple):
    """Where a mean, or a difference of two, stands in the overview, and one metric of its trainings."""

    row: str
    metric: str
    trainings: Sequence[pd.DataFrame]
    other: Sequence[pd.DataFrame] = ()
    fixed: bool = False


def _intervals(sides: Iterable[Side], settings: ReportPlan) -> dict[str, dict[str, list[float]]]:
    """By row and metric the estimate, its bounds and the number of questions; as the report has them. Nothing of a
    side whose trainings share no question."""
    options = settings.sampling._asdict()
    found: dict[str, dict[str, list[float]]] = {}
    single: dict[bytes, list[tuple[Side, NDArray, NDArray]]] = {}  # drawn together where questions have as many values
    for side in sides:
        sums, counts = together([*side.trainings, *side.other])
        if not len(counts):
            continue
        if len(side.trainings) == 1 and len(side.other) < 2:
            single.setdefault(counts.tobytes(), []).append((side, sums[0] - sums[1:].sum(axis=0), counts))
        elif side.other:
            of = compare(side.trainings, side.other, settings.sampling, fixed=side.fixed)
            found.setdefault(side.row, {})[side.metric] = _listed(of.interval)
        else:
            of = paired_bootstrap(sums, np.zeros_like(sums), counts=counts, **options)
            found.setdefault(side.row, {})[side.metric] = _listed(of.both)
    for group in single.values():
        values = np.array([own for _, own, _ in group])
        each = paired_bootstrap(values, np.zeros_like(values), counts=group[0][2], **options).each
        for (side, _, _), interval in zip(group, each, strict=True):
            found.setdefault(side.row, {})[side.metric] = _listed(interval)
    return found


def _listed(found: Interval) -> list[float]:
    return [*map(_rounded, found[:3]), found.n]


def _curves(found: pd.DataFrame, settings: ReportPlan, *columns: str) -> dict[str, list[list[float]]]:
    """By row, the columns of a plot's points as lists."""
    own = {row: found[found["arm"] == row] for row in settings.rows}
    return {row: [[*map(_rounded, of[column])] for column in columns] for row, of in own.items() if len(of)}


def _by_type(path: Path, name: str, settings: ReportPlan) -> list[list[Any]]:
    found = _table(path, name)
    found = found[found["arm"].isin([*settings.arms])]
    columns = ["type", "arm", "metric", "share", "pairs"]
    return [[*of, _rounded(share), md.as_count(n)] for *of, share, n in found[columns].itertuples(index=False)]


def _table(path: Path, name: str) -> pd.DataFrame:
    """The points of a question set."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `dvc repro report`")
    found = pd.read_csv(path, keep_default_na=False)
    return found[found["question_set"] == name]


def _counts(name: str, means: pd.DataFrame, inputs: ExploreInputs, settings: ReportPlan) -> Iterator[list[Any]]:
    """Rows of what it is, what that means, and a number for each row of the overview (None where there is none)."""
    meanings = words.QUESTIONS | {key: said for metric in AWARENESS for key, said in words.pairs(metric).items()}
    whole = select_set(means, name)
    counted = {(row, metric): n for row, metric, n in whole[["row", "metric", "n"]].itertuples(index=False)}
    for key, said in meanings.items():
        yield from _line(said, [counted.get((row, key)) for row in settings.rows])
    logged = [_leaves(inputs.training / row / "metrics.json", row in settings.arms) for row in settings.rows]
    refused = [_leaves(inputs.negatives / row / "report.json", row in settings.arms) for row in settings.rows]
    for meanings, found in ((words.TRAINING, logged), (words.REFUSED, refused)):
        for key, said in meanings.items():
            yield from _line(said, [of.get(key) for of in found])
    of_set = files.read_json(inputs.distractors / "report.json").get(name, {})
    for strategy in (settings.strategy, "placebo", "placebo_words"):
        cut = of_set.get(strategy, {}).get("cut", {"dropped": {}})
        what = "a distractor" if strategy == settings.strategy else f"the placebo “{strategy.replace('_', ' ')}”"
        for reason, count in cut["dropped"].items():
            said = words.DROPPED.get(reason, reason.replace("_", " "))
            yield [f"positives without {what}: {said}", "not compared in that measure", [count] * len(settings.rows)]


def _line(said: tuple[str, str], values: Sequence[float | None]) -> Iterator[list[Any]]:
    """Nothing where nothing was counted."""
    if any(values):
        yield [*said, [None if value is None or np.isnan(value) else md.as_count(_rounded(value)) for value in values]]


def _leaves(path: Path, trained: bool) -> dict[str, float]:
    if not trained:
        return {}
    found = md.leaves(files.read_json(path))
    return {name.rpartition(".")[2]: value for name, value in found.items()}


def _rounded(value: float) -> float:
    return round(float(value), DIGITS)
