"""What near-duplicates are made of, the form of a generator, and the generator `given`: those that a collection's own
files bring, `near_duplicates` (JSONL) and `ramdocs`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from eadpr.corpus.given import rows, shown
from eadpr.corpus.qa_files import ramdocs
from eadpr.corpus.sources import File
from eadpr.near_duplicates.config import Given
from eadpr.records import Passage, Question, Span
from eadpr.supervision import spans
from eadpr.supervision.pairs import Pair
from eadpr.text import has_answer

FIELDS_GIVEN = {"question_id", "question", "text", "title", "type"}
UNTYPED = "near_duplicate"  # type of a row that names none


class Original(NamedTuple):
    """A question and its positive; `taken` are the spans that tell the answer, the evidence and what else holds one,
    `text` is the positive without them: empty if nothing is left, or if nothing tells what the evidence is."""

    question: Question
    positive: Passage
    taken: list[Span]
    text: str


class Candidate(NamedTuple):
    title: str
    text: str


# The candidates of the given numbers, which count from 0 within a question; fewer where there are no more. A function
# of settings, original and numbers, so that an interrupted run ends as an undisturbed one.
Generate = Callable[[Original, range], list[Candidate]]


def original(pair: Pair, evidence: Sequence[Span] | None) -> Original:
    """`evidence` is what a distractor lacks, None where there is no distractor. Sentences that hold an answer all the
    same are taken too. A positive that has neither would keep its evidence: nothing is made of it."""
    question, passage = pair.question, pair.passage
    held = [
        sentence
        for sentence in spans.segment(passage, "sentence")
        if has_answer(question.answers, _left(passage.text, sentence, evidence or ()), question.answer_kind)
    ]
    taken = spans.merge([*(evidence or ()), *held])
    return Original(question, passage, taken, spans.without(passage.text, taken) if evidence or held else "")


def _left(text: str, sentence: Span, evidence: Sequence[Span]) -> str:
    """Of a sentence, without the evidence."""
    start, end = sentence
    inside = [Span(max(s, start) - start, min(e, end) - start) for s, e in evidence if s < end and start < e]
    return spans.without(text[start:end], inside)


def draw(seed: int, question_id: str, number: int) -> int:
    """A 64-bit integer, the same in every process, to seed the draws of one candidate with."""
    digest = hashlib.sha256(f"{seed}\0{number}\0{question_id}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


class GivenText(NamedTuple):
    """`title` is None where the source has none."""

    type: str
    title: str | None
    text: str


def given(settings: Given, files: Sequence[tuple[File, Path]]) -> Generate:
    """Texts of a question, those by its id first, in the order of the files; those without a title take the positive's.

    Raises ValueError where no file brings near-duplicates, or none is of the types asked for.
    """
    if not files:
        raise ValueError(
            "robustness.generators holds given, but the collection has no file of kind near_duplicates or ramdocs; add"
            " one to its source in data/collections"
        )
    found: dict[tuple[str, str], list[GivenText]] = {}
    types: set[str] = set()
    for file, path in files:
        for question, text in (_of_ramdocs if file.kind == "ramdocs" else _of_rows)(path):
            types.add(text.type)
            if text.type in settings.types:
                found.setdefault(question, []).append(text)
    if not found:
        raise ValueError(
            f"{', '.join(str(path) for _, path in files)}: no near-duplicate is of a type in"
            f" near_duplicates.given.types {settings.types}; there are {', '.join(sorted(types)) or 'none'}"
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
