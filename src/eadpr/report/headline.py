"""The headline of a run: a small table, what it says in words, and where to look next."""

from collections.abc import Mapping

import pandas as pd

from eadpr.evaluation.outcomes import Outcomes
from eadpr.report import markdown as md
from eadpr.report.config import UNTRAINED, ReportArms
from eadpr.report.differences import compare, is_fixed
from eadpr.report.summary import select_set

FILE = "headline.md"  # in the report's folder
# Kinds of columns, and how many of each, in this order.
COLUMNS = [(("top", "id_top"), 2), (("mrr", "id_mrr"), 1), (("controlled_aa_evidence",), 1), (("evidence1",), 1)]


def headline(
    collection: str,
    name: str,
    means: pd.DataFrame,
    outcomes: Mapping[str, Outcomes],
    settings: ReportArms,
    best: str | None,
) -> str:
    """Return the Markdown of the question set `name`; `best` is the arm that validation prefers."""
    means = select_set(means, name)
    columns = [
        column
        for kinds, count in COLUMNS
        for column in [c for c in settings.columns if c in kinds or c.rstrip("0123456789") in kinds][:count]
    ]
    plain = means.assign(n=float("nan"))  # without the number of pairs
    parts = [md.pivot(plain, ["%"], list(settings.rows), columns)]
    best = best or list(settings.trainings)[-1]
    reference = (
        settings.baseline if settings.baseline in settings.trainings and best != settings.baseline else UNTRAINED
    )
    if columns and reference in settings.trainings and reference != best:
        parts.append(_compare(name, best, reference, columns[0], outcomes, settings))
    parts.append(
        f"Why: open reports/{collection}.html. All tables: reports/{collection}/table.md. Another setting:"
        " `dvc exp run -S loss.tau1=0.5`; `eadpr status` says beforehand what will run."
    )
    return "\n\n".join(parts) + "\n"


def _compare(
    name: str, best: str, reference: str, column: str, outcomes: Mapping[str, Outcomes], settings: ReportArms
) -> str:
    sides = [outcomes[arm].of_trainings(name, column) for arm in (best, reference)]
    (difference,) = compare([(*sides, is_fixed(best, reference))], settings)
    counts = {len(settings.trainings[arm]) for arm in (best, reference)}
    seeds = "one training each, and another seed gives another" if counts == {1} else f"{max(counts)} trainings"
    points = md.bounded(difference.interval, sign="+") if difference else md.NONE
    return (
        f"{md.title(column)} of {best} − {reference}: {points} points over"
        f" {len(sides[0][0]):,} questions ({100 * settings.confidence:g} % interval; {seeds})."
    )
