"""The files of `records/`, written side by side while a source streams by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from eadpr import tables
from eadpr.corpus.given import ROLES
from eadpr.records import Context, Origin, Passage, Question, SetMember

FILES = {
    "passages": Passage,
    "questions": Question,
    "question_sets": SetMember,
    "contexts": Context,
    "origins": Origin,
}
ROWS = 4096  # records held before they become an arrow table


@contextmanager
def appending(path: Path, record: type) -> Iterator[Callable[[tuple], None]]:
    """Yield a function that appends one record."""
    with tables.writing(path, record) as append:
        waiting: list[tuple] = []

        def put(row: tuple) -> None:
            waiting.append(row)
            if len(waiting) == ROWS:
                append(tables.as_table(record, waiting))
                waiting.clear()

        yield put
        if waiting:
            append(tables.as_table(record, waiting))


class RecordFiles:
    """Appends passages and questions, and counts them for the report."""

    def __init__(self, put: dict[str, Callable[[tuple], None]]) -> None:
        self._put = put
        self.passages = self.questions = 0
        self.sets: dict[str, dict[str, int]] = {}

    def passage(self, passage: Passage) -> None:
        self._put["passages"](passage)
        self.passages += 1

    def question(
        self, question: Question, sets: Iterable[tuple[str, str]], contexts: list[Context], origin: Origin | None = None
    ) -> None:
        """`sets` are (question set, split)."""
        self._put["questions"](question)
        self.questions += 1
        for context in contexts:
            self._put["contexts"](context)
        for name, split in sets:
            self._put["question_sets"](SetMember(name, split, question.id))
            self._count(f"{name}/{split}", question, contexts)
        if origin is not None:
            self._put["origins"](origin)

    def _count(self, name: str, question: Question, contexts: list[Context]) -> None:
        none = dict.fromkeys(("questions", "without_answers", "without_positive", "with_gold", *ROLES), 0)
        counts = self.sets.setdefault(name, none)
        counts["questions"] += 1
        counts["without_answers"] += not question.answers
        counts["without_positive"] += not any(context.role == "positive" for context in contexts)
        counts["with_gold"] += any(context.gold for context in contexts)
        for context in contexts:
            counts[context.role] += 1


@contextmanager
def record_files(folder: Path) -> Iterator[RecordFiles]:
    with ExitStack() as stack:
        put = {
            name: stack.enter_context(appending(folder / f"{name}.parquet", record)) for name, record in FILES.items()
        }
        yield RecordFiles(put)
