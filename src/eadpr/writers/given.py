"""The generator `given`: texts that a collection's own files bring, `near_duplicates` (JSONL) and `ramdocs`."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from eadpr.corpus.formats.qa_files import ramdocs
from eadpr.corpus.rows import rows, shown
from eadpr.corpus.sources import File
from eadpr.writers.choose import Candidate, Generate, Original
from eadpr.writers.config import Given

FIELDS_GIVEN = {"question_id", "question", "text", "title", "type"}
UNTYPED = "near_duplicate"  # type of a row that names none


class GivenText(NamedTuple):
    """`title` is None where the source has none."""

    type: str
    title: str | None
    text: str


def given(settings: Given, files: Sequence[tuple[File, Path]]) -> Generate:
    """Texts of a question, those by its id first, in the order of the files; those without a title take the positive's.

    Texts of types that were not asked for are counted on standard error.
    Raises ValueError where no file brings near-duplicates, or none is of the types asked for.
    """
    if not files:
        raise ValueError(
            "`given` is to write (robustness.generators, written.by), but the collection has no file of kind"
            " near_duplicates or ramdocs; add one to its source in data/collections"
        )
    found: dict[tuple[str, str], list[GivenText]] = {}
    types: Counter[str] = Counter()
    for file, path in files:
        for question, text in (_of_ramdocs if file.kind == "ramdocs" else _of_rows)(path):
            types[text.type] += 1
            if text.type in settings.types:
                found.setdefault(question, []).append(text)
    if not found:
        raise ValueError(
            f"{', '.join(str(path) for _, path in files)}: no near-duplicate is of a type in"
            f" given.types {settings.types}; there are {', '.join(sorted(types)) or 'none'}"
        )
    if others := {kind: count for kind, count in types.most_common() if kind not in settings.types}:
        print(
            f"given: {sum(others.values()):,} of {types.total():,} texts are of no type in given.types"
            f" {settings.types} and were passed over: {shown(others)}",
            file=sys.stderr,
            flush=True,
        )

    def generate(original: Original, numbers: range) -> list[Candidate]:
        question = original.question
        texts = [*found.get(("question_id", question.id), ()), *found.get(("question", question.question), ())]
        title = original.positive.title
        asked = texts[numbers.start : numbers.stop]
        return [Candidate(title if text.title is None else text.title, text.text) for text in asked]

    return generate


def _of_ramdocs(path: Path) -> Iterator[tuple[tuple[str, str], GivenText]]:
    for question in ramdocs(path):
        for document in question.contexts:
            if document.role != "positive":
                yield ("question", question.question), GivenText(document.role, None, document.text)


def _of_rows(path: Path) -> Iterator[tuple[tuple[str, str], GivenText]]:
    """By `question_id` or `question`."""
    for row in rows(path):
        fields = row.fields
        if set(fields) - FIELDS_GIVEN or "text" not in fields or ("question_id" in fields) == ("question" in fields):
            raise ValueError(
                f"{row.where} has the fields {shown(sorted(fields))}; expected text, one of question_id and question,"
                " and if wanted title and type"
            )
        by = "question_id" if "question_id" in fields else "question"
        question = row.id(by) if by == "question_id" else row.text(by)
        kind = row.text("type") if "type" in fields else UNTYPED
        title = row.text("title", empty=True) if "title" in fields else None
        yield (by, question), GivenText(kind, title, row.text("text"))
