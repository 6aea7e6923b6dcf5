"""The numbers behind the report's plots and their CSV files for `dvc plots`: a row per point, `arm` is for colour."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eadpr import files
from eadpr.evaluation.config import count_name
from eadpr.evaluation.question_types import TYPES

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


def by_type(found: Mapping[str, Any], metric: str) -> dict[str, tuple[float, int]]:
    """Question type -> (share, pairs or questions) of one question set of a metrics file, in the order of `TYPES`."""
    of_types = {kind: of for kind in TYPES if metric in (of := found["by_type"].get(kind, {}))}
    return {kind: (of[metric], of[count_name(metric) or "n"]) for kind, of in of_types.items()}


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Floats with six digits after the point."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([f"{cell:.6f}" if isinstance(cell, float) else cell for cell in row] for row in rows)
    files.write_text(path, text.getvalue())
