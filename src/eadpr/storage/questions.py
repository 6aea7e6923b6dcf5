"""The questions that a stage works on, selected by the names of question sets (`set/split`, as in params.yaml)."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from eadpr.storage import engine, tables
from eadpr.storage.records import Context, Question, SetMember

GIVEN = "given"  # `source` of a positive that the collection names
_GRADED = "SELECT question_id, passage_id, grade FROM contexts WHERE role = 'positive' AND grade IS NOT NULL"


def create_asked(connection: engine.Connection, records: Path, sets: Mapping[str, Collection[str]]) -> None:
    """Create the table `asked` of the questions in any of the named sets, and the view `questions`.

    The columns of `asked` are place (the question's row in questions.parquet, from 0), question_id and, for each key of
    `sets`, a boolean: is the question in one of its sets? Raises ValueError for a set that does not exist.
    """
    question_sets = records / "question_sets.parquet"
    engine.view(connection, "questions", records / "questions.parquet", Question)
    engine.view(connection, "question_sets", question_sets, SetMember)
    connection.execute(
        "CREATE VIEW members AS SELECT question_id, question_set || '/' || split AS name FROM question_sets"
    )
    available = [name for (name,) in connection.execute("SELECT DISTINCT name FROM members ORDER BY name").fetchall()]
    for name in dict.fromkeys(name for names in sets.values() for name in names):
        if name not in available:
            raise ValueError(
                f"question set {name!r} is not in {question_sets} (it holds {', '.join(available) or 'none'});"
                " mend `sets` of the collection, or run `dvc repro prepare`"
            )
    marks = ", ".join(f"bool_or(name IN $_{key}) AS {key}" for key in sets)
    connection.execute(
        f"CREATE TABLE asked AS SELECT q.{engine.POSITION} AS place, m.* FROM (SELECT question_id, {marks} FROM members"
        " WHERE name IN $_all GROUP BY question_id) m JOIN questions q ON id = question_id",
        {f"_{key}": list(names) for key, names in sets.items()}
        | {"_all": [name for names in sets.values() for name in names]},
    )


def read_question_ids(question_sets: Path, names: Collection[str]) -> list[str]:
    """Return the ids of the questions in the named sets, each once, in the order of the questions.parquet next to
    `question_sets`. Raises ValueError as `create_asked` does."""
    with engine.connect() as connection:
        create_asked(connection, question_sets.parent, {"selected": names})
        batches = engine.batches(connection, "SELECT question_id FROM asked ORDER BY place")
        return [question_id for batch in batches for question_id in batch[0].to_pylist()]


def read_questions(questions: Path, ids: Collection[str]) -> Iterator[Question]:
    """Stream the questions with these ids, in the order of the file."""
    selected = frozenset(ids)
    return (question for question in tables.rows(questions, Question) if question.id in selected)


def grades(records: Path) -> dict[str, dict[str, float]]:
    """Return by question the passages with a user's grades (qrels of BEIR or TREC); an ungraded positive counts 1."""
    by_question: dict[str, dict[str, float]] = {}
    with engine.connect() as connection:
        engine.view(connection, "contexts", records / "contexts.parquet", Context)
        for question_id, passage_id, grade in connection.execute(_GRADED).fetchall():
            by_question.setdefault(question_id, {})[passage_id] = grade
    return by_question
