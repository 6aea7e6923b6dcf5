"""Passages that contexts have and the corpus lacks: they join it, are left out and counted, or are an error."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from eadpr.corpus.rows import shown, text_of
from eadpr.corpus.sources import Prepare
from eadpr.storage import engine, tables
from eadpr.storage.records import Passage

# Of each passage that contexts name and the corpus lacks, the first context that does.
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


def found(connection: engine.Connection, settings: Prepare, numbered: Sequence[Path]) -> dict[str, Any]:
    """Make the table `missing` of the passages that are to join the corpus, and the view `passages` with them; leave
    out contexts whose passage cannot, where the settings allow as many. Returns how many these are, and where each such
    passage is first named. `numbered` are files of passages without ids. Raises ValueError for an unknown passage.
    """
    connection.execute(_MISSING)
    left_out = _leave_out(connection, settings)
    _check(connection, settings, numbered)
    return left_out


def join(connection: engine.Connection, path: Path) -> int:
    """Add the missing passages to the corpus in `path`; returns their number."""
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
    if not settings.missing_contexts:
        return {}
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


def _check(connection: engine.Connection, settings: Prepare, numbered: Sequence[Path]) -> None:
    for batch in engine.batches(connection, "SELECT place, passage_id, unnamed, text FROM missing ORDER BY c"):
        for place, passage_id, unnamed, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if not settings.add_context_passages or text is None:
                raise ValueError(f"{place}: {_unknown(connection, passage_id, unnamed, text, numbered)}")
            text_of(text, place, "text")


def _unknown(
    connection: engine.Connection, passage_id: str, unnamed: bool, text: str | None, numbered: Sequence[Path]
) -> str:
    if engine.first(connection, "SELECT 1 FROM corpus WHERE id = $id", {"id": f"{passage_id}#1"}):
        return (
            f"document {shown(passage_id)} was split into passages {passage_id}#1, …; name the one meant, or leave"
            " positives empty: the best BM25 passage with an answer is then taken"
        )
    name = "the passage has no id and" if unnamed else f"passage id {shown(passage_id)}"
    setting = "" if text is None else ", or set prepare.add_context_passages in params.yaml"
    if numbered:
        setting += (
            f"; {numbered[0]} has no id column and its passages were numbered: say which it is, --columns id=COLUMN"
        )
    return f"{name} is not in the corpus; add it to the passages{setting}"
