"""How relevant the positives of a user's own judgements are (BEIR's and TREC's qrels), where they differ."""

from pathlib import Path

from eadpr.storage import engine
from eadpr.storage.records import Context

GIVEN = "given"  # the source of a positive that the collection names
_GRADED = "SELECT question_id, passage_id, grade FROM contexts WHERE role = 'positive' AND grade IS NOT NULL"


def grades(records: Path) -> dict[str, dict[str, float]]:
    """Passage to grade of every question that has any; a positive without one counts 1."""
    found: dict[str, dict[str, float]] = {}
    with engine.connect() as connection:
        engine.view(connection, "contexts", records / "contexts.parquet", Context)
        for question_id, passage_id, grade in connection.execute(_GRADED).fetchall():
            found.setdefault(question_id, {})[passage_id] = grade
    return found
