"""Near-duplicates that a collection's own files bring: `near_duplicates` (JSONL) and `ramdocs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from eadpr.corpus import file_rows, qa_files
from eadpr.corpus.given import id_of, shown, text_of
from eadpr.corpus.sources import File
from eadpr.near_duplicates.config import Given
from eadpr.near_duplicates.original import Candidate, Generate, Original

UNTYPED = "near_duplicate"  # type of a row that names none


class Row(NamedTuple):
    """`question` is an id or, with `by_id` false, the question itself; `title` is None where the row has none."""

    question: str
    by_id: bool
    type: str
    title: str | None
    text: str


def given(settings: Given, files: Sequence[tuple[File, Path]]) -> Generate:
    """Rows of a question in the order of the files; those without a title take the positive's.

    Raises ValueError where no file brings near-duplicates, or none is of the types asked for.
    """
    if not files:
        raise ValueError(
            "robustness.generators holds given, but the collection has no file of kind near_duplicates or ramdocs; add"
            " one to its source in data/collections"
        )
    found: dict[tuple[bool, str], list[Row]] = {}
    types: set[str] = set()
    for file, path in files:
        for row in _rows(file, path):
            types.add(row.type)
            if row.type in settings.types:
                found.setdefault((row.by_id, row.question), []).append(row)
    if not found:
        raise ValueError(
            f"{', '.join(str(path) for _, path in files)}: no near-duplicate is of a type in"
            f" near_duplicates.given.types {settings.types}; there are {', '.join(sorted(types)) or 'none'}"
        )

    def generate(original: Original, numbers: range) -> list[Candidate]:
        question = original.question
        rows = [*found.get((True, question.id), ()), *found.get((False, question.question), ())]
        title = original.positive.title
        asked = rows[numbers.start : numbers.stop]
        return [Candidate(title if row.title is None else row.title, row.text) for row in asked]

    return generate


def _rows(file: File, path: Path) -> Iterator[Row]:
    if file.kind == "ramdocs":
        for row in qa_files.ramdocs_rows(path):
            for document in row.documents:
                if document.type != "correct":
                    yield Row(row.question, False, document.type, None, document.text)
        return
    for where, item in file_rows.objects(path):
        unknown = sorted(set(item) - {"question_id", "question", "text", "title", "type"})
        if unknown or "text" not in item or ("question_id" in item) == ("question" in item):
            raise ValueError(
                f"{where} has the fields {shown(sorted(item))}; expected text, one of question_id and question, and if"
                " wanted title and type"
            )
        by_id = "question_id" in item
        yield Row(
            id_of(item["question_id"], where, "question_id") if by_id else text_of(item["question"], where, "question"),
            by_id,
            text_of(item["type"], where, "type") if "type" in item else UNTYPED,
            text_of(item["title"], where, "title", empty=True) if "title" in item else None,
            text_of(item["text"], where, "text"),
        )
