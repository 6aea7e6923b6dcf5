"""Answer matching inside the engine's queries: `text.answers.has_answer` for whole columns."""

from pathlib import Path

from eadpr.storage import engine
from eadpr.storage.records import Passage
from eadpr.text import answers


def register(connection: engine.Connection) -> None:
    """Define the functions of answer matching for queries: `needles` prepares a question's answers and `padded` a
    passage's text, once each, so that `holds` is a search for a substring, for patterns one by Python."""
    connection.create_function("needles", answers.needles, ["VARCHAR[]", "VARCHAR"], "VARCHAR[]")
    connection.create_function("padded", answers.padded, ["VARCHAR"], "VARCHAR")
    connection.create_function("has_answer", answers.has_answer, ["VARCHAR[]", "VARCHAR", "VARCHAR"], "BOOLEAN")
    connection.execute(_MACROS)


# The bare needle is searched first: its first letter is rarer than a space, which halves the time.
_MACROS = """
CREATE MACRO within(padded, needle) AS
    CASE WHEN contains(padded, trim(needle)) THEN contains(padded, needle) ELSE false END;
CREATE MACRO holds(needles, kind, padded, text) AS CASE WHEN kind = 'regex' THEN has_answer(needles, text, kind)
    ELSE len(list_filter(needles, needle -> within(padded, needle))) > 0 END
"""


def read_texts(connection: engine.Connection, passages: Path, ids: str) -> None:
    """Make the table `texts` (passage_id, title, digest of the text but for case and white space, padded, text) of the
    passages with the ids that the query `ids` gives. A table `answerable` has the questions' answer_kind."""
    engine.view(connection, "passages", passages, Passage)
    patterns = engine.value(connection, "SELECT bool_or(answer_kind = 'regex') FROM answerable")
    connection.execute(f"CREATE TABLE ids AS SELECT DISTINCT passage_id FROM ({ids})")
    with engine.as_written(connection):
        connection.execute(_TEXTS.format("text" if patterns else "NULL::VARCHAR"))
    connection.execute("DROP TABLE ids")


_TEXTS = """
CREATE TABLE texts AS
SELECT id AS passage_id, title, md5_number_lower(padded) AS digest, padded, {} AS text
FROM (SELECT id, title, text, padded(text) AS padded FROM passages SEMI JOIN ids ON passage_id = id)
"""


def find_matches(connection: engine.Connection, pairs: str) -> None:
    """Make the table `matches`: the rows (place, passage_id) of the query `pairs` with an answer in the passage. The
    table `answerable` has the questions' place, answer_kind and needles."""
    with engine.as_written(connection):
        connection.execute(_MATCHES.format(pairs))


_MATCHES = """
CREATE TABLE matches AS
SELECT place, passage_id FROM ({}) JOIN answerable USING (place) JOIN texts USING (passage_id)
WHERE holds(needles, answer_kind, padded, text)
"""
