"""Plots of the report: a CSV file for `dvc plots`, a row per point, and the same as SVG, the same bytes from the same
numbers in every process.

There is one panel per `question_set` and `metric`, where the points have them; a plot's function draws one of them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TypeVar

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from eadpr.evaluation.awareness import AWARENESS, symbol
from eadpr.evaluation.config import BM25
from eadpr.report import markdown as md
from eadpr.report.config import UNTRAINED
from eadpr.runtime import files

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
