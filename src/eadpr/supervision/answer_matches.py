"""Answer matching inside the engine's queries: `text.answers.has_answer` for whole columns.

A text can have an answer only if it has the longest of the answer's tokens. So each text gets marks, a bit for the hash
of each of its tokens, which take a fifth of its size: most pairs are ruled out by a bit, and only the texts of the
others are searched.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from eadpr.storage import engine
from eadpr.storage.records import Passage
from eadpr.text import answers

MARKS = 1024  # bits; a passage of a hundred words sets some seventy
_WORD = 64  # bits of an integer that holds some of them


def register(connection: engine.Connection) -> None:
    """Define the functions of answer matching for queries.

    `needles` prepares a question's answers and `padded` a passage's text, once each, so that `holds` is a search for a
    substring by the engine, and for patterns a search by Python.
    """

    def define(name: str, function: Callable, parameters: list[str], result: str, **options: str) -> None:
        connection.create_function(name, function, parameters, result, type="arrow", **options)

    define("needles", _needles, ["VARCHAR[]", "VARCHAR"], "VARCHAR[]")
    define("needed", _needed_bits, ["VARCHAR[]", "VARCHAR"], "USMALLINT[]", null_handling="special")
    define("padded", _padded, ["VARCHAR"], "VARCHAR")
    define("marks", _marks, ["VARCHAR"], "UBIGINT[]")
    define("matches_pattern", _matches_pattern, ["VARCHAR[]", "VARCHAR"], "BOOLEAN")
    connection.execute(_MACROS)


# The bare needle is searched first: its first letter is rarer than a space, which halves the time.
_MACROS = f"""
CREATE MACRO marked(marks, needed) AS
    len(list_filter(needed, bit -> (marks[1 + bit // {_WORD}] >> (bit % {_WORD})) & 1 = 1)) > 0;
CREATE MACRO within(padded, needle) AS
    CASE WHEN contains(padded, trim(needle)) THEN contains(padded, needle) ELSE false END;
CREATE MACRO holds(needles, kind, padded, text) AS CASE WHEN kind = 'regex' THEN matches_pattern(needles, text)
    ELSE len(list_filter(needles, needle -> within(padded, needle))) > 0 END
"""


def read_texts(connection: engine.Connection, passages: Path, ids: str) -> None:
    """Make the table `texts` of the passages with the ids that the query `ids` gives.

    Its columns are passage_id, title, digest (of the text), marks, padded and text. A table `answerable` has the
    questions' answer_kind. Raises ValueError for an id that is not in the collection.
    """
    engine.view(connection, "passages", passages, Passage)
    patterns = engine.value(connection, "SELECT bool_or(answer_kind = 'regex') FROM answerable")
    connection.execute(f"CREATE TABLE ids AS SELECT DISTINCT passage_id FROM ({ids})")
    with engine.as_written(connection):
        connection.execute(_TEXTS.format("text" if patterns else "NULL::VARCHAR"))
    unknown = engine.value(connection, "SELECT min(passage_id) FROM ids ANTI JOIN texts USING (passage_id)")
    if unknown is not None:
        raise ValueError(
            f"passage id {unknown!r} is not in {passages}; a table was made from other passages, run `dvc repro`"
        )
    connection.execute("DROP TABLE ids")


_TEXTS = """
CREATE TABLE texts AS SELECT *, marks(padded) AS marks FROM (
    SELECT id AS passage_id, title, md5_number_lower(text) AS digest, padded(text) AS padded, {} AS text
    FROM passages SEMI JOIN ids ON passage_id = id
)
"""


def find_matches(connection: engine.Connection, pairs: str) -> None:
    """Make the table `matches`: the rows (place, passage_id) of the query `pairs` with an answer in the passage.

    The table `answerable` has the questions' place, answer_kind and needles. Only the last join carries texts, and its
    result is filtered at once: rows with texts never wait on disk.
    """
    with engine.as_written(connection):
        connection.execute(_LIKELY.format(pairs))
        connection.execute(_MATCHES)


_LIKELY = """
CREATE TABLE likely AS
WITH bits AS (SELECT place, needed(needles, answer_kind) AS needed FROM answerable WHERE len(needles) > 0)
SELECT place, passage_id FROM ({}) JOIN bits USING (place) JOIN texts USING (passage_id)
WHERE needed IS NULL OR marked(marks, needed)
"""
_MATCHES = """
CREATE TABLE matches AS
SELECT place, passage_id FROM likely JOIN answerable USING (place) JOIN texts USING (passage_id)
WHERE holds(needles, answer_kind, padded, text)
"""


def _map_rows(function: Callable[..., Any], columns: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array([function(*row) for row in rows], kind)


def _needles(texts: pa.Array, kinds: pa.Array) -> pa.Array:
    return _map_rows(answers.needles, (texts, kinds), pa.list_(pa.string()))


def _needed_bits(needles: pa.Array, kinds: pa.Array) -> pa.Array:
    """Return the bit of each needle's longest token, or null if a text without it may hold an answer."""

    def bits(needles: list[str], kind: str) -> list[int] | None:
        if kind == "regex" or "" in needles:
            return None
        return [hash(max(needle.split(), key=len)) % MARKS for needle in needles]

    return _map_rows(bits, (needles, kinds), pa.list_(pa.uint16()))


def _padded(texts: pa.Array) -> pa.Array:
    return _map_rows(answers.padded, (texts,), pa.string())


def _matches_pattern(patterns: pa.Array, texts: pa.Array) -> pa.Array:
    return _map_rows(lambda row, text: answers.has_answer(row, text, "regex"), (patterns, texts), pa.bool_())


def _marks(padded: pa.Array) -> pa.Array:
    """Return the marks of each text. Python's hashes differ between runs, but rule out no match in any."""
    tokens = [text.split() for text in padded.to_pylist()]
    bits = np.fromiter(map(hash, chain.from_iterable(tokens)), np.int64) % MARKS
    marked = np.zeros((len(tokens), MARKS), bool)
    marked[np.repeat(np.arange(len(tokens)), [len(row) for row in tokens]), bits] = True
    words = np.packbits(marked, axis=1, bitorder="little").view("<u8")
    ends = np.arange(0, words.size + 1, words.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(words.ravel()))
