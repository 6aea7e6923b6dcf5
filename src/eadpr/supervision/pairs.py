"""Questions joined with their positive passages: what the annotator learns from and what evidence is sought in."""

from collections.abc import Collection, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from eadpr.storage import engine, tables
from eadpr.storage.records import Evidence, Passage, Positive, Question, Span
from eadpr.text.answers import answer_spans

Ids = Collection[str] | pa.Array


class Pair(NamedTuple):
    made_by = "evidence"
    question: Question
    passage: Passage
    gold: list[Span] | None

    @property
    def held(self) -> list[Span]:
        """Where answers stand in the passage."""
        return answer_spans(self.question.answers, self.passage.text, self.question.answer_kind)

    @property
    def target(self) -> str:
        """What a QA model should say: the first answer, or what a pattern matches in the passage; empty if none."""
        if self.question.answer_kind != "regex":
            return self.question.answers[0] if self.question.answers else ""
        held = self.held
        return self.passage.text[held[0].start : held[0].end] if held else ""


def pairs(records: Path, positives: Path, ids: Ids, *, first: bool = False) -> Iterator[Pair]:
    """Stream the given questions with each of their positives, or the `first`, in the order of positives.parquet."""
    for table in joined(records, positives, ids, first):
        for batch in table.to_batches():
            yield from tables.records(batch, Pair)


def annotated(records: Path, positives: Path, evidence: Path, ids: Ids | None = None) -> Iterator[Pair]:
    """The pairs that `evidence` is of, or `ids`: the first of each question where none has two there, or else each."""
    columns = ["question_id", "passage_id"]
    keys = tables.read(evidence, Evidence, columns=columns).group_by(columns).aggregate([])
    asked = keys["question_id"].unique()
    return pairs(records, positives, asked if ids is None else ids, first=len(asked) == len(keys))


def read(path: Path, *, first: int, count: int) -> list[Pair]:
    """`count` of the pairs of a file, fewer at its end, from the one numbered `first` on."""
    batches = tables.batches(path, Pair, size=count, first=first)
    return list(islice(chain.from_iterable(tables.records(batch, Pair) for batch in batches), count))


def joined(records: Path, positives: Path, ids: Ids, first: bool) -> Iterator[pa.Table]:
    """Tables of `Pair`s, as `pairs` streams them."""
    with engine.connect() as connection:
        engine.view(connection, "questions", records / "questions.parquet", Question)
        engine.view(connection, "passages", records / "passages.parquet", Passage)
        engine.view(connection, "positives", positives, Positive)
        column = ids if isinstance(ids, pa.Array) else pa.array(list(ids), pa.string())
        connection.register("ids", pa.table({"id": column}))
        for batch in engine.batches(connection, _pairs(first)):
            for key, part in (("question_id", "question"), ("passage_id", "passage")):
                missing = batch[key].filter(batch[part].field("id").is_null())
                if len(missing):
                    raise ValueError(
                        f"{positives}: {key} {missing[0].as_py()!r} is not in {records}; run `dvc repro positives`"
                    )
            yield pa.Table.from_batches([batch]).select(Pair._fields).cast(tables.schema(Pair))


def _struct(table: str, record: type) -> str:
    return "{" + ", ".join(f"'{name}': {table}.{name}" for name in record._fields) + "}"


_ONE = f"QUALIFY row_number() OVER (PARTITION BY question_id ORDER BY {engine.POSITION}) = 1"


def _pairs(first: bool) -> str:
    return f"""
        SELECT {_struct("q", Question)} AS question, {_struct("p", Passage)} AS passage, gold, question_id, passage_id
        FROM (SELECT * FROM positives WHERE question_id IN (SELECT id FROM ids) {_ONE if first else ""}) g
        LEFT JOIN questions q ON q.id = question_id LEFT JOIN passages p ON p.id = passage_id
        ORDER BY g.{engine.POSITION}
    """
