"""Points of the plots that `dvc plots show` draws: a CSV file for each plot, a row per point."""

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from eadpr.evaluation.awareness import of_trainings
from eadpr.evaluation.kinds import KINDS, KindName
from eadpr.report import markdown as md
from eadpr.report.config import ReportArms, ReportInputs, Rows
from eadpr.report.summary import MeasuredRows
from eadpr.runtime import files
from eadpr.storage.questions import read_question_ids

BY_KIND = ("aa", "placebo_words", "controlled_aa", "aa_evidence", "placebo", "controlled_aa_evidence")
BEHIND = ("aa_evidence", "placebo", "controlled_aa_evidence")
LOSS = Path("plots/metrics/train/loss.tsv")  # within an arm's training log, as DVCLive names it
BINS = 40  # of the histogram of score differences, about
OUTER = 0.001  # share of score differences on either side that falls in the outermost bins


def write_plots(
    folder: Path, measured: MeasuredRows, settings: ReportArms, sets: Sequence[str], inputs: ReportInputs
) -> None:
    trained = [*(name for names in settings.trainings.values() for name in names), *settings.one_hop]
    plots = {
        "topk": top_k_points(measured, sets),
        "loss": pd.concat([read_loss(inputs.training / name).assign(arm=name) for name in trained]),
        "score_differences": score_difference_points(inputs.records, inputs.pairs, settings.trainings, sets),
    }
    for kind in KINDS:
        if KINDS[kind].groups:
            plots[f"aa_by_{kind}"] = kind_points(kind, measured.rows, list(settings.trainings), sets)
    for name, points in plots.items():
        text = points.to_csv(index=False, float_format="%.6f", lineterminator="\n")
        files.write_text(folder / f"{name}.csv", text)


def top_k_points(measured: MeasuredRows, sets: Sequence[str]) -> pd.DataFrame:
    points = []
    for name in sets:
        metrics = measured.rows[measured.rows["question_set"] == name]["metric"]
        metric = next(metric for metric in metrics if metric.startswith("mrr"))
        depth = int(metric.removeprefix("mrr"))
        for row, outcomes in measured.outcomes.items():
            ranks = [values["sums"].to_numpy() for values in outcomes.of_trainings(name, metric)]
            mean = np.mean([top_k_curve(reciprocal, depth) for reciprocal in ranks], axis=0)
            points += [(k, accuracy, row, name) for k, accuracy in enumerate(mean, start=1)]
    return pd.DataFrame(points, columns=["k", "accuracy", "arm", "question_set"])


def top_k_curve(reciprocal_ranks: NDArray[np.float64], depth: int) -> list[float]:
    """Return accuracy at k = 1 ... depth from 1 / rank of each question's first hit, 0 for none."""
    ranks = np.rint(1 / reciprocal_ranks[reciprocal_ranks > 0]).astype(int)
    hits_at_rank = np.bincount(ranks, minlength=depth + 1)[1 : depth + 1]
    return (np.cumsum(hits_at_rank) / len(reciprocal_ranks)).tolist()


def read_loss(log: Path) -> pd.DataFrame:
    """Return columns `step` and `loss` of an arm's training log; an arm of 0 steps has the header alone."""
    table = pd.read_csv(log / LOSS, sep="\t").drop(columns="timestamp", errors="ignore")
    return table.set_axis(["step", "loss"], axis=1).astype({"step": np.int64, "loss": np.float64})


def kind_points(kind: KindName, means: pd.DataFrame, arms: Sequence[str], sets: Sequence[str]) -> pd.DataFrame:
    points = []
    for name in sets:
        groups = means[(means["question_set"] == name) & (means["by"] == kind)].set_index(["row", "metric", "group"])
        for arm, metric, group in product(arms, BY_KIND, KINDS[kind].groups):
            if (key := (arm, metric, group)) in groups.index:
                points.append((group, groups["mean"][key], md.as_count(groups["n"][key]), arm, metric, name))
    return pd.DataFrame(points, columns=[kind, "share", "pairs", "arm", "metric", "question_set"])


def score_difference_points(records: Path, pairs: Path, arms: Rows, sets: Sequence[str]) -> pd.DataFrame:
    """Return the histograms of `BEHIND`, in the same bins for all of a question set."""
    parts = [pd.DataFrame(columns=["difference", "low", "high", "share", "arm", "metric", "question_set"])]
    for name in sets:
        values, questions = {}, pa.array(read_question_ids(records / "question_sets.parquet", [name]), pa.string())
        for arm, names in arms.items():
            for metric, scored in of_trainings([pairs / f"{x}.parquet" for x in names], questions, BEHIND):
                if len(scored.values):
                    values[metric, arm] = scored.values
        edges = np.array(bin_edges(values.values(), BINS) if values else [])
        low, high = edges[:-1], edges[1:]
        for metric, arm in sorted(values, key=lambda key: BEHIND.index(key[0])):
            shares = bin_shares(values[metric, arm], edges)
            histogram = pd.DataFrame({"difference": (low + high) / 2, "low": low, "high": high, "share": shares})
            parts.append(histogram.assign(arm=arm, metric=metric, question_set=name))
    return pd.concat(parts[1:] or parts)


def bin_edges(differences: Iterable[NDArray[np.float64]], bins: int) -> list[float]:
    """Return the edges of about `bins` equal bins over the bulk of all values; 0 is an edge: no bin mixes signs."""
    values = np.concatenate(list(differences))
    low, high = np.quantile(values, [OUTER, 1 - OUTER])
    low, high = min(low, 0.0), max(high, 0.0)
    width = (high - low) / bins or 1.0
    below, above = max(1, int(np.ceil(-low / width))), max(1, int(np.ceil(high / width)))
    return [float(i * width) for i in range(-below, above + 1)]


def bin_shares(values: NDArray[np.float64], edges: Sequence[float]) -> list[float]:
    """Return the share of the values in every bin, those beyond in the first and the last; a bin takes its upper edge,
    so that a difference of 0, a tie, stands on the negative side, as in AA."""
    places = pd.cut(np.clip(values, edges[0], edges[-1]), edges, labels=False, include_lowest=True)
    return (np.bincount(places, minlength=len(edges) - 1) / len(values)).tolist()
