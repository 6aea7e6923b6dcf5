"""The headline of a run: a small table, what it says in two sentences, and where to look next."""

from collections.abc import Mapping, Sequence

import pandas as pd

from eadpr.evaluation.config import BM25
from eadpr.evaluation.outcomes import Outcomes
from eadpr.report import markdown as md
from eadpr.report.config import UNTRAINED, ReportArms
from eadpr.report.differences import compare, is_fixed
from eadpr.report.summary import select_set
from eadpr.runtime.terminal import counted

FILE = "headline.md"  # in the report's folder
# Kinds of columns, and how many of each, in this order.
COLUMNS = [(("top", "id_top"), 2), (("mrr", "id_mrr"), 1), (("controlled_aa_evidence",), 1), (("evidence1",), 1)]
PASSAGES = {"top": "an answering passage", "id_top": "a relevant passage"}


def headline(collection: str, means: pd.DataFrame, settings: ReportArms, summary: Sequence[str]) -> str:
    """Return the Markdown of a question set; `means` are over all of its questions, `summary` its sentences."""
    plain = means.assign(n=float("nan"))  # without the number of pairs
    more = (
        f"Why: open reports/{collection}.html. All tables: reports/{collection}/table.md. Another setting:"
        " `dvc exp run -S loss.tau1=0.5`; `eadpr status` says beforehand what will run."
    )
    columns = [column for column in select_columns(settings) if column in {*means["metric"]}]
    parts = [md.pivot(plain, ["%"], list(settings.rows), columns), " ".join(filter(None, summary)), more]
    return "\n\n".join(filter(None, parts)) + "\n"


def select_columns(settings: ReportArms) -> list[str]:
    return [
        column
        for kinds, count in COLUMNS
        for column in [c for c in settings.columns if c in kinds or c.rstrip("0123456789") in kinds][:count]
    ]


def sentences(
    name: str, means: pd.DataFrame, outcomes: Mapping[str, Outcomes], settings: ReportArms, best: str
) -> list[str]:
    """Compare the arm `best` with the baseline, or else the untrained encoder or BM25, if there are hits to count."""
    reference = next(row for row in (settings.baseline, UNTRAINED, BM25) if row in outcomes and row != best)
    column = [*select_columns(settings), ""][0]
    kind = column.rstrip("0123456789")
    if kind not in PASSAGES:
        return []
    sides = [outcomes[arm].of_trainings(name, column) for arm in (best, reference)]
    (difference,) = compare([(*sides, is_fixed(best, reference))], settings)
    shares = select_set(means, name).query("metric == @column").set_index("row")["mean"]
    if difference is None or not {best, reference} <= {*shares.index}:
        return []
    k = column.removeprefix(kind)
    place = f"puts {PASSAGES[kind]} first" if k == "1" else f"has {PASSAGES[kind]} among the first {k}"
    points, low, high = (100 * value for value in difference.interval[:3])
    bounds = f"{low:.1f} to {high:.1f}" if low >= 0 else f"{low:+.1f} to {high:+.1f}"
    trainings = max(len(settings.rows[row]) for row in (best, reference))
    seeds = (
        f"These are means of up to {trainings} trainings."
        if trainings > 1
        else "This is one training each: another seed gives other figures, on atlas by about 3 points."
    )
    return [
        f"{best} {place} for {100 * shares[best]:.1f} % of {counted(len(sides[0][0]), 'question')}, {reference} for"
        f" {100 * shares[reference]:.1f}: {points:+.1f} points ({100 * settings.confidence:g} %: {bounds}).",
        seeds,
    ]
