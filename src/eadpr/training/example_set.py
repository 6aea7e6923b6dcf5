"""The training or validation examples of an arm in memory, with their texts looked up."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.records import Distractor, Example, Span
from eadpr.training.config import OTHERS, Loss

NUMBERS = pa.list_(pa.int32())


class ExampleSet(NamedTuple):
    """Parallel columns with an entry per example. Passages are rows of passages.parquet, lists of them NUMBERS.

    `other_positives`: positives of the same question. `distractors`: None for an example without one. `times`: how
    often an epoch asks the question, at least once. `placebos`: None for an example without one, and None as a whole
    where no loss needs them. `evidence`, alike: what the distractor lacks of the positive.
    """

    question_ids: list[str]
    questions: list[str]
    answers: list[list[str]]
    kinds: list[str]
    positives: np.ndarray
    negatives: pa.ListArray
    other_positives: pa.ListArray
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
    table = tables.read(folder / "examples.parquet", Example).filter(pc.field("role") == role)
    times = _times(table["question_id"].to_pylist(), role, records, dict(upsample))
    table = table.filter(pa.array(times > 0))
    ids, positives = table["question_id"].to_pylist(), table["positive"].to_pylist()
    by_id = {question.id: question for question in read_questions(records / "questions.parquet", set(ids))}
    questions, pairs = [by_id[question_id] for question_id in ids], list(zip(ids, positives, strict=True))
    cut = _read_distractors(folder / "distractors.parquet") if loss.needs_distractors or loss.rest else {}
    placebos = _read_distractors(folder / "placebos.parquet") if loss.needs_placebos else {}
    return ExampleSet(
        question_ids=ids,
        questions=[question.question for question in questions],
        answers=[question.answers for question in questions],
        kinds=[question.answer_kind for question in questions],
        positives=store.rows(positives),
        negatives=_find_rows(table["negatives"], store),
        other_positives=_find_rows(table["others"], store),
        distractors=[cut[pair][0] if loss.needs_distractors and pair in cut else None for pair in pairs],
        times=times[times > 0],
        placebos=[placebos.get(pair, (None,))[0] for pair in pairs] if loss.needs_placebos else None,
        evidence=[cut[pair][1] if pair in cut else None for pair in pairs] if loss.rest else None,
    )


def _times(question_ids: Sequence[str], role: str, records: Path, upsample: dict[str, int]) -> np.ndarray:
    default = upsample.pop(OTHERS, 1)
    by_question: dict[str, int] = {}
    for name, count in upsample.items():
        for question_id in read_question_ids(records / "question_sets.parquet", [name]):
            by_question[question_id] = max(count, by_question.get(question_id, 0))
    if role == "validation" and by_question.keys().isdisjoint(question_ids):
        default = 1  # they are of `sets.validation`, which no arm trains on, so all are taken
    return np.array([by_question.get(question_id, default) for question_id in question_ids], dtype=np.int64)


def _find_rows(column: pa.ChunkedArray, store: PassageStore) -> pa.ChunkedArray:
    """Return the rows of passages for a column with lists of their ids."""
    chunks = []
    for lists in column.chunks:
        ids = lists.flatten().dictionary_encode()
        rows = store.rows(ids.dictionary.to_pylist()).astype(np.int32)[ids.indices.to_numpy()]
        chunks.append(pa.ListArray.from_arrays(np.append(0, lists.value_lengths().to_numpy().cumsum()), rows))
    return pa.chunked_array(chunks, NUMBERS)


def _read_distractors(path: Path) -> dict[tuple[str, str], tuple[str, list[Span]]]:
    return {(row.question_id, row.passage_id): (row.text, row.removed) for row in tables.rows(path, Distractor)}
