"""Questions joined with their positive passages: what the annotator learns from and what evidence is sought in."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eadpr import engine, tables
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


def pairs(
    records: Path, positives: Path, ids: Collection[str] | pa.Array, *, first: int = 0, count: int | None = None
) -> Iterator[Pair]:
    """Stream the given questions with each of their positives, in the order of positives.parquet: `count` of them (all
    by default) from the one numbered `first` on."""
    with engine.connect() as connection:
        engine.view(connection, "questions", records / "questions.parquet", Question)
        engine.view(connection, "passages", records / "passages.parquet", Passage)
        engine.view(connection, "positives", positives, Positive)
        connection.register("ids", _column(ids))
        part = {"first": first, "count": tables.count(positives, Positive) if count is None else count}
        for batch in engine.batches(connection, _PAIRS, part):
            own = tables.records(batch.select(Positive._fields), Positive)
            parts = ((batch["question"], Question), (batch["passage"], Passage))
            joined = (tables.records(pa.RecordBatch.from_struct_array(part), record) for part, record in parts)
            for question, passage, positive in zip(*joined, own, strict=True):
                if question.id is None or passage.id is None:
                    missing = "question_id" if question.id is None else "passage_id"
                    raise ValueError(
                        f"{positives}: {missing} {getattr(positive, missing)!r} is not in {records};"
                        " run `dvc repro positives`"
                    )
                yield Pair(question, passage, positive.gold)


# Numbers are taken before the join, so that a part costs a part.
_PAIRS = f"""
SELECT q AS question, p AS passage, g.* FROM (
    SELECT * FROM positives WHERE question_id IN (SELECT id FROM ids) ORDER BY {engine.POSITION}
    LIMIT $count OFFSET $first
) g LEFT JOIN questions q ON q.id = question_id LEFT JOIN passages p ON p.id = passage_id ORDER BY g.{engine.POSITION}
"""


def first_of_each(found: Iterator[Pair]) -> Iterator[Pair]:
    """The first pair of every question, whose pairs stand together."""
    return (next(own) for _, own in groupby(found, key=lambda pair: pair.question.id))


def count(positives: Path, ids: Collection[str]) -> int:
    """How many pairs `pairs` gives."""
    asked = tables.read(positives, Positive, columns=["question_id"])["question_id"]
    return pc.sum(pc.is_in(asked, value_set=_column(ids)["id"].combine_chunks())).as_py() or 0


def _column(ids: Collection[str] | pa.Array) -> pa.Table:
    return pa.table({"id": ids if isinstance(ids, pa.Array) else pa.array(list(ids), pa.string())})
