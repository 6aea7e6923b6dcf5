"""The report's plots, each as a CSV file for `dvc plots`, a row per point, `arm` for colour, and as SVG."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eadpr import files
from eadpr.config import Sets
from eadpr.evaluation import plots
from eadpr.evaluation.awareness import of_file
from eadpr.evaluation.config import BM25, ReportArms
from eadpr.evaluation.outcomes import Outcomes
from eadpr.evaluation.report_tables import by_type
from eadpr.questions import select

LOSS = Path("plots/metrics/train/loss.tsv")  # within an arm's training log, as DVCLive names it
OUTER = 0.001  # share of score differences on either side that falls in the outermost bins


def top_k_curve(reciprocal_ranks: NDArray[np.float64], depth: int) -> list[float]:
    """Accuracy at k = 1 ... depth from 1 / rank of each question's first hit (0 for none), of float32 precision."""
    found = reciprocal_ranks[reciprocal_ranks > 0]
    at_rank = np.bincount(np.rint(1 / found).astype(int), minlength=depth + 1)[1 : depth + 1]
    return (np.cumsum(at_rank) / len(reciprocal_ranks)).tolist()


def mean_curve(curves: Sequence[Sequence[float]]) -> list[float]:
    """Mean of curves of one length, point by point."""
    return np.mean(curves, axis=0).tolist()


def read_loss(log: Path) -> tuple[list[int], list[float]]:
    """Steps and losses from an arm's training log: tab-separated, a header, the step in column `step`.

    An arm of 0 steps has the header alone.
    """
    path = log / LOSS
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `dvc repro` to train the arm")
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, delimiter="\t")
        rows = list(reader)
    columns = reader.fieldnames or []
    names = [name for name in columns if name not in ("step", "timestamp")]
    if "step" not in columns or len(names) != 1:
        raise ValueError(f"{path} must have a header of `step` and one more column")
    return [int(row["step"]) for row in rows], [float(row[names[0]]) for row in rows]


def bin_edges(differences: Iterable[NDArray[np.float64]], bins: int) -> list[float]:
    """About `bins` equal bins over the bulk of all arms' values together; 0 is an edge, so that no bin mixes signs."""
    values = np.concatenate(list(differences))
    low, high = np.quantile(values, [OUTER, 1 - OUTER])
    low, high = min(low, 0.0), max(high, 0.0)
    width = (high - low) / bins or 1.0
    below, above = max(1, int(np.ceil(-low / width))), max(1, int(np.ceil(high / width)))
    return [float(i * width) for i in range(-below, above + 1)]


def bin_shares(values: NDArray[np.float64], edges: Sequence[float]) -> list[float]:
    """Share of the values in every bin; the first and the last bin also take what lies beyond them.

    A bin takes its upper edge, so that a difference of 0, a tie, stands on the negative side, as in AA.
    """
    upper = np.searchsorted(np.asarray(edges), values, side="left")
    counts = np.bincount(np.clip(upper, 1, len(edges) - 1) - 1, minlength=len(edges) - 1)
    return (counts / len(values)).tolist()


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Floats with six digits after the point."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([f"{cell:.6f}" if isinstance(cell, float) else cell for cell in row] for row in rows)
    files.write_text(path, text.getvalue())


def write_top_k(
    folder: Path, found: dict[str, Any], outcomes: dict[str, Outcomes], settings: ReportArms, sets: Sets
) -> None:
    curves: dict[str, dict[str, list[float]]] = {}
    for name in sets.evaluate:
        metric = next(key for key in found[BM25][name] if key.startswith("mrr"))
        depth = int(metric.removeprefix("mrr"))
        curves[name] = {
            row: mean_curve([top_k_curve(of.of_training(i, name, metric).sums, depth) for i in range(len(of.paths))])
            for row, of in outcomes.items()
        }
    rows = (
        (k, accuracy, row, name)
        for name, of_set in curves.items()
        for row, curve in of_set.items()
        for k, accuracy in enumerate(curve, start=1)
    )
    write_csv(folder / "topk.csv", ["k", "accuracy", "arm", "question_set"], rows)
    files.write_text(folder / "topk.svg", plots.top_k(curves, list(settings.rows)))


def write_losses(folder: Path, training: Path, trained: Sequence[str]) -> None:
    curves = {name: read_loss(training / name) for name in trained}
    rows = ((step, loss, arm) for arm, curve in curves.items() for step, loss in zip(*curve, strict=True))
    write_csv(folder / "loss.csv", ["step", "loss", "arm"], rows)
    files.write_text(folder / "loss.svg", plots.losses(curves, list(curves)))


def write_by_type(folder: Path, found: dict[str, Any], settings: ReportArms, sets: Sets) -> None:
    """The plot shows AA; the file also has AA by evidence."""
    rows, shares = [], {}
    for name in sets.evaluate:
        for arm in settings.arms:
            for metric in ("aa", "aa_evidence"):
                of_arm = by_type(found[arm][name], metric)
                rows += [(kind, value, n, arm, metric, name) for kind, (value, n) in of_arm.items()]
                if metric == "aa" and of_arm:
                    shares.setdefault(name, {})[arm] = of_arm
    header = ["type", "share", "pairs", "arm", "metric", "question_set"]
    write_csv(folder / "aa_by_type.csv", header, rows)
    if shares:
        files.write_text(folder / "aa_by_type.svg", plots.by_type(shares, settings.arms))


def write_score_differences(folder: Path, records: Path, pairs: Path, settings: ReportArms, sets: Sets) -> None:
    rows, shares, edges = [], {}, {}
    for name in sets.evaluate:
        questions = pa.array(select(records / "question_sets.parquet", [name]), pa.string())
        values = {}
        for arm, trainings in settings.trainings.items():
            found = [of_file(pairs / f"{one}.parquet", questions).get("aa_evidence") for one in trainings]
            values[arm] = np.concatenate([of.values for of in found if of] or [[]])
        values = {arm: of_arm for arm, of_arm in values.items() if len(of_arm)}
        if not values:
            continue
        edges[name] = bin_edges(values.values(), settings.bins)
        shares[name] = {arm: bin_shares(of_arm, edges[name]) for arm, of_arm in values.items()}
        bins = list(zip(edges[name], edges[name][1:], strict=False))
        for arm, of_arm in shares[name].items():
            rows += [((a + b) / 2, a, b, part, arm, name) for (a, b), part in zip(bins, of_arm, strict=True)]
    header = ["difference", "low", "high", "share", "arm", "question_set"]
    write_csv(folder / "score_differences.csv", header, rows)
    if shares:
        files.write_text(folder / "score_differences.svg", plots.score_differences(shares, edges, settings.arms))
