"""Markdown of the report: cells, tables, names of metrics as people write them. Shares are shown in per cent."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from eadpr.evaluation.awareness import AWARENESS
from eadpr.evaluation.statistics import Interval

NONE = "–"
# Titles of metrics with a cut-off, and of the rest; answer awareness has its own.
_CUT_OFF = {
    "top": "top-{}", "mrr": "MRR@{}", "id_top": "top-{} by id", "id_mrr": "MRR@{} by id", "ndcg": "nDCG@{}",
    "map": "MAP@{}", "recall": "recall@{}", "all": "R-all@{}", "pr": "PR@{}",
    "path_recall": "path recall@{}", "hop1_recall": "1-recall@{}", "one_hop_all": "one-hop R-all@{}",
    "em_": "EM, top-{}", "f1_": "F1, top-{}",
}  # fmt: skip
_NAMED = {
    "em": "answer EM", "f1": "answer F1", "sp_em": "support EM", "sp_f1": "support F1", "joint_em": "joint EM",
    "joint_f1": "joint F1", "among_look_alikes": "top-1 among look-alikes",
}  # fmt: skip


def title(metric: str) -> str:
    """`top5` -> top-5, `mrr100` -> MRR@100, `hop1_recall2` -> 1-recall@2, `aa_evidence` -> AA-evidence."""
    if metric in AWARENESS:
        return AWARENESS[metric].title
    if metric in _NAMED:
        return _NAMED[metric]
    kind, cutoff = re.fullmatch(r"(.*\D)(\d+)", metric).groups()
    return _CUT_OFF[kind].format(cutoff)


def titles(metrics: Iterable[str]) -> list[str]:
    return [title(metric) for metric in metrics]


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

    `rows` are values of the column `row_key`, perhaps mapped to the cells that stand before the means, under `head`;
    `columns` are values of `column_key`.
    """
    cells = {(mean[row_key], mean[column_key]): share(mean, spread) for mean in means.to_dict("records")}
    if not isinstance(rows, Mapping):
        rows = {row: [row] for row in rows}
    body = [[*labels, *(cells.get((row, column), NONE) for column in columns)] for row, labels in rows.items()]
    return table([*head, *(titles(columns) if column_key == "metric" else columns)], body)


def share(mean: Mapping[str, Any], spread: bool) -> str:
    """Return a mean, its spread over trainings, and the number of pairs behind AA, where these are known."""
    text = f"{100 * mean['mean']:.1f}"
    if spread and not math.isnan(mean["spread"]):
        text += f" ± {100 * mean['spread']:.1f}"
    if mean["metric"] in AWARENESS and not math.isnan(mean["n"]):
        text += f" (n={as_count(mean['n']):,})"
    return text


def as_count(n: float) -> float:
    """Return a number of questions or pairs as an integer, unless it is a mean over trainings."""
    return int(n) if float(n).is_integer() else n


def difference(interval: Interval | None, *, starred: bool = False) -> str:
    """Return percentage points with bounds, signs always shown."""
    return NONE if interval is None else bounded(interval, sign="+", starred=starred)


def bounded(interval: Interval, *, sign: str = "-", starred: bool = False) -> str:
    """Return a share with its bounds; with a star, with as many digits as tell all three from 0."""
    digits = 1
    while starred and digits < 4 and any(round(100 * value, digits) == 0 for value in interval[:3]):
        digits += 1
    estimate, low, high = (f"{100 * value + 0.0:{sign}.{digits}f}" for value in interval[:3])
    star = "*" if starred else ""
    return f"{estimate}{star} [{low}, {high}]"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table that is also aligned as plain text: first column to the left, the rest to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = "|:" + "-" * (widths[0] + 1) + "|" + "".join("-" * (width + 1) + ":|" for width in widths[1:])
    return "\n".join([_line(header, widths), rule, *(_line(row, widths) for row in rows)])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
    padded[0] = cells[0].ljust(widths[0])
    return "| " + " | ".join(padded) + " |"


def leaves(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the numbers of a nested report by dotted name, in the order of their names."""
    numbers: dict[str, Any] = {}
    for key in sorted(value):
        name = f"{prefix}{key}"
        if isinstance(value[key], Mapping):
            numbers |= leaves(value[key], f"{name}.")
        elif isinstance(value[key], int | float):
            numbers[name] = value[key]
    return numbers


def number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
