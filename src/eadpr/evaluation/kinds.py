"""Kinds of questions, each with means of its own in the report; and the position of the evidence in its passage."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa

from eadpr.storage import engine
from eadpr.storage.questions import create_asked
from eadpr.storage.records import Evidence, Passage, Positive
from eadpr.text.question_types import TYPES

KindName = Literal["type", "hop_type", "relation", "position"]
POSITIONS = ("early", "middle", "late")
UNKNOWN = pa.schema([("question_id", pa.string()), ("position", pa.string())]).empty_table()


class KindOfQuestion(NamedTuple):
    """A title, and groups in the order shown; without any, the groups that the source names."""

    title: str
    groups: Sequence[str] = ()


# All but the last are columns of the outcomes.
KINDS: dict[KindName, KindOfQuestion] = {
    "type": KindOfQuestion("question type", TYPES),
    "hop_type": KindOfQuestion("hop type"),
    "relation": KindOfQuestion("relation"),
    "position": KindOfQuestion("position of the evidence", POSITIONS),
}
# The position is the third of the passage that the middle of the first span of evidence lies in.
FIRST_EVIDENCE = f"""
    SELECT question_id, {[*POSITIONS]}[1 + 3 * (first.start + first."end") // (2 * length(passages.text))] AS position
    FROM (SELECT *, list_min([spans[place + 1] FOR place IN chosen]) AS first FROM evidence) evidence
    SEMI JOIN (
        FROM positives SEMI JOIN asked USING (question_id)
        QUALIFY row_number() OVER (PARTITION BY question_id ORDER BY {engine.POSITION}) = 1
    ) USING (question_id, passage_id)
    JOIN passages ON passages.id = passage_id
    WHERE strategy = $strategy AND len(chosen) > 0
    ORDER BY evidence.{engine.POSITION}
"""


def positions(records: Path, positives: Path, evidence: Path, strategy: str, question_sets: Sequence[str]) -> pa.Table:
    """Return the `position` of a strategy's evidence in the first positive of each question where it is known."""
    with engine.connect() as connection:
        engine.view(connection, "evidence", evidence, Evidence)
        engine.view(connection, "positives", positives, Positive)
        engine.view(connection, "passages", records / "passages.parquet", Passage)
        create_asked(connection, records, {"evaluated": question_sets})
        return connection.execute(FIRST_EVIDENCE, {"strategy": strategy}).to_arrow_table().cast(UNKNOWN.schema)
