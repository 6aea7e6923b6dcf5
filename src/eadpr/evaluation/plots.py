"""Plots of the report as image files: SVG without network, the same bytes from the same numbers in every process.

Each function draws one panel per question set (the loss has one panel) and gives the SVG's text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

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
TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
POINTS = 500  # of a loss curve that are drawn

Panels = Mapping[str, Callable[[Axes], None]]


def look(arms: Sequence[str]) -> dict[str, dict[str, str]]:
    """Colour and line style of every arm: BM25 grey, the others in their order."""
    styles, drawn = {}, 0
    for arm in arms:
        if arm == "bm25":
            styles[arm] = {"color": GREY, "linestyle": "--"}
        else:
            colour, dash = COLOURS[drawn % len(COLOURS)], DASHES[drawn // len(COLOURS) % len(DASHES)]
            styles[arm] = {"color": colour, "linestyle": dash}
            drawn += 1
    return styles


Curve = tuple[Sequence[float], Sequence[float]]  # x and shares (0 to 1)


def top_k(curves: Mapping[str, Mapping[str, Sequence[float]]], arms: Sequence[str]) -> str:
    """`curves[question set][arm]` holds accuracies (0 to 1) at k = 1, 2, ...; k on a logarithmic axis."""
    found = {
        name: {arm: (range(1, len(shares) + 1), shares) for arm, shares in of_set.items()}
        for name, of_set in curves.items()
    }
    y = "questions with an answer\nin the top k (%)"
    return _shares(found, arms, look(arms), title="Top-k accuracy", x="k (passages)", y=y, log=True)


def exact_match(curves: Mapping[str, Mapping[str, Curve]], arms: Sequence[str]) -> str:
    """`curves[question set][arm]` holds numbers of passages read, on a logarithmic axis, and shares."""
    labels = {"title": "Exact match", "x": "passages read", "y": "exact match (%)"}
    return _shares(curves, arms, look(arms), **labels, log=True, marker=".")


def robustness(curves: Mapping[str, Mapping[str, Curve]], arms: Sequence[str]) -> str:
    """`curves[panel][arm]` holds counts of near-duplicates and shares."""
    labels = {"title": "As near-duplicates join the corpus", "x": "near-duplicates per question", "y": "%"}
    return _shares(curves, arms, look(["bm25", *arms]), **labels, marker=".")


def _shares(
    curves: Mapping[str, Mapping[str, Curve]],
    arms: Sequence[str],
    styles: Mapping[str, dict[str, str]],
    *,
    title: str,
    x: str,
    y: str,
    log: bool = False,
    marker: str = "",
) -> str:
    def panel(axes: Axes, of_panel: Mapping[str, Curve]) -> None:
        for arm in arms:
            if arm in of_panel:
                at, shares = map(np.asarray, of_panel[arm])
                axes.plot(at, 100 * shares, marker=marker, label=arm, **styles[arm])
        if log:
            _over_passages(axes, max(at[-1] for at, _ in of_panel.values()))
        axes.set_xlabel(x)
        axes.set_ylabel(y)

    return _svg({name: _bound(panel, of_panel) for name, of_panel in curves.items()}, title, arms)


def losses(curves: Mapping[str, tuple[Sequence[int], Sequence[float]]], arms: Sequence[str]) -> str:
    """`curves[arm]` holds steps and losses: single steps faint, the running mean of all on top."""
    styles = look(["bm25", *arms])

    def panel(axes: Axes) -> None:
        for arm in arms:
            steps, values = (np.asarray(column, dtype=np.float64) for column in curves[arm])
            if not len(steps):  # an arm of 0 steps
                continue
            mean = smooth(values, max(1, len(values) // 40))
            step = -(-len(values) // POINTS)
            axes.plot(steps[::step], values[::step], **styles[arm] | {"linewidth": 0.6, "alpha": 0.3})
            axes.plot(steps[::step], mean[::step], label=arm, **styles[arm])
        axes.set_xlabel("step")
        axes.set_ylabel("training loss (nats)")
        axes.set_ylim(bottom=0)

    return _svg({"": panel}, "Training loss (each arm's own objective)", arms)


def by_type(shares: Mapping[str, Mapping[str, Mapping[str, tuple[float, int]]]], arms: Sequence[str]) -> str:
    """`shares[question set][arm][type]` is (AA from 0 to 1, pairs)."""
    styles = look(["bm25", *arms])

    def panel(axes: Axes, of_set: Mapping[str, Mapping[str, tuple[float, int]]]) -> None:
        kinds = list(dict.fromkeys(kind for arm in arms for kind in of_set.get(arm, {})))
        present = [arm for arm in arms if arm in of_set]
        width = 0.8 / max(len(present), 1)
        for i, arm in enumerate(present):
            at = [(kinds.index(kind) - 0.4 + (i + 0.5) * width, 100 * aa) for kind, (aa, _) in of_set[arm].items()]
            x, heights = zip(*at, strict=True)
            axes.bar(x, heights, width=0.92 * width, label=arm, color=styles[arm]["color"])
        counts = {kind: max(of_set[arm][kind][1] for arm in present if kind in of_set[arm]) for kind in kinds}
        axes.axhline(50, color="black", linewidth=0.8, linestyle=":")
        axes.set_xticks(range(len(kinds)), [f"{kind}\nn={counts[kind]:,}" for kind in kinds], fontsize=9)
        axes.grid(visible=False, axis="x")
        axes.set_ylim(0, 100)
        axes.set_ylabel("pairs with s(q, p⁺) > s(q, p′) (%)")

    panels = {name: _bound(panel, of_set) for name, of_set in shares.items()}
    return _svg(panels, "Answer awareness by question type", arms)


def score_differences(
    shares: Mapping[str, Mapping[str, Sequence[float]]], edges: Mapping[str, Sequence[float]], arms: Sequence[str]
) -> str:
    """`shares[question set][arm]` holds the share (0 to 1) of pairs per bin between `edges[question set]`."""
    styles = look(["bm25", *arms])

    def panel(axes: Axes, name: str) -> None:
        for arm in arms:
            if arm in shares[name]:
                heights = 100 * np.asarray(shares[name][arm])
                colour = styles[arm]["color"]
                axes.stairs(heights, edges[name], fill=True, alpha=0.25, color=colour)
                axes.stairs(heights, edges[name], label=arm, **styles[arm] | {"linewidth": 1.4})
        axes.axvline(0, color="black", linewidth=0.8, linestyle=":")
        axes.set_xlabel("s(q, p⁺) − s(q, p*), dot product")
        axes.set_ylabel("pairs (%)")

    panels = {name: _bound(panel, name) for name in shares}
    return _svg(panels, "Score of the positive less that of its distractor", arms)


def heat_map(
    shares: Mapping[str, np.ndarray], rows: tuple[str, Sequence[str]], columns: tuple[str, Sequence[str]]
) -> str:
    """`shares[panel]` holds a share (0 to 1) per row and column; `rows` and `columns` are a title with labels each."""

    def panel(axes: Axes, found: np.ndarray) -> None:
        image = axes.imshow(100 * found, cmap="cividis", aspect="auto", origin="lower")
        for (row, column), share in np.ndenumerate(found):
            dark = image.norm(100 * share) < 0.5
            axes.text(column, row, f"{100 * share:.1f}", ha="center", va="center", color="white" if dark else "black")
        axes.set_yticks(range(len(rows[1])), rows[1])
        axes.set_xticks(range(len(columns[1])), columns[1])
        axes.set_ylabel(rows[0])
        axes.set_xlabel(columns[0])
        axes.grid(visible=False)

    return _svg({name: _bound(panel, found) for name, found in shares.items()}, "%", [])


def smooth(values: np.ndarray, window: int) -> np.ndarray:
    """Mean of the last `window` values (fewer at the start), same length."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)


