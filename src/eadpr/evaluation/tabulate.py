"""Markdown of the report: cells, tables, names of metrics as people write them. Shares are shown in per cent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from eadpr.evaluation.awareness import AWARENESS
from eadpr.evaluation.statistics import Interval

NONE = "–"
_TITLES = {"top": "top-{}", "mrr": "MRR@{}", "ndcg": "nDCG@{}", "recall": "recall@{}", "all": "R-all@{}"}
_TITLES |= {"pr": "PR@{}", "path_recall": "path recall@{}", "hop1_recall": "1-recall@{}"}
_TITLES |= {"one_hop_all": "one-hop R-all@{}"}


def title(metric: str) -> str:
    """`top5` -> top-5, `mrr100` -> MRR@100, `hop1_recall2` -> 1-recall@2, `aa_evidence` -> AA-evidence."""
    if is_awareness(metric):
        return metric.replace("aa", "AA", 1).replace("_", "-")
    kind, cutoff = re.fullmatch(r"(.*\D)(\d+)", metric).groups()
    return _TITLES[kind].format(cutoff)


def is_awareness(metric: str) -> bool:
    return metric in AWARENESS


def share(found: Mapping[str, Any], metric: str, spread: float | None = None) -> str:
    """A metric's value, its spread over trainings, and the number of pairs behind AA, where that is known."""
    if metric not in found:
        return NONE
    number = f"{100 * found[metric]:.1f}" + ("" if spread is None else f" ± {100 * spread:.1f}")
    pairs = found.get(f"n_{metric}") if is_awareness(metric) else None
    return number if pairs is None else f"{number} (n={pairs:,})"


def difference(interval: Interval | None, *, starred: bool = False) -> str:
    """Percentage points with bounds, signs always shown."""
    if interval is None:
        return NONE
    estimate, low, high = (f"{100 * value + 0.0:+.1f}" for value in interval[:3])
    return f"{estimate}{'*' * starred} [{low}, {high}]"


def bounded(interval: Interval) -> str:
    """A share with its bounds."""
    estimate, low, high = (f"{100 * value:.1f}" for value in interval[:3])
    return f"{estimate} [{low}, {high}]"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table that is also aligned as plain text: first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [_line(header, widths)]
    lines.append("|:" + "-" * (widths[0] + 1) + "|" + "".join("-" * (width + 1) + ":|" for width in widths[1:]))
    lines += [_line(row, widths) for row in rows]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return "| " + " | ".join(padded) + " |"


def leaves(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Numbers of a nested report by dotted name, in the order of their names."""
    found: dict[str, Any] = {}
    for key in sorted(value):
        name = f"{prefix}{key}"
        if isinstance(value[key], Mapping):
            found |= leaves(value[key], f"{name}.")
        elif isinstance(value[key], int | float):
            found[name] = value[key]
    return found


def number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
