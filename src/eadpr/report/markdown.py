"""Markdown of the report: cells, tables, titles of metrics and what they mean. Shares are shown in per cent."""

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from eadpr.evaluation.awareness import AWARENESS, POINTING
from eadpr.evaluation.statistics import Interval

NONE = "–"
WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
TITLES, MEANINGS = WORDS["titles"], WORDS["meanings"]


def title(metric: str) -> str:
    """`top5` -> top-5, `mrr100` -> MRR@100, `aa_evidence` -> AA-evidence."""
    if metric in AWARENESS:
        return AWARENESS[metric].title
    if metric in TITLES:
        return TITLES[metric]
    kind = metric.rstrip("0123456789")
    return TITLES[kind].format(metric.removeprefix(kind))


def explain(metric: str) -> str:
    """Return the meaning of a column, in a few words."""
    if metric in AWARENESS:
        return f"{AWARENESS[metric].formula}, {AWARENESS[metric].meaning}"
    return MEANINGS.get(metric.rstrip("0123456789"), title(metric))


def pivot(
    means: pd.DataFrame,
    head: Sequence[str],
    rows: Mapping[str, Sequence[str]] | Iterable[str],
    columns: Sequence[str],
    *,
    row_key: str = "row",
    column_key: str = "metric",
    spread: bool = False,
) -> str:
    """Return a table of the long one of `summary`, in per cent, with the spread over trainings if `spread`.

    `rows` are values of `row_key`, perhaps mapped to cells that stand first, under `head`; `columns` of `column_key`.
    """
    cells = {(mean[row_key], mean[column_key]): share(mean, spread) for mean in means.to_dict("records")}
    if not isinstance(rows, Mapping):
        rows = {row: [row] for row in rows}
    body = [[*labels, *(cells.get((row, column), NONE) for column in columns)] for row, labels in rows.items()]
    return table([*head, *(map(title, columns) if column_key == "metric" else columns)], body)


def share(mean: Mapping[str, Any], spread: bool) -> str:
    """Return a mean, its spread over trainings, and the number of pairs behind AA, where these are known."""
    text = f"{100 * mean['mean']:.1f}"
    if spread and not math.isnan(mean["spread"]):
        text += f" ± {100 * mean['spread']:.1f}"
    if mean["metric"] in (*AWARENESS, *POINTING) and not math.isnan(mean["n"]):
        text += f" (n={as_count(mean['n']):,})"
    return text


def as_count(n: float) -> float:
    """Return a number of questions or pairs as an integer, unless it is a mean over trainings."""
    return int(n) if float(n).is_integer() else round(n, 2)


def bounded(interval: Interval, *, sign: str = "-", starred: bool = False) -> str:
    """Return a share with bounds, or with sign "+" a difference; starred, with digits that tell all three from 0."""
    digits = 1
    while starred and digits < 4 and any(round(100 * value, digits) == 0 for value in interval[:3]):
        digits += 1
    estimate, low, high = (f"{100 * value + 0.0:{sign}.{digits}f}" for value in interval[:3])
    star = "*" if starred else ""
    return f"{estimate}{star} [{low}, {high}]"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table that is also aligned as plain text: first column to the left, the rest to the right."""
    width, *widths = (max(map(len, column)) for column in zip(header, *rows, strict=True))
    lines = []
    for first, *rest in [header, *rows]:
        cells = [first.ljust(width), *map(str.rjust, rest, widths)]
        lines.append(f"| {' | '.join(cells)} |")
    rule = [":" + "-" * (width + 1), *("-" * (column_width + 1) + ":" for column_width in widths)]
    return "\n".join([lines[0], f"|{'|'.join(rule)}|", *lines[1:]])
