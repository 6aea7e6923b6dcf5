"""The generator `given`: texts from the collection's own files, `near_duplicates` (JSONL) and `ramdocs`."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from eadpr.corpus.formats.file_rows import read_objects
from eadpr.corpus.formats.ramdocs import read_ramdocs
from eadpr.corpus.rows import excerpt
from eadpr.corpus.sources import File
from eadpr.writers.original import Candidate, Generate, Original

FIELDS = {"question_id", "question", "text", "title"}

Key = tuple[str, str]  # ("question_id" or "question", its value)


def generate_from_files(files: Sequence[tuple[File, Path]]) -> Generate:
    """Return a generator that takes a question's texts from files: those by its id first, in the order of the files.

    A text without a title gets the positive's. Raises ValueError if there is no file.
    """
    if not files:
        missing = "no file of kind near_duplicates or ramdocs; add one to its source in data/collections"
        raise ValueError(f"`given` is to write (robustness.generators), but the collection has {missing}")
    texts: defaultdict[Key, list[tuple[str | None, str]]] = defaultdict(list)
    for file, path in files:
        for key, title, text in (_read_ramdocs if file.kind == "ramdocs" else _read_rows)(path):
            texts[key].append((title, text))

    def generate(original: Original, numbers: range) -> list[Candidate]:
        question, positive_title = original.question, original.positive.title
        matching = texts.get(("question_id", question.id), []) + texts.get(("question", question.question), [])
        chosen = matching[numbers.start : numbers.stop]
        return [Candidate(positive_title if title is None else title, text) for title, text in chosen]

    return generate


def _read_ramdocs(path: Path) -> Iterator[tuple[Key, str | None, str]]:
    for question in read_ramdocs(path):
        for document in question.contexts:
            if document.role != "positive":
                yield ("question", question.question), None, document.text


def _read_rows(path: Path) -> Iterator[tuple[Key, str | None, str]]:
    for row in read_objects(path):
        fields = row.fields
        if set(fields) - FIELDS or "text" not in fields or ("question_id" in fields) == ("question" in fields):
            expected = "expected text, one of question_id and question, and if wanted title"
            raise ValueError(f"{row.where} has the fields {excerpt(sorted(fields))}; {expected}")
        by_id = "question_id" in fields
        key = ("question_id", row.id("question_id")) if by_id else ("question", row.text("question"))
        title = row.text("title", empty=True) if "title" in fields else None
        yield key, title, row.text("text")
