"""Small record folders for tests of the supervision stages."""

from pathlib import Path

from eadpr.storage import tables
from eadpr.storage.records import Context, Passage, Question, Ranked, SetMember


def question(question_id: str, answers: list[str], kind: str = "string") -> Question:
    return Question(question_id, f"{question_id}?", answers, kind, None, None, None, None)


def context(question_id: str, passage_id: str, order: int, role: str = "positive", gold=None) -> Context:
    return Context(question_id, passage_id, role, order, None, gold, None)


def write_records(folder: Path, *, passages=(), questions=(), sets=None, contexts=()) -> Path:
    """Write tables of records from passages as (id, title, text) and sets as `set/split` -> question ids."""
    tables.write(folder / "passages.parquet", Passage, (Passage(*p, None) for p in passages))
    tables.write(folder / "questions.parquet", Question, questions)
    members = (SetMember(*name.split("/"), i) for name, ids in (sets or {}).items() for i in ids)
    tables.write(folder / "question_sets.parquet", SetMember, members)
    tables.write(folder / "contexts.parquet", Context, contexts)
    return folder


def write_ranking(folder: Path, **parts: dict[str, list[str]] | list[Ranked]) -> Path:
    """Write train and evaluate from rows, or from question -> passage ids, best first, with falling scores."""
    for name in ("train", "evaluate"):
        rows = parts.get(name, {})
        if isinstance(rows, dict):
            rows = [Ranked(q, p, r, 100.0 - r) for q, ids in rows.items() for r, p in enumerate(ids, start=1)]
        tables.write(folder / f"{name}.parquet", Ranked, rows)
    return folder
