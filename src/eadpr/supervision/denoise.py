"""Stage `denoise`: a ranking less the passages that a reader does not clearly take for negatives (RocketQA's rule).

Many passages that hold no known answer still answer the question. A reader that sees question and passage together
scores each, 0 to 1; only passages below a threshold stay to be mined (Qu et al., 2021: 0.1), and those above another
may become positives (0.9).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import Field, model_validator

from eadpr import files, tables
from eadpr.config import Section
from eadpr.records import Positive, Ranked

PROMOTED = "positives.parquet"  # in the folder of a ranking, and of the negatives mined from it
SOURCE = "reader"  # of such positives
REASONS = ("unscored", "doubtful", "positive")


class PassageScore(NamedTuple):
    """How sure a reader is, 0 to 1, that the passage answers the question; in the order of the ranking it scored."""

    made_by = "score_passages"
    question_id: str
    passage_id: str
    score: float


class Denoise(Section):
    below: float = Field(gt=0, le=1)
    above: float | None = Field(ge=0, lt=1)

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.above is not None and self.above < self.below:
            raise ValueError(f"above ({self.above}) must not be less than below ({self.below})")
        return self


class Judged(NamedTuple):
    """A question's passages: what stays of its ranking, the new positives, and how many were taken out by reason."""

    kept: list[Ranked]
    promoted: list[str]
    refused: Counter[str]


def judged(ranking: Sequence[Ranked], scores: Mapping[str, float], own: Collection[str], settings: Denoise) -> Judged:
    """The question's own positives stay, whatever their scores: a margin is measured from theirs. A passage without a
    score is taken out, since it may be a positive."""
    kept, promoted, refused = [], [], Counter()
    for row in ranking:
        score = scores.get(row.passage_id)
        if row.passage_id in own or (score is not None and score < settings.below):
            kept.append(row)
        elif score is None:
            refused["unscored"] += 1
        elif settings.above is not None and score > settings.above:
            refused["positive"] += 1
            promoted.append(row.passage_id)
        else:
            refused["doubtful"] += 1
    return Judged(kept, sorted(promoted, key=lambda passage_id: (-scores[passage_id], passage_id)), refused)


def denoise(positives: Path, ranking: Path, scores: Path, out: Path, *, settings: Denoise) -> int:
    """Write train.parquet, report.json and, with `above`, the new positives to the folder `out`; returns the rows kept.

    `ranking` is a folder with a train.parquet; ranks stay as they are, with gaps. Raises ValueError for a score that is
    none, and where no ranked passage has one.
    """
    given: dict[str, set[str]] = {}
    for positive in tables.rows(positives / "positives.parquet", Positive):
        given.setdefault(positive.question_id, set()).add(positive.passage_id)
    counts: Counter[str] = Counter()
    new: list[Positive] = []

    def kept() -> Iterator[Ranked]:
        for question_id, rows, found in _paired(ranking / "train.parquet", scores):
            here = judged(rows, found, given.get(question_id, ()), settings)
            counts.update(here.refused)
            scored = sum(row.passage_id in found for row in rows)
            counts.update(ranked=len(rows), kept=len(here.kept), scored=scored)
            new.extend(Positive(question_id, passage_id, SOURCE, None) for passage_id in here.promoted)
            yield from here.kept

    with files.new_folder(out) as folder:
        tables.write(folder / "train.parquet", Ranked, kept())
        if counts["ranked"] and not counts["scored"]:
            raise ValueError(
                f"{scores} scores none of the {counts['ranked']:,} passages that {ranking / 'train.parquet'} ranks;"
                " score that ranking with a reader, or name the ranking that was scored under `denoised`"
            )
        if settings.above is not None:
            tables.write(folder / PROMOTED, Positive, new)
        taken = {reason: counts[reason] for reason in REASONS}
        files.write_json(
            folder / "report.json",
            {"of": ranking.name, "ranked": counts["ranked"], "kept": counts["kept"], "out": taken},
        )
    return counts["kept"]


def _paired(ranking: Path, scores: Path) -> Iterator[tuple[str, list[Ranked], dict[str, float]]]:
    """Each ranked question with its scores; both tables stand in the order of the questions."""
    scored = _by_question(scores)
    head = next(scored, None)
    for question_id, rows in groupby(tables.rows(ranking, Ranked), key=attrgetter("question_id")):
        found: dict[str, float] = {}
        if head is not None and head[0] == question_id:
            found, head = head[1], next(scored, None)
        yield question_id, list(rows), found
    if head is not None:
        raise ValueError(
            f"{scores}: question {head[0]!r} does not stand where {ranking} has it, or is not there; score that ranking"
            " again"
        )


def _by_question(path: Path) -> Iterator[tuple[str, dict[str, float]]]:
    for question_id, rows in groupby(tables.rows(path, PassageScore), key=attrgetter("question_id")):
        yield question_id, _checked(path, rows)


def _checked(path: Path, rows: Iterable[PassageScore]) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in rows:
        where = f"{path}: question {row.question_id!r}, passage {row.passage_id!r}"
        if not 0 <= row.score <= 1:
            raise ValueError(f"{where}: score is {row.score}, expected a probability from 0 to 1")
        if row.passage_id in found:
            raise ValueError(f"{where}: scored twice; score a passage once per question")
        found[row.passage_id] = row.score
    return found


def promoted(folder: Path) -> dict[str, list[str]]:
    """New positives of questions in the folder of a ranking or of negatives, the best first; none where it has none."""
    found: dict[str, list[str]] = {}
    if (folder / PROMOTED).exists():
        for row in tables.rows(folder / PROMOTED, Positive):
            found.setdefault(row.question_id, []).append(row.passage_id)
    return found
