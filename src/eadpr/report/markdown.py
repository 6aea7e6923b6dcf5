"""Markdown of the report: cells, tables, titles of metrics and what they mean. Shares are shown in per cent."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from eadpr.evaluation.awareness import AWARENESS
from eadpr.evaluation.statistics import Interval

NONE = "–"
# By metric, most without its cut-off; answer awareness has its own.
TITLES = {
    "top": "top-{}", "mrr": "MRR@{}", "id_top": "top-{} by id", "id_mrr": "MRR@{} by id", "ndcg": "nDCG@{}",
    "map": "MAP@{}", "recall": "recall@{}", "all": "R-all@{}", "pr": "PR@{}",
    "path_recall": "path recall@{}", "hop1_recall": "1-recall@{}",
    "em_": "EM, top-{}", "f1_": "F1, top-{}", "em": "answer EM", "f1": "answer F1", "sp_em": "support EM",
    "sp_f1": "support F1", "joint_em": "joint EM", "joint_f1": "joint F1",
    "evidence": "evidence@{}",
}  # fmt: skip
# What the columns of the report and of the explorer mean.
MEANINGS = {
    "top": "questions with a hit among the first k: a passage that holds an answer, or a relevant one if no text can",
    "mrr": "mean of 1 / rank of the first such hit, 0 where none is among the first k",
    "id_top": "questions with a relevant passage among the first k, by what the source names",
    "id_mrr": "mean of 1 / rank of the first relevant passage, 0 where none is among the first k",
    "map": "mean precision at the ranks of the relevant passages among the first k",
    "ndcg": "how high the relevant passages stand among the first k; 100 is the best order",
    "recall": "share of the relevant passages that are among the first k",
    "all": "questions with all supporting passages among the first k",
    "evidence": "of questions whose first passage holds annotated evidence, those that match best a sentence with it",
}


def title(metric: str) -> str:
    """`top5` -> top-5, `mrr100` -> MRR@100, `hop1_recall2` -> 1-recall@2, `aa_evidence` -> AA-evidence."""
    if metric in AWARENESS:
        return AWARENESS[metric].title
    if metric in TITLES:
        return TITLES[metric]
    kind = metric.rstrip("0123456789")
    return TITLES[kind].format(metric.removeprefix(kind))


def titles(metrics: Iterable[str]) -> list[str]:
    return [title(metric) for metric in metrics]


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
    if mean["metric"] in (*AWARENESS, "evidence1") and not math.isnan(mean["n"]):
        text += f" (n={as_count(mean['n']):,})"
    return text


def as_count(n: float) -> float:
    """Return a number of questions or pairs as an integer, unless it is a mean over trainings."""
    return int(n) if float(n).is_integer() else n


def bounded(interval: Interval, *, sign: str = "-", starred: bool = False) -> str:
    """Return a share with its bounds, or with the sign "+" a difference in points; with a star, with as many digits as
    tell all three from 0."""
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
    for first, *others in [header, *rows]:
        cells = [first.ljust(width), *map(str.rjust, others, widths)]
        lines.append(f"| {' | '.join(cells)} |")
    rule = [":" + "-" * (width + 1), *("-" * (other + 1) + ":" for other in widths)]
    return "\n".join([lines[0], f"|{'|'.join(rule)}|", *lines[1:]])
