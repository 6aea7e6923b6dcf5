"""Kinds of questions that means are shown for apart, in one table; and where in its passage the evidence stands."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa

from eadpr import engine
from eadpr.question_types import TYPES
from eadpr.questions import ask
from eadpr.records import Evidence, Passage, Positive, Span

KindName = Literal["type", "hop_type", "relation", "position"]
POSITIONS = ("early", "middle", "late")
UNKNOWN = pa.schema([("question_id", pa.string()), ("position", pa.string())]).empty_table()


class KindOfQuestion(NamedTuple):
    """How it is called, and its groups in the order shown; without any they are those that the source names."""

    title: str
    groups: Sequence[str] = ()


# All but the last are columns of the outcomes.
KINDS: dict[KindName, KindOfQuestion] = {
    "type": KindOfQuestion("question type", TYPES),
    "hop_type": KindOfQuestion("hop type"),
    "relation": KindOfQuestion("relation"),
    "position": KindOfQuestion("position of the evidence", POSITIONS),
}
FIRST_EVIDENCE = f"""
    SELECT question_id, spans, chosen, length(passages.text) AS length
    FROM evidence
    SEMI JOIN (
        FROM positives SEMI JOIN asked USING (question_id)
        QUALIFY row_number() OVER (PARTITION BY question_id ORDER BY {engine.POSITION}) = 1
    ) USING (question_id, passage_id)
    JOIN passages ON passages.id = passage_id
    WHERE strategy = $strategy AND len(chosen) > 0
    ORDER BY evidence.{engine.POSITION}
"""


def position(spans: Sequence[Span], length: int) -> str:
    """The third of a passage of `length` characters that the middle of the first of the spans lies in."""
    start, end = min(spans)
    return POSITIONS[3 * (start + end) // (2 * length)]


def positions(records: Path, positives: Path, evidence: Path, strategy: str, question_sets: Sequence[str]) -> pa.Table:
    """The `position` of a strategy's evidence in the first positive of each question where it is known."""
    with engine.connect() as connection:
        engine.view(connection, "evidence", evidence, Evidence)
        engine.view(connection, "positives", positives, Positive)
        engine.view(connection, "passages", records / "passages.parquet", Passage)
        ask(connection, records, {"evaluated": question_sets})
        rows = connection.execute(FIRST_EVIDENCE, {"strategy": strategy}).fetchall()
    found = {
        question_id: position([Span(spans[i]["start"], spans[i]["end"]) for i in chosen], length)
        for question_id, spans, chosen, length in rows
    }
    return pa.table({"question_id": [*found], "position": [*found.values()]}, schema=UNKNOWN.schema)
