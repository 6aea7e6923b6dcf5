"""Passages that contexts have and the corpus lacks: they join it, are left out and counted, or are an error."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from eadpr.corpus.rows import RowError, check_text, excerpt
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
# Passages that cannot join the corpus; $join where those with a text can.
_LACKED = """
CREATE TABLE lacked AS SELECT place || ' (' || passage_id || ')' AS place, passage_id, c
FROM missing WHERE NOT $join OR text IS NULL
"""
_LEAVE_OUT = """
DELETE FROM named WHERE passage_id IN (SELECT passage_id FROM lacked);
DELETE FROM pointed WHERE passage_id IN (SELECT passage_id FROM lacked);
DELETE FROM missing WHERE passage_id IN (SELECT passage_id FROM lacked)
"""


def find_missing(connection: engine.Connection, settings: Prepare) -> dict[str, Any]:
    """Make the table `missing` of the passages that are to join the corpus, and the view `passages` with them.

    Contexts with a passage that cannot join are left out if the settings allow as many. Returns how many these are, and
    where each such passage is first named. Raises RowError for an unknown passage.
    """
    connection.execute(_MISSING)
    left_out = _leave_out(connection, settings) if settings.missing_contexts else {}
    for batch in engine.batches(connection, "SELECT place, passage_id, unnamed, text FROM missing ORDER BY c"):
        for row in batch.to_pylist():
            if not settings.add_context_passages or row["text"] is None:
                raise _unknown_passage(connection, **row)
            check_text(row["text"], row["place"], "text")
    return left_out


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


def _leave_out(connection: engine.Connection, settings: Prepare) -> dict[str, Any]:
    connection.execute(_LACKED, {"join": settings.add_context_passages})
    count = engine.value(connection, "SELECT count(*) FROM named SEMI JOIN lacked USING (passage_id)")
    places = [place for (place,) in connection.execute("SELECT place FROM lacked ORDER BY c").fetchall()]
    if count > settings.missing_contexts:
        raise ValueError(
            f"{count:,} contexts name passages that the corpus lacks, more than prepare.missing_contexts"
            f" ({settings.missing_contexts:,}); the first: {'; '.join(places[:3])}; add the passages, or raise it"
        )
    connection.execute(_LEAVE_OUT)
    return {"contexts_without_passage": count, "passages_lacked": places}


def _unknown_passage(
    connection: engine.Connection,
    *,
    place: str,
    passage_id: str,
    unnamed: bool,
    text: str | None,
) -> RowError:
    if engine.first(connection, "SELECT 1 FROM corpus WHERE id = $id", {"id": f"{passage_id}#1"}):
        reason = f"was split into passages {passage_id}#1, …; name the one meant, or leave positives empty: the best"
        return RowError(place, f"document {excerpt(passage_id)}", f"{reason} BM25 passage with an answer is then taken")
    field = "a passage without id" if unnamed else f"passage id {excerpt(passage_id)}"
    reason = "is not in the corpus; add it to the passages"
    if text is not None:
        reason += ", or set prepare.add_context_passages in params.yaml"
    return RowError(place, field, reason)
