"""Questions joined with their positive passages: the annotator learns from them, and evidence is searched in them."""

from collections.abc import Collection, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from eadpr.storage import engine, tables
from eadpr.storage.records import Evidence, Passage, Positive, Question, Span
from eadpr.text.answers import answer_spans


class Pair(NamedTuple):
    question: Question
    passage: Passage
    gold: list[Span] | None

    @property
    def answer_spans(self) -> list[Span]:
        question = self.question
        return answer_spans(question.answers, self.passage.text, question.answer_kind, question=question.question)

    @property
    def target(self) -> str:
        """The answer that a QA model should give: the first, or a pattern's match in the passage; empty if none."""
        if self.question.answer_kind != "regex":
            return self.question.answers[0] if self.question.answers else ""
        spans = self.answer_spans
        return self.passage.text[spans[0].start : spans[0].end] if spans else ""


def read_pairs(records: Path, positives: Path, ids: Collection[str], *, first: bool = False) -> Iterator[Pair]:
    """Stream the questions `ids` with each of their positives, or the `first`, in the order of positives.parquet."""
    with engine.connect() as connection:
        engine.view(connection, "questions", records / "questions.parquet", Question)
        engine.view(connection, "passages", records / "passages.parquet", Passage)
        engine.view(connection, "positives", positives, Positive)
        connection.register("ids", pa.table({"id": pa.array(ids, pa.string())}))
        connection.execute(f"CREATE VIEW selected AS {_SELECTED} {_FIRST if first else ''}")
        for table in engine.records(connection, _PAIRS, Pair):
            for batch in table.to_batches():
                yield from tables.records(batch, Pair)


def read_annotated_pairs(
    records: Path, positives: Path, evidence: Path, ids: Collection[str] | None = None
) -> Iterator[Pair]:
    """Stream the pairs of the table `evidence`, or of the questions `ids`: the first of each if `evidence` has one."""
    columns = ["question_id", "passage_id"]
    keys = tables.read(evidence, Evidence, columns=columns).group_by(columns).aggregate([])
    annotated = keys["question_id"].unique().to_pylist()
    return read_pairs(records, positives, annotated if ids is None else ids, first=len(annotated) == len(keys))


def read_range(path: Path, *, first: int, count: int) -> list[Pair]:
    """Return `count` pairs of a file, fewer at its end, from number `first` on."""
    batches = tables.batches(path, Pair, size=count, first=first)
    return list(islice(chain.from_iterable(tables.records(batch, Pair) for batch in batches), count))


def _struct(table: str, record: type) -> str:
    return "{" + ", ".join(f"'{name}': {table}.{name}" for name in record._fields) + "}"


_SELECTED = f"SELECT *, {engine.POSITION} AS place FROM positives SEMI JOIN ids ON id = question_id"
_FIRST = "QUALIFY row_number() OVER (PARTITION BY question_id ORDER BY place) = 1"
_PAIRS = f"""
SELECT {_struct("q", Question)} AS question, {_struct("p", Passage)} AS passage, gold
FROM selected JOIN questions q ON q.id = question_id JOIN passages p ON p.id = passage_id ORDER BY place
"""
