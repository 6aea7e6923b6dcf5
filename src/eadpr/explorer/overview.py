"""The explorer's overview of a question set: means with intervals, differences, points of the plots, and counts."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from eadpr.evaluation.awareness import AWARENESS
from eadpr.evaluation.outcomes import together
from eadpr.evaluation.statistics import Interval, paired_bootstrap
from eadpr.explorer import words
from eadpr.explorer.rankings import ExploreInputs
from eadpr.report import counts
from eadpr.report import markdown as md
from eadpr.report.config import ReportArms, Rows, Sampling
from eadpr.report.differences import compare, is_fixed
from eadpr.report.loss_log import read_loss
from eadpr.report.summary import MeasuredRows, select_set
from eadpr.runtime import files

POINTS = 120  # of a loss curve
DIGITS = 5
BEHIND = ("aa_evidence", "controlled_aa_evidence")  # metrics with a plot of their score differences


class Side(NamedTuple):
    """One metric of a row's trainings and, for a difference, of the row it is compared with."""

    row: str
    metric: str
    trainings: Sequence[pd.DataFrame]
    reference: Sequence[pd.DataFrame] = ()
    fixed: bool = False


def make_overview(name: str, measured: MeasuredRows, inputs: ExploreInputs, settings: ReportArms) -> dict[str, Any]:
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
    scores = _read_points(inputs.report / "score_differences.csv", name).groupby("metric", sort=False)
    return {
        "means": {row: means[row] for row in rows},
        "differences": [
            {"row": row, "with": other, "metrics": differences[row]} for row, other in settings.comparisons
        ],
        "trainings": {row: len(names) for row, names in settings.rows.items()},
        "topk": _curves(_read_points(inputs.report / "topk.csv", name), rows, "accuracy"),
        "types": _shares_by_type(inputs.report / "aa_by_type.csv", name, [*settings.trainings]),
        "scores": {metric: _curves(points, rows, "low", "high", "share") for metric, points in scores},
        "counts": list(_counts(name, measured.rows, inputs, settings)),
    }


def loss_curves(training: Path, arms: Rows) -> dict[str, list[list[float]]]:
    """Return steps of each arm's first training and the mean loss around them."""
    curves = {}
    for row, (name, *_) in arms.items():
        losses = read_loss(training / name).to_numpy(np.float64)
        parts = np.array_split(losses, min(POINTS, len(losses))) if len(losses) else []
        curves[row] = [[round(float(part[-1, 0])), _round(part[:, 1].mean())] for part in parts]
    return curves


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


def _curves(points: pd.DataFrame, rows: Sequence[str], *columns: str) -> dict[str, list[list[float]]]:
    """Return by row the columns of a plot's points as lists."""
    by_row = {row: points[points["arm"] == row] for row in rows}
    return {row: [[*map(_round, of[column])] for column in columns] for row, of in by_row.items() if len(of)}


def _shares_by_type(path: Path, name: str, arms: Sequence[str]) -> list[list[Any]]:
    points = _read_points(path, name)
    points = points[points["arm"].isin(arms)][["type", "arm", "metric", "share", "pairs"]]
    return [[*keys, _round(share), md.as_count(n)] for *keys, share, n in points.itertuples(index=False)]


def _read_points(path: Path, name: str) -> pd.DataFrame:
    """Return the points of a question set."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `dvc repro report`")
    points = pd.read_csv(path, keep_default_na=False)
    return points[points["question_set"] == name]


def _counts(name: str, means: pd.DataFrame, inputs: ExploreInputs, settings: ReportArms) -> Iterator[list[Any]]:
    """Yield label, meaning and a number for each row of the overview (None if it has none)."""
    of_set = select_set(means, name)
    counted = {(row, metric): n for row, metric, n in of_set[["row", "metric", "n"]].itertuples(index=False)}
    for key, label in counts.QUESTIONS.items():
        text = label if key == "n" else f"questions {label}"
        yield from _line(text, words.MEANINGS.get(key, ""), [counted.get((row, key)) for row in settings.rows])
    for key, label in counts.PAIRS.items():
        metric = key.removeprefix("n_")
        if metric in AWARENESS:
            title = label
        else:
            metric, label = key, f"{title} {label}"
        yield from _line(label, "", [counted.get((row, metric)) for row in settings.rows])
    logged = [_read_numbers(inputs.training / row / "metrics.json", row in settings.trainings) for row in settings.rows]
    for key, label in counts.TRAINING.items():
        text = label if key == "questions" else f"training: {label}"
        yield from _line(text, words.MEANINGS.get(key, ""), [numbers.get(key) for numbers in logged])
    refused = [
        _read_numbers(inputs.negatives / row / "report.json", row in settings.trainings) for row in settings.rows
    ]
    for key, label in words.REFUSED.items():
        yield from _line(label, "", [numbers.get(key) for numbers in refused])
    distractors = files.read_json(inputs.distractors / "report.json").get(name, {})
    for strategy in (settings.strategy, "placebo", "placebo_words"):
        text = "a distractor" if strategy == settings.strategy else f"the placebo “{strategy.replace('_', ' ')}”"
        for reason, count in distractors.get(strategy, {}).get("cut", {"dropped": {}})["dropped"].items():
            why = words.DROPPED.get(reason, reason.replace("_", " "))
            yield [f"positives without {text}: {why}", "not compared in that measure", [count] * len(settings.rows)]


def _line(label: str, meaning: str, values: Sequence[float | None]) -> Iterator[list[Any]]:
    """Yield nothing where nothing was counted."""
    if any(values):
        numbers = [None if value is None or np.isnan(value) else md.as_count(_round(value)) for value in values]
        yield [label, meaning, numbers]


def _read_numbers(path: Path, trained: bool) -> dict[str, float]:
    if not trained:
        return {}
    return {name.rpartition(".")[2]: value for name, value in md.leaves(files.read_json(path)).items()}


def _round(value: float) -> float:
    return round(float(value), DIGITS)
