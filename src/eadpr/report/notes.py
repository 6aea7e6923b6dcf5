"""Sentences for whoever reads a report, its printed table or the explorer: which arm validation prefers, which arms are
worse than what needs no training, and the commands that help. They are written once, to `NOTES`."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from eadpr.evaluation.config import BM25
from eadpr.evaluation.outcomes import Outcomes
from eadpr.evaluation.statistics import Interval
from eadpr.report import markdown as md
from eadpr.report.config import UNTRAINED, ReportArms
from eadpr.report.differences import compare
from eadpr.report.validation import read_validation

NOTES = "notes.json"  # in the report's folder: of the collection, of each set, and the lines of Counts


def note_validation(training: Path, arms: Sequence[str]) -> list[str]:
    """Say which arm validation prefers, over which questions and passages; nothing where no arm was validated."""
    validation = read_validation(training, arms)
    if validation is None:
        return []
    preferred = validation.preferred
    others = [f"{arm} {rank:.2f}" for arm, rank in validation.ranks.items() if arm != preferred]
    taken = "" if preferred == UNTRAINED else ", which `eadpr publish --to FOLDER` takes"
    note = (
        f"Validation prefers **{preferred}**{taken}: the positives of"
        f" {validation.questions:,} held-out questions stand at rank {validation.ranks[preferred]:.2f} on average, from"
        f" 0, among {validation.passages:,} passages ({', '.join(others) or 'no other arm is compared'})."
    )
    if preferred == UNTRAINED and others:
        note += " No training made the encoder better."
    if validation.others:
        note += f" Not compared, for want of the same questions and passages: {', '.join(validation.others)}."
    return [note]


def note_lower(name: str, outcomes: Mapping[str, Outcomes], settings: ReportArms, collection: str) -> list[str]:
    """Name the arms that are surely worse than the untrained encoder, or than BM25, and give the command that helps.

    They are compared in the table's first column of hits among the first k, by answer or by passage id.
    """
    metric = next((column for column in settings.columns if re.fullmatch(r"(id_)?top\d+", column)), None)
    if metric is None:
        return []
    command, local = f"dvc exp run -S collection={collection}", f"++collections.{collection}.settings"
    notes = []
    for reference in (UNTRAINED, BM25):
        lower = _find_lower(name, outcomes, settings, reference, metric)
        if not lower:
            continue
        arms = "; ".join(f"{arm} {md.difference(interval)}" for arm, interval in lower.items())
        if reference == UNTRAINED:
            remedy = f"Train with smaller steps (`{command} -S {local}.train.learning_rate=1e-5`), or take it as it is."
        else:
            best = max(lower, key=lambda arm: lower[arm].estimate)
            fused = f"'+fused.bm25-{best}={{first: bm25, second: {best}}}'"
            remedy = (
                f"Fuse such an arm with BM25 (`{command} -S {fused}`), or begin with a pretrained encoder if it does"
                " not."
            )
        notes.append(f"**Below {reference}** at {md.title(metric)}, in points: {arms}. {remedy}")
    return notes


def _find_lower(
    name: str, outcomes: Mapping[str, Outcomes], settings: ReportArms, reference: str, metric: str
) -> dict[str, Interval]:
    """Return by arm its difference to the reference where the whole interval is below 0."""
    arms = [arm for arm in settings.trainings if arm != UNTRAINED] if reference in outcomes else []
    sides = ((*(outcomes[row].of_trainings(name, metric) for row in (arm, reference)), True) for arm in arms)
    differences = zip(arms, compare(sides, settings), strict=True)
    return {arm: found.interval for arm, found in differences if found and found.interval.high < 0}
