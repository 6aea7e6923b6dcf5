"""Passages that contexts have and the corpus lacks: they join it, or are odd."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from eadpr.corpus.rows import NAMED, OddRows, RowError, check_text, excerpt
from eadpr.corpus.sources import Prepare
from eadpr.storage import engine, tables
from eadpr.storage.records import Passage

# For each passage that contexts name and the corpus lacks, the first context that does.
_MISSING = """
CREATE TABLE missing AS
SELECT c.*, a.place || ': ' || c.role || ' ' || c."order" AS place
FROM (
    SELECT min(named.c) AS c FROM named ANTI JOIN corpus ON corpus.id = named.passage_id GROUP BY named.passage_id
) JOIN named c USING (c) JOIN asked a USING (n);
CREATE VIEW passages AS SELECT id, title, text FROM corpus UNION ALL SELECT passage_id, title, text FROM missing
"""
# Passages that cannot join the corpus; $join where those with a text can. `split` is null but for a split document.
_LACKED = """
CREATE TABLE lacked AS SELECT missing.*, corpus.id AS split, (SELECT min(id) FROM corpus) AS example
FROM missing LEFT JOIN corpus ON corpus.id = missing.passage_id || '#1' WHERE NOT $join OR missing.text IS NULL
"""
_LEAVE_OUT = """
DELETE FROM named WHERE passage_id IN (SELECT passage_id FROM lacked);
DELETE FROM pointed WHERE passage_id IN (SELECT passage_id FROM lacked);
DELETE FROM missing WHERE passage_id IN (SELECT passage_id FROM lacked)
"""


def find_missing(connection: engine.Connection, settings: Prepare, odd: OddRows) -> None:
    """Make the table `missing` of the passages that are to join the corpus, and the view `passages` with them.

    Contexts with a passage that cannot join are odd.
    """
    connection.execute(_MISSING)
    connection.execute(_LACKED, {"join": settings.add_context_passages})
    if count := engine.value(connection, "SELECT count(*) FROM named SEMI JOIN lacked USING (passage_id)"):
        first = engine.rows(connection, f"FROM lacked ORDER BY c LIMIT {NAMED}")
        errors = [RowError(row["place"], f"passage id {excerpt(row['passage_id'])}", _reason(row)) for row in first]
        odd.add("contexts left out", *errors, count=count)
    odd.check("contexts left out", engine.value(connection, "SELECT count(*) FROM named"))
    connection.execute(_LEAVE_OUT)
    for row in engine.rows(connection, "SELECT place, text FROM missing ORDER BY c"):
        check_text(row["text"], row["place"], "text")


def _reason(lacked: dict[str, Any]) -> str:
    if lacked["split"]:
        reason = f"is a document that was split into passages {lacked['split']}, …; name the one meant, or none: the"
        return f"{reason} best BM25 passage with an answer is then taken"
    join = "" if lacked["text"] is None else ", or set prepare.add_context_passages"
    return f"is not in the corpus, where ids are as {excerpt(lacked['example'])}; add it to the passages{join}"


def append_missing(connection: engine.Connection, path: Path) -> int:
    """Add the missing passages to the corpus in `path`; return their number."""
    count = engine.value(connection, "SELECT count(*) FROM missing")
    if not count:
        return 0
    query = "SELECT passage_id AS id, title, text, sentences FROM missing ORDER BY c"
    with tables.writing(path, Passage) as append:
        for batch in tables.batches(path, Passage):
            append(pa.Table.from_batches([batch]))
        for table in engine.records(connection, query, Passage):
            append(table)
    return count
