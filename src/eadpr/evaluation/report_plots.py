"""The report's plots, each as a CSV file for `dvc plots` and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eadpr import files, tables
from eadpr.config import Sets
from eadpr.evaluation import plot_data, plots
from eadpr.evaluation.awareness import differences
from eadpr.evaluation.comparisons import Outcomes
from eadpr.evaluation.config import BM25, ReportArms
from eadpr.questions import select
from eadpr.records import PairScore


def write_top_k(
    folder: Path, found: dict[str, Any], outcomes: dict[str, Outcomes], settings: ReportArms, sets: Sets
) -> None:
    curves: dict[str, dict[str, list[float]]] = {}
    for name in sets.evaluate:
        metric = next(key for key in found[BM25][name] if key.startswith("mrr"))
        depth = int(metric.removeprefix("mrr"))
        curves[name] = {
            row: plot_data.mean_curve([plot_data.top_k_curve(t.sums, depth) for t in of.per_training(name, metric)])
            for row, of in outcomes.items()
        }
    rows = (
        (k, accuracy, row, name)
        for name, of_set in curves.items()
        for row, curve in of_set.items()
        for k, accuracy in enumerate(curve, start=1)
    )
    plot_data.write_csv(folder / "topk.csv", ["k", "accuracy", "arm", "question_set"], rows)
    files.write_text(folder / "topk.svg", plots.top_k(curves, list(settings.rows)))


def write_losses(folder: Path, training: Path, trained: Sequence[str]) -> None:
    curves = {name: plot_data.read_loss(training / name) for name in trained}
    rows = ((step, loss, arm) for arm, curve in curves.items() for step, loss in zip(*curve, strict=True))
    plot_data.write_csv(folder / "loss.csv", ["step", "loss", "arm"], rows)
    files.write_text(folder / "loss.svg", plots.losses(curves, list(curves)))


def write_by_type(folder: Path, found: dict[str, Any], settings: ReportArms, sets: Sets) -> None:
    """The plot shows AA; the file also has AA by evidence."""
    rows, shares = [], {}
    for name in sets.evaluate:
        for arm in settings.arms:
            for metric in ("aa", "aa_evidence"):
                of_arm = plot_data.by_type(found[arm][name], metric)
                rows += [(kind, value, n, arm, metric, name) for kind, (value, n) in of_arm.items()]
                if metric == "aa" and of_arm:
                    shares.setdefault(name, {})[arm] = of_arm
    header = ["type", "share", "pairs", "arm", "metric", "question_set"]
    plot_data.write_csv(folder / "aa_by_type.csv", header, rows)
    if shares:
        files.write_text(folder / "aa_by_type.svg", plots.by_type(shares, settings.arms))


def write_score_differences(folder: Path, records: Path, pairs: Path, settings: ReportArms, sets: Sets) -> None:
    scores = {
        arm: [tables.read(pairs / f"{name}.parquet", PairScore) for name in trainings]
        for arm, trainings in settings.trainings.items()
    }
    rows, shares, edges = [], {}, {}
    for name in sets.evaluate:
        questions = frozenset(select(records / "question_sets.parquet", [name]))
        values = {
            arm: np.concatenate([differences(table, "distractor", questions).values for table in of_arm])
            for arm, of_arm in scores.items()
        }
        values = {arm: of_arm for arm, of_arm in values.items() if len(of_arm)}
        if not values:
            continue
        edges[name] = plot_data.bin_edges(values.values(), settings.bins)
        shares[name] = {arm: plot_data.bin_shares(of_arm, edges[name]) for arm, of_arm in values.items()}
        bins = list(zip(edges[name], edges[name][1:], strict=False))
        for arm, of_arm in shares[name].items():
            rows += [((a + b) / 2, a, b, part, arm, name) for (a, b), part in zip(bins, of_arm, strict=True)]
    header = ["difference", "low", "high", "share", "arm", "question_set"]
    plot_data.write_csv(folder / "score_differences.csv", header, rows)
    if shares:
        files.write_text(folder / "score_differences.svg", plots.score_differences(shares, edges, settings.arms))
