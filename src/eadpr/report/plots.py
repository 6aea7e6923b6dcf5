"""Points of the plots that `dvc plots show` draws: a CSV file for each plot, a row per point."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eadpr.report.config import ReportArms
from eadpr.report.summary import MeasuredRows
from eadpr.runtime import files

LOSS = Path("plots/metrics/train/loss.tsv")  # within an arm's training log, as DVCLive names it


def write_plots(
    folder: Path, measures: MeasuredRows, settings: ReportArms, sets: Sequence[str], training: Path
) -> None:
    trained = [*(name for names in settings.trainings.values() for name in names), *settings.one_hop]
    kinds = {"step": np.int64, "loss": np.float64}  # an arm of 0 steps has the header alone
    logs = (pd.read_csv(training / name / LOSS, sep="\t", dtype=kinds).assign(arm=name) for name in trained)
    for name, points in (("topk", top_k_points(measures, sets)), ("loss", pd.concat(logs))):
        files.write_text(folder / f"{name}.csv", points.to_csv(index=False, float_format="%.6f", lineterminator="\n"))


def top_k_points(measures: MeasuredRows, sets: Sequence[str]) -> pd.DataFrame:
    points = []
    for name in sets:
        metrics = measures.rows[measures.rows["question_set"] == name]["metric"]
        metric = next(metric for metric in metrics if metric.startswith("mrr"))
        depth = int(metric.removeprefix("mrr"))
        for row, outcomes in measures.outcomes.items():
            ranks = [values["sums"].to_numpy() for values in outcomes.of_trainings(name, metric)]
            mean = np.mean([top_k_curve(reciprocal, depth) for reciprocal in ranks], axis=0)
            points += [(k, accuracy, row, name) for k, accuracy in enumerate(mean, start=1)]
    return pd.DataFrame(points, columns=["k", "accuracy", "arm", "question_set"])


def top_k_curve(reciprocal_ranks: NDArray[np.float64], depth: int) -> list[float]:
    """Return accuracy at k = 1 ... depth from 1 / rank of each question's first hit, 0 for none."""
    ranks = np.rint(1 / reciprocal_ranks[reciprocal_ranks > 0])
    return [(ranks <= k).sum() / len(reciprocal_ranks) for k in range(1, depth + 1)]
