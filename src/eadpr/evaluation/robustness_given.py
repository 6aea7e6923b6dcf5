"""What the stage `robustness` is given: questions, and the near-duplicates that join the corpus."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from eadpr import tables
from eadpr.config import Sets
from eadpr.evaluation.config import Evaluate, Robustness
from eadpr.evaluation.outcomes import MeasuredQuestions, asked, members_of
from eadpr.evaluation.question_tables import DUPLICATES
from eadpr.machine import Machine
from eadpr.records import NearDuplicate, Passage, Positive, Question
from eadpr.search.config import Encode
from eadpr.supervision.bm25 import BM25
from eadpr.text import AnswerMatcher

Joins = Callable[[int, NDArray[np.int64]], NDArray[np.bool_]]


class RobustnessInputs(NamedTuple):
    """Folders; `ranking` and `model` are the arm's. Without a model the ranking is that of BM25."""

    records: Path
    positives: Path
    ranking: Path
    model: Path | None
    near_duplicates: Path


class RobustnessSettings(NamedTuple):
    robustness: Robustness
    evaluate: Evaluate
    encode: Encode
    sets: Sets
    hardware: Machine
    bm25: BM25


class Joining(NamedTuple):
    """Near-duplicates, those of one number side by side: as passages, with their numbers and the question of each."""

    passages: list[Passage]
    numbers: NDArray[np.int64]
    question_ids: list[str]

    def below(self, count: int) -> Self:
        end = int(np.searchsorted(self.numbers, count))
        return Joining(*(of[:end] for of in self))


class Joined(NamedTuple):
    """What joins which questions, measured in this order, with the ids of the positives of each. `joins(question,
    rows)` says of rows of near-duplicates which join that question's ranking at all."""

    measured: MeasuredQuestions
    questions: list[Question]
    positives: dict[str, list[str]]
    added: Joining
    joins: Joins


def joined(inputs: RobustnessInputs, settings: RobustnessSettings) -> Joined:
    measured = asked(inputs.records, members_of(inputs.records, settings.sets.evaluate))
    questions = list(measured.records(inputs.records))
    added = _added(inputs.near_duplicates / DUPLICATES, settings.robustness.counts[-1])
    positives = _positives(inputs.positives, measured)
    return Joined(measured, questions, positives, added, _joins(questions, added.passages))


def _positives(folder: Path, measured: MeasuredQuestions) -> dict[str, list[str]]:
    table = tables.read(folder / "positives.parquet", Positive, ["question_id", "passage_id"])
    table = table.filter(pc.is_in(table["question_id"], value_set=measured.ids))
    found: dict[str, list[str]] = {}
    for question_id, passage_id in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found.setdefault(question_id, []).append(passage_id)
    return found


def _added(path: Path, most: int) -> Joining:
    """The near-duplicates of a number below `most`."""
    rows = sorted((row for row in tables.rows(path, NearDuplicate) if row.number < most), key=attrgetter("number"))
    passages = [Passage(f"{row.question_id}#{row.number}", row.title, row.text, None) for row in rows]
    return Joining(passages, np.array([row.number for row in rows], dtype=np.int64), [row.question_id for row in rows])


def _joins(questions: Sequence[Question], added: Sequence[Passage]) -> Joins:
    matcher = AnswerMatcher()

    def joins(question: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        given, texts = questions[question], [added[row].text for row in rows.tolist()]
        return ~matcher.matches(given.answers, texts, given.answer_kind)

    return joins
