"""Answer matching inside the engine's queries: what `text.has_answer` decides, for whole columns.

A text may hold an answer only where it has the longest of the answer's tokens. So each text has marks, a bit for the
hash of each of its tokens, which are a fifth of its size: most pairs are left out by a bit, and the others' texts are
searched.
"""

from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from eadpr.storage import engine
from eadpr.storage.records import Passage
from eadpr.text import answers as text

MARKS = 1024  # bits; a passage of a hundred words sets some seventy
_WORD = 64  # bits of an integer that holds some of them


def register(connection: engine.Connection) -> None:
    """Make the functions `needles`, `needed`, `padded`, `marks` and `holds` known to queries.

    Each question's answers become needles and each passage's text is padded once; that a text holds an answer is then
    a search for a substring, which the engine does, and for patterns a search by Python.
    """
    strings = "VARCHAR[]"
    connection.create_function("needles", _needles, [strings, "VARCHAR"], strings, type="arrow")
    connection.create_function(
        "needed", _needed, [strings, "VARCHAR"], "USMALLINT[]", type="arrow", null_handling="special"
    )
    connection.create_function("padded", _padded, ["VARCHAR"], "VARCHAR", type="arrow")
    connection.create_function("marks", _marks, ["VARCHAR"], "UBIGINT[]", type="arrow")
    connection.create_function("found", _found, [strings, "VARCHAR"], "BOOLEAN", type="arrow")
    connection.execute(
        "CREATE MACRO marked(marks, needed) AS"
        f" len(list_filter(needed, bit -> (marks[1 + bit // {_WORD}] >> (bit % {_WORD})) & 1 = 1)) > 0"
    )
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
    texts share, marks, what `holds` needs.

    `sought` is a table with the questions' answer_kind. Raises ValueError for an id that is not in the collection.
    """
    engine.view(connection, "passages", passages, Passage)
    patterns = engine.value(connection, "SELECT bool_or(answer_kind = 'regex') FROM sought")
    connection.execute(f"CREATE TABLE wanted AS SELECT DISTINCT passage_id FROM ({wanted})")
    with engine.as_written(connection):
        connection.execute(_WORDS.format("text" if patterns else "NULL::VARCHAR"))
    unknown = engine.value(connection, "SELECT min(passage_id) FROM wanted ANTI JOIN words USING (passage_id)")
    if unknown is not None:
        raise ValueError(
            f"passage id {unknown!r} is not in {passages}; a table was made from other passages, run `dvc repro`"
        )
    connection.execute("DROP TABLE wanted")


_WORDS = """
CREATE TABLE words AS SELECT *, marks(padded) AS marks FROM (
    SELECT id AS passage_id, title, md5_number_lower(text) AS digest, padded(text) AS padded, {} AS text
    FROM passages SEMI JOIN wanted ON passage_id = id
)
"""


def search(connection: engine.Connection, pairs: str) -> None:
    """Make the table `holding`: the rows (place, passage_id) of the query `pairs` whose passage holds an answer.

    `sought` is a table of the questions' place, answer_kind and needles. Only the last join carries texts, and what it
    gives is filtered at once: rows with texts never wait on disk.
    """
    connection.execute(
        "CREATE TABLE bits AS SELECT place, needed(needles, answer_kind) AS needed FROM sought WHERE len(needles) > 0"
    )
    with engine.as_written(connection):
        connection.execute(_LIKELY.format(pairs))
        connection.execute(_HOLDING)


_LIKELY = """
CREATE TABLE likely AS SELECT place, passage_id FROM ({}) JOIN bits USING (place) JOIN words USING (passage_id)
WHERE needed IS NULL OR marked(marks, needed)
"""
_HOLDING = """
CREATE TABLE holding AS
SELECT place, passage_id FROM likely JOIN sought USING (place) JOIN words USING (passage_id)
WHERE holds(needles, answer_kind, padded, text)
"""


def _needles(answers: pa.Array, kinds: pa.Array) -> pa.Array:
    rows = zip(answers.to_pylist(), kinds.to_pylist(), strict=True)
    return pa.array([text.needles(own, kind) for own, kind in rows], pa.list_(pa.string()))


def _needed(needles: pa.Array, kinds: pa.Array) -> pa.Array:
    """Of each needle the bit of its longest token; null where a text without it may hold an answer."""
    rows = zip(needles.to_pylist(), kinds.to_pylist(), strict=True)
    return pa.array(
        [
            None if kind == "regex" or "" in own else [hash(max(needle.split(), key=len)) % MARKS for needle in own]
            for own, kind in rows
        ],
        pa.list_(pa.uint16()),
    )


def _padded(texts: pa.Array) -> pa.Array:
    return pa.array([text.padded(one) for one in texts.to_pylist()], pa.string())


def _marks(padded: pa.Array) -> pa.Array:
    """Python's hashes differ between runs, what they leave out does not hold an answer in any."""
    tokens = [one.split() for one in padded.to_pylist()]
    bits = np.fromiter(map(hash, chain.from_iterable(tokens)), np.int64) % MARKS
    marked = np.zeros((len(tokens), MARKS), bool)
    marked[np.repeat(np.arange(len(tokens)), [len(own) for own in tokens]), bits] = True
    words = np.packbits(marked, axis=1, bitorder="little").view("<u8")
    ends = np.arange(0, words.size + 1, words.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(words.ravel()))


def _found(patterns: pa.Array, texts: pa.Array) -> pa.Array:
    rows = zip(patterns.to_pylist(), texts.to_pylist(), strict=True)
    return pa.array([text.has_answer(own, one, "regex") for own, one in rows], pa.bool_())
