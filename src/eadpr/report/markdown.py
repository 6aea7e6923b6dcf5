"""Markdown of the report: cells, tables, names of metrics as people write them. Shares are shown in per cent."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from eadpr.evaluation.awareness import AWARENESS
from eadpr.evaluation.statistics import Interval

NONE = "–"
# Of metrics whose names end in a number, and of others. Those of answer awareness stand with these.
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


def whole(found: pd.DataFrame, name: str) -> pd.DataFrame:
    """Means over all questions of a set."""
    return found[(found["question_set"] == name) & (found["by"] == "")]


def pivot(
    found: pd.DataFrame,
    first: Sequence[str],
    rows: Mapping[str, Sequence[str]] | Iterable[str],
    columns: Sequence[str],
    *,
    by: str = "row",
    across: str = "metric",
    spread: bool = False,
) -> str:
    """A table cut from the long one of means (`summary`), in per cent. `rows` are values of its column `by`, if wanted
    with the cells that stand before the means, under the heads `first`; `columns` values of its column `across`.
    `spread`: with that over trainings."""
    cells = {(mean[by], mean[across]): share(mean, spread) for mean in found.to_dict("records")}
    rows = rows if isinstance(rows, Mapping) else {row: [row] for row in rows}
    body = [[*before, *(cells.get((row, column), NONE) for column in columns)] for row, before in rows.items()]
    return table([*first, *(titles(columns) if across == "metric" else columns)], body)


def share(mean: Mapping[str, Any], spread: bool) -> str:
    """A mean, its spread over trainings, and the number of pairs behind AA, where these are known."""
    text = f"{100 * mean['mean']:.1f}"
    if spread and not math.isnan(mean["spread"]):
        text += f" ± {100 * mean['spread']:.1f}"
    return f"{text} (n={counted(mean['n']):,})" if mean["metric"] in AWARENESS and not math.isnan(mean["n"]) else text


def counted(n: float) -> float:
    """A number of questions or pairs: an integer but for a mean over trainings."""
    return int(n) if float(n).is_integer() else n


def difference(interval: Interval | None, *, starred: bool = False) -> str:
    """Percentage points with bounds, signs always shown."""
    return NONE if interval is None else bounded(interval, sign="+", starred=starred)


def bounded(interval: Interval, *, sign: str = "-", starred: bool = False) -> str:
    """A share with its bounds; with a star, with as many digits as tell all three from 0."""
    digits = 1
    while starred and digits < 4 and any(round(100 * value, digits) == 0 for value in interval[:3]):
        digits += 1
    estimate, low, high = (f"{100 * value + 0.0:{sign}.{digits}f}" for value in interval[:3])
    return f"{estimate}{'*' * starred} [{low}, {high}]"


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
