"""The generator `given`: texts from the collection's own files, `near_duplicates` (JSONL) and `ramdocs`."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from eadpr.corpus.formats.file_rows import read_objects
from eadpr.corpus.formats.ramdocs import read_ramdocs
from eadpr.corpus.rows import excerpt
from eadpr.corpus.sources import File
from eadpr.writers.config import Given
from eadpr.writers.original import Candidate, Generate, Original

FIELDS_GIVEN = {"question_id", "question", "text", "title", "type"}
UNTYPED = "near_duplicate"  # the type of a row that names none

Key = tuple[str, str]  # ("question_id" or "question", its value)


class GivenText(NamedTuple):
    """`title` is None if the source has none."""

    type: str
    title: str | None
    text: str


def generate_from_files(settings: Given, files: Sequence[tuple[File, Path]]) -> Generate:
    """Return a generator that takes a question's texts from files: those by its id first, in the order of the files.

    A text without a title gets the positive's. Texts of types that the settings do not name are counted on standard
    error. Raises ValueError if there is no file, or no text of a type that the settings name.
    """
    if not files:
        raise ValueError(
            "`given` is to write (robustness.generators, written.by), but the collection has no file of kind"
            " near_duplicates or ramdocs; add one to its source in data/collections"
        )
    texts: dict[Key, list[GivenText]] = {}
    skipped: Counter[str] = Counter()
    for file, path in files:
        for key, text in (_read_ramdocs if file.kind == "ramdocs" else _read_rows)(path):
            if text.type in settings.types:
                texts.setdefault(key, []).append(text)
            else:
                skipped[text.type] += 1
    if not texts:
        raise ValueError(
            f"{', '.join(str(path) for _, path in files)}: no near-duplicate is of a type in"
            f" given.types {settings.types}; there are {', '.join(sorted(skipped)) or 'none'}"
        )
    if skipped:
        print(
            f"given: skipped texts of other types than {settings.types}: {dict(skipped)}", file=sys.stderr, flush=True
        )

    def generate(original: Original, numbers: range) -> list[Candidate]:
        question, title = original.question, original.positive.title
        matching = texts.get(("question_id", question.id), []) + texts.get(("question", question.question), [])
        return [
            Candidate(title if text.title is None else text.title, text.text)
            for text in matching[numbers.start : numbers.stop]
        ]

    return generate


def _read_ramdocs(path: Path) -> Iterator[tuple[Key, GivenText]]:
    for question in read_ramdocs(path):
        for document in question.contexts:
            if document.role != "positive":
                yield ("question", question.question), GivenText(document.role, None, document.text)


def _read_rows(path: Path) -> Iterator[tuple[Key, GivenText]]:
    for row in read_objects(path):
        fields = row.fields
        if set(fields) - FIELDS_GIVEN or "text" not in fields or ("question_id" in fields) == ("question" in fields):
            raise ValueError(
                f"{row.where} has the fields {excerpt(sorted(fields))}; expected text, one of question_id and question,"
                " and if wanted title and type"
            )
        by_id = "question_id" in fields
        key = ("question_id", row.id("question_id")) if by_id else ("question", row.text("question"))
        kind = row.text("type") if "type" in fields else UNTYPED
        title = row.text("title", empty=True) if "title" in fields else None
        yield key, GivenText(kind, title, row.text("text"))
