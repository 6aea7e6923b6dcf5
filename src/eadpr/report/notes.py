"""Sentences for readers of a report or the explorer: the arm that validation prefers, arms below no training."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from eadpr.evaluation.config import BM25
from eadpr.evaluation.outcomes import Outcomes
from eadpr.report import markdown as md
from eadpr.report.config import UNTRAINED, ReportArms
from eadpr.report.differences import compare
from eadpr.runtime import files
from eadpr.runtime.section import Sets
from eadpr.runtime.terminal import counted

NOTES = "notes.json"  # in the report's folder: of the collection, of each set, and the lines of Counts
# For arms below each of these.
REMEDIES = {
    UNTRAINED: "Train with smaller steps (`{command} ++collections.{collection}.settings.train.learning_rate=1e-5`), or"
    " take it as it is.",
    BM25: "Fuse such an arm with BM25 (`{command} '+fused.bm25-{best}={{first: bm25, second: {best}}}'`), or begin with"
    " a pretrained encoder if it does not.",
}


FEW = {"training": 200, "test": 100}  # questions; fewer say little
BY_RULE = (
    " -S annotator.model=none -S 'evidence.strategies=[sentence, placebo, placebo_words, placebo_inside]'"
    " -S evidence.placebo_of=sentence -S examples.strategy=sentence -S probe.strategy=sentence"
)


class ComparedValidations(NamedTuple):
    """Average ranks, counted from 0, of the positives of `questions` among the same `passages`, by arm. `others` have
    other questions or passages, e.g. negatives mined by another ranking, so that their ranks say nothing here."""

    ranks: dict[str, float]
    questions: int
    passages: int
    others: list[str]

    @property
    def preferred(self) -> str:
        """The arm of the lowest rank; of equal ones the untrained encoder, else the first."""
        return min(self.ranks, key=lambda arm: (self.ranks[arm], arm != UNTRAINED))


def read_validation(training: Path, arms: Sequence[str]) -> ComparedValidations | None:
    """Compare the logs of the arms in the folder `training`: of arms with different questions or passages the largest
    group, of equally large ones the first. Return None where none was validated."""
    logs = {arm: files.read_json(training / arm / "metrics.json") for arm in arms}
    pools = Counter(log["validation_pool"] for log in logs.values() if "validation_pool" in log)
    if not pools:
        return None
    ((pool, _),) = pools.most_common(1)
    compared = {arm: log for arm, log in logs.items() if log.get("validation_pool") == pool}
    ranks = {arm: log["validation"]["average_rank"] for arm, log in compared.items()}
    log = next(iter(compared.values()))
    excluded = [arm for arm in arms if arm not in compared]
    return ComparedValidations(ranks, log["validation_questions"], log["validation_passages"], excluded)


def note_few(counts: Mapping[str, Mapping[str, int]], sets: Sets) -> str:
    """Say what it means where there are few training questions, or few in an evaluated set; empty if there are enough.

    `counts` are those of the records' report, by question set.
    """
    notes, trained = [], sum(counts[name]["questions"] for name in sets.train)
    if trained < FEW["training"]:
        notes.append(
            f"Few training questions ({trained:,}, below {FEW['training']}): from them an encoder of random weights"
            " learns no language, and the annotator no evidence."
        )
    for name in sets.evaluate:
        if (count := counts[name]["questions"]) < FEW["test"]:
            notes.append(
                f"Few questions of {name} ({count:,}, below {FEW['test']}): each is {100 / count:.1f} points, so few"
                " differences will be significant."
            )
    return " ".join(notes)


def command_for_few(collection: str, *, answers: bool = True) -> str:
    """Return the command that works with few questions; without `answers` no rule finds evidence."""
    pretrained = "-S base.model=sentence-transformers/all-MiniLM-L6-v2 -S train.steps=100"
    return f"dvc exp run -S collection={collection} {pretrained}{BY_RULE if answers else ''}"


def note_validation(training: Path, arms: Sequence[str]) -> list[str]:
    """Say which arm validation prefers, over which questions and passages, and which arms kept the weights that they
    began with; nothing where no arm was validated."""
    validation = read_validation(training, arms)
    if validation is None:
        return []
    preferred, by_rank = validation.preferred, sorted(validation.ranks.items(), key=itemgetter(1))
    equal = 1 == len({*validation.ranks.values()}) < len(by_rank)
    question_count = counted(validation.questions, "held-out question")
    note = (
        f"Validation prefers {'no arm' if equal else f'**{preferred}**'}: over {question_count}, so many of"
        f" {validation.passages:,} passages stand above the positive on average:"
        f" {', '.join(f'{arm} {rank:.2f}' for arm, rank in by_rank)}."
    )
    if equal:
        note += " It cannot tell which arm is better."
    elif preferred == UNTRAINED:
        note += " No training made the encoder better."
    else:
        note += f" `eadpr publish {preferred} --to FOLDER` takes it."
    note += f" {unmoved}" if (unmoved := note_kept(training, arms)) else ""
    if validation.others:
        note += f" Not compared, for want of the same questions and passages: {', '.join(validation.others)}."
    return [note]


def note_kept(training: Path, arms: Sequence[str]) -> str:
    """Say which arms kept the weights that they began with; empty without any."""
    unmoved = find_unmoved(training, arms)
    verb = "keeps the weights that it" if len(unmoved) == 1 else "keep the weights that they"
    return f"{', '.join(unmoved)} {verb} began with, as no later validation was better." if unmoved else ""


def find_unmoved(training: Path, arms: Sequence[str]) -> list[str]:
    """Return the trained arms that kept the weights that they began with, as no later validation was better."""
    logs = {arm: files.read_json(training / arm / "metrics.json") for arm in arms}
    return [arm for arm, log in logs.items() if log.get("steps") and log.get("kept_step") == 0]


def note_lower(name: str, outcomes: Mapping[str, Outcomes], settings: ReportArms, collection: str) -> list[str]:
    """Name the arms that are surely worse than the untrained encoder, or than BM25, in the table's first column of hits
    among the first k, and give the command that helps."""
    metric = next((column for column in settings.columns if re.fullmatch(r"(id_)?top\d+", column)), None)
    if metric is None:
        return []
    command = f"dvc exp run -S collection={collection} -S"
    notes = []
    for reference, remedy in REMEDIES.items():
        arms = [arm for arm in settings.trainings if arm != UNTRAINED] if reference in outcomes else []
        sides = ((*(outcomes[row].of_trainings(name, metric) for row in (arm, reference)), True) for arm in arms)
        differences = zip(arms, compare(sides, settings), strict=True)
        lower = {arm: change.interval for arm, change in differences if change and change.interval.high < 0}
        if lower:
            listed = "; ".join(f"{arm} {md.bounded(interval, sign='+')}" for arm, interval in lower.items())
            best = max(lower, key=lambda arm: lower[arm].estimate)
            remedy = remedy.format(command=command, collection=collection, best=best)
            notes.append(f"**Below {reference}** at {md.title(metric)}, in points: {listed}. {remedy}")
    return notes