def _over_passages(axes: Axes, deepest: int) -> None:
    axes.set_xscale("log")
    axes.set_xlim(1, max(deepest, 2))
    axes.xaxis.set_major_locator(FixedLocator([k for k in TICKS if k <= deepest]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda k, _: f"{k:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _bound(panel: Callable[..., None], value: object) -> Callable[[Axes], None]:
    return lambda axes: panel(axes, value)


@contextmanager
def _own_style() -> Iterator[None]:
    """matplotlib's defaults and ours, whatever matplotlibrc a user has."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def _svg(panels: Panels, title: str, arms: Sequence[str]) -> str:
    with _own_style():
        figure = Figure(figsize=(PANEL[0] * len(panels), PANEL[1]), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, (name, panel) in zip(axes, panels.items(), strict=True):
            panel(axis)
            if len(panels) > 1:
                axis.set_title(name)
        handles = {}
        for axis in axes:
            found, labels = axis.get_legend_handles_labels()
            handles |= dict(zip(labels, found, strict=True))
        shown = [arm for arm in arms if arm in handles]
        names = list(panels)
        figure.suptitle(f"{title}: {names[0]}" if len(names) == 1 and names[0] else title, fontsize=11)
        if shown:
            figure.legend([handles[arm] for arm in shown], shown, loc="outside lower center", ncols=min(len(shown), 6))
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()
