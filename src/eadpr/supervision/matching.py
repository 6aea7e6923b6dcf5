"""Answer matching inside the engine's queries: what `text.has_answer` decides, for whole columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from eadpr import engine, text
from eadpr.records import Passage


def register(connection: engine.Connection) -> None:
    """Make the functions `needles`, `padded` and `holds` known to queries.

    Each question's answers become needles and each passage's text is padded once; that a text holds an answer is then
    a search for a substring, which the engine does, and for patterns a search by Python.
    """
    strings = "VARCHAR[]"
    connection.create_function("needles", _needles, [strings, "VARCHAR"], strings, type="arrow")
    connection.create_function("padded", _padded, ["VARCHAR"], "VARCHAR", type="arrow")
    connection.create_function("found", _found, [strings, "VARCHAR"], "BOOLEAN", type="arrow")
    # The bare needle is sought first: its first letter is rarer than a space, which halves the time.
    connection.execute(
        "CREATE MACRO within(padded, needle) AS"
        " CASE WHEN contains(padded, trim(needle)) THEN contains(padded, needle) ELSE false END"
    )
    connection.execute(
        "CREATE MACRO holds(sought, kind, padded, text) AS CASE WHEN kind = 'regex' THEN found(sought, text)"
        " ELSE len(list_filter(sought, needle -> within(padded, needle))) > 0 END"
    )


def read_passages(connection: engine.Connection, passages: Path, wanted: str) -> None:
    """Make the table `words` of the passages whose ids the query `wanted` gives: passage_id, title, a digest that equal
    texts share, what `holds` needs.

    `sought` is a table with the questions' answer_kind. Raises ValueError for an id that is not in the collection.
    """
    engine.view(connection, "passages", passages, Passage)
    patterns = engine.value(connection, "SELECT bool_or(answer_kind = 'regex') FROM sought")
    connection.execute(
        "CREATE TABLE words AS SELECT passage_id, id IS NOT NULL AS known, title, md5_number(text) AS digest,"
        f" padded(text) AS padded, {'text' if patterns else 'NULL::VARCHAR'} AS text"
        f" FROM (SELECT DISTINCT passage_id FROM ({wanted})) LEFT JOIN passages ON id = passage_id"
    )
    unknown = engine.value(connection, "SELECT min(passage_id) FROM words WHERE NOT known")
    if unknown is not None:
        raise ValueError(
            f"passage id {unknown!r} is not in {passages}; a table was made from other passages, run `dvc repro`"
        )


def _needles(answers: pa.Array, kinds: pa.Array) -> pa.Array:
    rows = zip(answers.to_pylist(), kinds.to_pylist(), strict=True)
    return pa.array([text.needles(own, kind) for own, kind in rows], pa.list_(pa.string()))


def _padded(texts: pa.Array) -> pa.Array:
    return pa.array([text.padded(one) for one in texts.to_pylist()], pa.string())


def _found(patterns: pa.Array, texts: pa.Array) -> pa.Array:
    rows = zip(patterns.to_pylist(), texts.to_pylist(), strict=True)
    return pa.array([text.has_answer(own, one, "regex") for own, one in rows], pa.bool_())
