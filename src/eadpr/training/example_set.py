"""The training or validation examples of an arm in memory, with their texts looked up."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.records import Distractor, Example, Span
from eadpr.training.config import OTHERS, Loss


class ExampleSet(NamedTuple):
    """Parallel lists with an entry per example. Passages are rows of passages.parquet.

    `other_positives`: positives of the same question. `distractors`: None for an example without one. `times`: how
    often an epoch asks the question, at least once. `placebos`: None for an example without one, and None as a whole
    where no loss needs them. `evidence`, alike: what the distractor lacks of the positive.
    """

    question_ids: list[str]
    questions: list[str]
    answers: list[list[str]]
    kinds: list[str]
    positives: np.ndarray
    negatives: list[np.ndarray]
    other_positives: list[np.ndarray]
    distractors: list[str | None]
    times: np.ndarray
    placebos: list[str | None] | None = None
    evidence: list[list[Span] | None] | None = None

    def select(self, rows: Sequence[int]) -> Self:
        def pick(column: Any) -> Any:
            return column[rows] if isinstance(column, np.ndarray) else column and [column[i] for i in rows]

        return ExampleSet(*map(pick, self))  # type: ignore[return-value]


def read_examples(
    folder: Path, records: Path, store: PassageStore, role: str, loss: Loss, upsample: Mapping[str, int]
) -> ExampleSet:
    """Read the examples of a role, with the distractors, placebos and evidence that the loss needs.

    `upsample` gives `times` by question set, else 1 (or `others`); 0 leaves out. Of several sets the most counts.
    """
    rows = [row for row in tables.rows(folder / "examples.parquet", Example) if row.role == role]
    times = _times(rows, role, records, dict(upsample))
    rows = [row for row, count in zip(rows, times, strict=True) if count]
    records_of = read_questions(records / "questions.parquet", {row.question_id for row in rows})
    by_id = {question.id: question for question in records_of}
    questions = [by_id[row.question_id] for row in rows]
    changed = _read_distractors(folder / "distractors.parquet") if loss.needs_distractors or loss.rest else {}
    pairs = [(row.question_id, row.positive) for row in rows]
    cut = [changed[pair] if changed and row.distractors else None for pair, row in zip(pairs, rows, strict=True)]
    placebos = _read_distractors(folder / "placebos.parquet") if loss.needs_placebos else {}
    return ExampleSet(
        question_ids=[row.question_id for row in rows],
        questions=[question.question for question in questions],
        answers=[question.answers for question in questions],
        kinds=[question.answer_kind for question in questions],
        positives=store.rows([row.positive for row in rows]),
        negatives=[store.rows(row.negatives) for row in rows],
        other_positives=[store.rows(row.others) for row in rows],
        distractors=[row.text if loss.needs_distractors and row else None for row in cut],
        times=np.array([count for count in times if count], dtype=np.int64),
        placebos=[row and row.text for row in map(placebos.get, pairs)] if loss.needs_placebos else None,
        evidence=[row and row.removed for row in cut] if loss.rest else None,
    )


def _times(rows: Sequence[Example], role: str, records: Path, upsample: dict[str, int]) -> list[int]:
    default = upsample.pop(OTHERS, 1)
    by_question: dict[str, int] = {}
    for name, count in upsample.items():
        for question_id in read_question_ids(records / "question_sets.parquet", [name]):
            by_question[question_id] = max(count, by_question.get(question_id, 0))
    if role == "validation" and not any(row.question_id in by_question for row in rows):
        default = 1  # they are of `sets.validation`, which no arm trains on, so all are taken
    return [by_question.get(row.question_id, default) for row in rows]


def _read_distractors(path: Path) -> dict[tuple[str, str], Distractor]:
    return {(row.question_id, row.passage_id): row for row in tables.rows(path, Distractor)}
