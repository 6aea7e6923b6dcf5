"""Sentences for whoever reads a report, its printed table or the explorer: which arm validation prefers, which arms are
worse than what needs no training, and the commands that help. They are written once, to `NOTES`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from eadpr.evaluation.config import BM25
from eadpr.evaluation.outcomes import Outcomes
from eadpr.report import markdown as md
from eadpr.report.config import UNTRAINED, ReportArms
from eadpr.report.differences import compare, comparisons
from eadpr.report.validation import read_validation

NOTES = "notes.json"  # in the report's folder: of the collection, of each set, and the lines of Counts


class Lower(NamedTuple):
    """An arm whose differences to a row lie below 0 with their whole intervals, as a text for some metrics."""

    arm: str
    highest: float
    text: str


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

    They are compared at the first and the last top-k of the table with k up to 20.
    """
    cutoffs = sorted(int(column[3:]) for column in settings.columns if re.fullmatch(r"top\d+", column))
    cutoffs = [k for k in cutoffs if k <= 20]
    metrics = [f"top{k}" for k in dict.fromkeys([*cutoffs[:1], *cutoffs[-1:]])]
    run, own = f"dvc exp run -S collection={collection}", f"++collections.{collection}.settings"
    notes = []
    for reference in (UNTRAINED, BM25):
        if not (lower := list(_find_lower(name, outcomes, settings, reference, metrics))):
            continue
        arms = "; ".join(f"{arm} {text}" for arm, _, text in lower)
        if reference == UNTRAINED:
            help_ = (
                f"Train with smaller steps (`{run} -S {own}.train.learning_rate=1e-5`), or take the encoder as it is."
            )
        else:
            best = max(lower, key=lambda arm: arm.highest).arm
            fused = f"'+fused.bm25-{best}={{first: bm25, second: {best}}}'"
            help_ = (
                f"Fuse such an arm with BM25 (`{run} -S {fused}`), or begin with a pretrained encoder if it does not."
            )
        notes.append(f"**Below {reference}**, in points: {arms}. {help_}")
    return notes


def _find_lower(
    name: str, outcomes: Mapping[str, Outcomes], settings: ReportArms, reference: str, metrics: Sequence[str]
) -> Iterator[Lower]:
    pairs = [(arm, reference) for arm in settings.trainings if arm != UNTRAINED] if reference in outcomes else []
    for (arm, _), row in zip(pairs, comparisons(outcomes, pairs, name, metrics), strict=True):
        differences = compare(((*pair, row.fixed) for pair in row.pairs), settings)
        compared = zip(metrics, differences, strict=True)
        intervals = {metric: of.interval for metric, of in compared if of and of.interval.high < 0}
        if intervals:
            texts = [f"at {md.title(metric)} {md.difference(interval)}" for metric, interval in intervals.items()]
            yield Lower(arm, max(interval.estimate for interval in intervals.values()), ", ".join(texts))
