"""Plots of the report: a CSV file for `dvc plots`, a row per point, and the same as SVG, the same bytes from the same
numbers in every process.

There is one panel per `question_set` and `metric`, where the points have them; a plot's function draws one of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from io import StringIO
from itertools import product
from pathlib import Path
from typing import TypeVar

import matplotlib
import numpy as np
import pandas as pd
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from numpy.typing import NDArray

from eadpr.evaluation.awareness import AWARENESS, of_trainings, symbol
from eadpr.evaluation.config import BM25
from eadpr.evaluation.kinds import KINDS, KindName
from eadpr.report import markdown as md
from eadpr.report.config import UNTRAINED, ReportArms, ReportInputs, Rows
from eadpr.report.summary import MeasuredRows
from eadpr.runtime import files
from eadpr.storage.questions import read_question_ids

GREY = "#7f7f7f"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito
DASHES = ("-", "--", ":", "-.")
STYLE = {
    "svg.hashsalt": "eadpr",  # ids of clip paths
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}
PANEL = (5.6, 3.8)  # inches
COLUMNS = 3  # of panels; a row of them is a measure, its placebo rate and the controlled measure
TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
POINTS = 500  # of a loss curve that are drawn
BY_KIND = ("aa", "placebo_words", "controlled_aa", "aa_evidence", "placebo", "controlled_aa_evidence")
TOP_K = {"x": "k (passages)", "y": "questions with an answer\nin the top k (%)", "log": True, "marker": ""}
BEHIND = ("aa_evidence", "placebo", "controlled_aa_evidence")
LOSS = Path("plots/metrics/train/loss.tsv")  # within an arm's training log, as DVCLive names it
BINS = 40  # of the histogram of score differences, about
OUTER = 0.001  # share of score differences on either side that falls in the outermost bins

T = TypeVar("T")
Draw = Callable[..., None]  # of the axes, points and arms


def look(arms: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the colour and line style of every arm: what is not trained grey, all else in order."""
    styles = {BM25: {"color": GREY, "linestyle": "--"}, UNTRAINED: {"color": GREY, "linestyle": ":"}}
    for i, arm in enumerate(arm for arm in arms if arm not in styles):
        styles[arm] = {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}
    return styles


def write(path: Path, points: pd.DataFrame, arms: Sequence[str], title: str, draw: Draw) -> None:
    """Write `path`.csv with a row per point and, if there are points, `path`.svg, where `draw` draws a panel."""
    files.write_text(path.with_suffix(".csv"), points.to_csv(index=False, float_format="%.6f", lineterminator="\n"))
    if len(points):
        files.write_text(path.with_suffix(".svg"), svg(_panels(points), partial(draw, arms=arms), title, arms))


