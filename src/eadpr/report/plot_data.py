"""What the report's plots show: points by `arm`, of all arms and question sets."""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from eadpr.evaluation.awareness import of_trainings
from eadpr.evaluation.config import ReportArms
from eadpr.evaluation.kinds import KINDS, KindName
from eadpr.report import markdown as md
from eadpr.report import plots
from eadpr.report.summary import MeasuredRows
from eadpr.runtime.section import Sets
from eadpr.storage.questions import read_question_ids

LOSS = Path("plots/metrics/train/loss.tsv")  # within an arm's training log, as DVCLive names it
OF_KINDS = ("aa", "placebo_words", "controlled_aa", "aa_evidence", "placebo", "controlled_aa_evidence")
TOP_K = plots.Plot("Top-k accuracy", partial(
    plots.lines, at="k", share="accuracy", x="k (passages)", y="questions with an answer\nin the top k (%)", log=True,
    marker="",
))  # fmt: skip
LOSSES = plots.Plot("Training loss (each arm's own objective)", plots.losses)
BEHIND = ("aa_evidence", "placebo", "controlled_aa_evidence")
DIFFERENCES = plots.Plot("Score differences behind awareness of the evidence", plots.score_differences)
OUTER = 0.001  # share of score differences on either side that falls in the outermost bins


def top_k_curve(reciprocal_ranks: NDArray[np.float64], depth: int) -> list[float]:
    """Accuracy at k = 1 ... depth from 1 / rank of each question's first hit (0 for none), of float32 precision."""
    found = reciprocal_ranks[reciprocal_ranks > 0]
    at_rank = np.bincount(np.rint(1 / found).astype(int), minlength=depth + 1)[1 : depth + 1]
    return (np.cumsum(at_rank) / len(reciprocal_ranks)).tolist()


def read_loss(log: Path) -> pd.DataFrame:
    """Columns `step` and `loss` of an arm's training log; of an arm of 0 steps there is the header alone."""
    path = log / LOSS
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `dvc repro` to train the arm")
    try:
        found = pd.read_csv(path, sep="\t", keep_default_na=False).drop(columns="timestamp", errors="ignore")
        found = found.set_index("step").set_axis(["loss"], axis=1).reset_index()
        return found.astype({"step": np.int64, "loss": np.float64})
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{path} is no log of a training's loss ({error}); run `dvc repro` to train the arm"
        ) from error


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


def write_top_k(folder: Path, found: MeasuredRows, settings: ReportArms, sets: Sets) -> None:
    rows = []
    for name in sets.evaluate:
        metrics = found.rows[found.rows["question_set"] == name]["metric"]
        metric = next(metric for metric in metrics if metric.startswith("mrr"))
        depth = int(metric.removeprefix("mrr"))
        for row, of in found.outcomes.items():
            curves = [
                top_k_curve(of.of_training(i, name, metric)["sums"].to_numpy(), depth) for i in range(len(of.paths))
            ]
            rows += [(k, accuracy, row, name) for k, accuracy in enumerate(np.mean(curves, axis=0), start=1)]
    points = pd.DataFrame(rows, columns=["k", "accuracy", "arm", "question_set"])
    plots.write(folder / "topk", points, TOP_K, list(settings.rows))


def write_losses(folder: Path, training: Path, trained: Sequence[str]) -> None:
    found = pd.concat([read_loss(training / name).assign(arm=name) for name in trained])
    plots.write(folder / "loss", found, LOSSES, trained)


def write_by_kind(folder: Path, kind: KindName, means: pd.DataFrame, settings: ReportArms, sets: Sets) -> None:
    rows = []
    for name in sets.evaluate:
        found = means[(means["question_set"] == name) & (means["by"] == kind)].set_index(["row", "metric", "group"])
        for key in product(settings.arms, OF_KINDS, KINDS[kind].groups):
            if key in found.index:
                arm, metric, group = key
                rows.append((group, found["mean"][key], md.counted(found["n"][key]), arm, metric, name))
    found = pd.DataFrame(rows, columns=[kind, "share", "pairs", "arm", "metric", "question_set"])
    plot = plots.Plot(f"Answer awareness by {KINDS[kind].title}", partial(plots.by_kind, kind=kind))
    plots.write(folder / f"aa_by_{kind}", found, plot, settings.arms)


def write_score_differences(folder: Path, records: Path, pairs: Path, settings: ReportArms, sets: Sets) -> None:
    """Of `BEHIND`, in the same bins for all of a question set."""
    parts = [pd.DataFrame(columns=["difference", "low", "high", "share", "arm", "metric", "question_set"])]
    for name in sets.evaluate:
        values, asked = {}, pa.array(read_question_ids(records / "question_sets.parquet", [name]), pa.string())
        for arm, names in settings.trainings.items():
            paths = [pairs / f"{one}.parquet" for one in names]
            values |= {(metric, arm): own for metric, _, own in of_trainings(paths, asked, BEHIND) if len(own)}
        edges = np.array(bin_edges(values.values(), settings.bins) if values else [])
        low, high = edges[:-1], edges[1:]
        for metric, arm in sorted(values, key=lambda key: BEHIND.index(key[0])):
            bins = {"difference": (low + high) / 2, "low": low, "high": high}
            bins["share"] = bin_shares(values[metric, arm], edges)
            parts.append(pd.DataFrame(bins).assign(arm=arm, metric=metric, question_set=name))
    found = pd.concat(parts[1:] or parts)
    plots.write(folder / "score_differences", found, DIFFERENCES, settings.arms)
