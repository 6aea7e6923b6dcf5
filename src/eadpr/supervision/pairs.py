"""Questions joined with their positive passages: what the annotator learns from and what evidence is sought in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eadpr import questions, tables
from eadpr.records import Passage, Positive, Question, Span
from eadpr.text import answer_spans


class Pair(NamedTuple):
    question: Question
    passage: Passage
    gold: list[Span] | None

    @property
    def target(self) -> str:
        """What a QA model should say: the first answer, or what a pattern matches in the passage; empty if none."""
        answers, kind = self.question.answers, self.question.answer_kind
        if kind != "regex":
            return answers[0] if answers else ""
        found = answer_spans(answers, self.passage.text, kind)
        return self.passage.text[found[0].start : found[0].end] if found else ""


def pairs(records: Path, positives: Path, ids: Collection[str]) -> Iterator[Pair]:
    """The given questions with each of their positives, in the order of positives.parquet.

    Holds in memory these questions and their positives (some 150 MB for 100,000), not the collection.
    """
    table = tables.read(positives, Positive)
    table = table.filter(_asked(table, ids))
    asked = {question.id: question for question in questions.selected(records / "questions.parquet", ids)}
    found = _passages(records / "passages.parquet", pc.unique(table["passage_id"]))
    for batch in table.to_batches():
        for positive in tables.records(batch, Positive):
            question, passage = asked.get(positive.question_id), found.get(positive.passage_id)
            if question is None or passage is None:
                missing = "question_id" if question is None else "passage_id"
                raise ValueError(
                    f"{positives}: {missing} {getattr(positive, missing)!r} is not in {records};"
                    " run `dvc repro positives`"
                )
            yield Pair(question, passage, positive.gold)


def first_of_each(found: Iterable[Pair]) -> Iterator[Pair]:
    """The first pair of every question."""
    seen = set()
    for pair in found:
        if pair.question.id not in seen:
            seen.add(pair.question.id)
            yield pair


def count(positives: Path, ids: Collection[str]) -> int:
    """How many pairs `pairs` gives."""
    return pc.sum(_asked(tables.read(positives, Positive, columns=["question_id"]), ids)).as_py() or 0


def _asked(table: pa.Table, ids: Collection[str]) -> pa.ChunkedArray:
    return pc.is_in(table["question_id"], value_set=pa.array(list(ids), pa.string()))


def _passages(path: Path, ids: pa.Array) -> dict[str, Passage]:
    found = {}
    for batch in tables.batches(path, Passage):
        wanted = batch.filter(pc.is_in(batch["id"], value_set=ids))
        found |= {passage.id: passage for passage in tables.records(wanted, Passage)}
    return found