def lines(
    axes: Axes, points: pd.DataFrame, arms: Sequence[str], *, x: str, y: str = "%", log: bool = False, marker: str = "."
) -> None:
    """Draw the shares of the second column over the first; `x` and `y` label the axes."""
    styles, (x_column, y_column) = look(arms), points.columns[:2]
    for arm, curve in _by_arm(points, arms):
        axes.plot(curve[x_column], 100 * curve[y_column], marker=marker, label=arm, **styles[arm])
    if log:
        deepest = points[x_column].max()
        axes.set_xscale("log")
        axes.set_xlim(1, max(deepest, 2))
        ticks = [k for k in TICKS if k <= deepest]
        axes.set_xticks(ticks, map(str, ticks))
        axes.minorticks_off()
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def losses(axes: Axes, points: pd.DataFrame, arms: Sequence[str]) -> None:
    """Draw `loss` by `step`: single steps faint, the running mean on top."""
    styles = look(arms)
    for arm, curve in _by_arm(points, arms):
        mean = curve["loss"].rolling(max(1, len(curve) // 40), min_periods=1).mean()
        drawn = slice(None, None, -(-len(curve) // POINTS))
        axes.plot(curve["step"][drawn], curve["loss"][drawn], **styles[arm] | {"linewidth": 0.6, "alpha": 0.3})
        axes.plot(curve["step"][drawn], mean[drawn], label=arm, **styles[arm])
    axes.set_xlabel("step")
    axes.set_ylabel("training loss (nats)")
    axes.set_ylim(bottom=0)


def by_kind(axes: Axes, points: pd.DataFrame, arms: Sequence[str]) -> None:
    """Draw bars of the `share` of `pairs` by the groups of questions in the first column."""
    kind, styles, present = points.columns[0], look(arms), _by_arm(points, arms)
    groups, width = list(points[kind].unique()), 0.8 / len(present)
    for i, (arm, bars) in enumerate(present):
        x = [groups.index(group) - 0.4 + (i + 0.5) * width for group in bars[kind]]
        axes.bar(x, 100 * bars["share"], width=0.92 * width, label=arm, color=styles[arm]["color"])
    counts = points.groupby(kind)["pairs"].max()
    axes.axhline(50, color="black", linewidth=0.8, linestyle=":")
    axes.set_xticks(range(len(groups)), [f"{name}\nn={md.as_count(counts[name]):,}" for name in groups], fontsize=9)
    axes.grid(visible=False, axis="x")
    axes.set_ylim(0, 100)
    axes.set_ylabel("pairs (%)")


def score_differences(axes: Axes, points: pd.DataFrame, arms: Sequence[str]) -> None:
    """Draw the `share` of one metric's pairs per bin from `low` to `high`."""
    styles, compared = look(arms), AWARENESS[points["metric"].iloc[0]]
    for arm, bins in _by_arm(points, arms):
        edges = [*bins["low"], bins["high"].iloc[-1]]
        heights = 100 * bins["share"].to_numpy()
        axes.stairs(heights, edges, fill=True, alpha=0.25, color=styles[arm]["color"])
        axes.stairs(heights, edges, label=arm, **styles[arm] | {"linewidth": 1.4})
    axes.axvline(0, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel(f"s(q, {symbol(compared.above)}) − s(q, {symbol(compared.below)})")
    axes.set_ylabel("pairs (%)")


def _panels(points: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Split points by question set and metric, where they have them."""
    if "question_set" not in points:
        return {"": points}
    names = points["question_set"]
    if "metric" in points:
        names = names + ": " + points["metric"].map(md.title)
    return dict(iter(points.groupby(names, sort=False)))


def _by_arm(points: pd.DataFrame, arms: Sequence[str]) -> list[tuple[str, pd.DataFrame]]:
    """Return the arms that have points, with these."""
    groups = dict(iter(points.groupby("arm")))
    return [(arm, groups[arm]) for arm in arms if arm in groups]


def svg(panels: Mapping[str, T], draw: Callable[[Axes, T], None], title: str, arms: Sequence[str]) -> str:
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever matplotlibrc a user has
        matplotlib.rcParams.update(STYLE)
        columns, rows = min(len(panels), COLUMNS), -(-len(panels) // COLUMNS)
        figure = Figure(figsize=(PANEL[0] * columns, PANEL[1] * rows), layout="constrained")
        FigureCanvasSVG(figure)
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        handles = {}
        for axes, (name, points) in zip(grid, panels.items(), strict=False):
            draw(axes, points)
            axes.set_title(name)
            drawn, labels = axes.get_legend_handles_labels()
            handles |= dict(zip(labels, drawn, strict=True))
        figure.suptitle(title, fontsize=11)
        labels = [arm for arm in arms if arm in handles]
        if labels:
            in_order = [handles[label] for label in labels]
            figure.legend(in_order, labels, loc="outside lower center", ncols=min(len(labels), 6))
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def write_plots(
    folder: Path, measured: MeasuredRows, settings: ReportArms, sets: Sequence[str], inputs: ReportInputs
) -> None:
    arms, names = list(settings.trainings), [name for names in settings.trainings.values() for name in names]
    trained = [*names, *settings.one_hop]
    draw_top_k = partial(lines, **TOP_K)
    write(folder / "topk", top_k_points(measured, sets), list(settings.rows), "Top-k accuracy", draw_top_k)
    curves = pd.concat([read_loss(inputs.training / name).assign(arm=name) for name in trained])
    write(folder / "loss", curves, trained, "Training loss (each arm's own objective)", losses)
    for kind in KINDS:
        if KINDS[kind].groups:
            points, title = kind_points(kind, measured.rows, arms, sets), f"Answer awareness by {KINDS[kind].title}"
            write(folder / f"aa_by_{kind}", points, arms, title, by_kind)
    points = score_difference_points(inputs.records, inputs.pairs, settings.trainings, sets)
    title = "Score differences behind awareness of the evidence"
    write(folder / "score_differences", points, arms, title, score_differences)


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
