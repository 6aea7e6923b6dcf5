"""Graded relevance: the grades that a user's judgements (BEIR's and TREC's qrels) give positives."""

from pathlib import Path

from eadpr.storage import engine
from eadpr.storage.records import Context

GIVEN = "given"  # `source` of a positive that the collection names
_GRADED = "SELECT question_id, passage_id, grade FROM contexts WHERE role = 'positive' AND grade IS NOT NULL"


def grades(records: Path) -> dict[str, dict[str, float]]:
    """Return passage ids with their grades for every question with graded positives; an ungraded positive counts 1."""
    by_question: dict[str, dict[str, float]] = {}
    with engine.connect() as connection:
        engine.view(connection, "contexts", records / "contexts.parquet", Context)
        for question_id, passage_id, grade in connection.execute(_GRADED).fetchall():
            by_question.setdefault(question_id, {})[passage_id] = grade
    return by_question
