"""What near-duplicates are made of, the form of a generator, and the generators that need no model.

rules  the positive without its evidence, its sentences thinned out, reordered and rephrased; the first candidate is the
       text as it is: the distractor
given  those that a collection's own files bring: `near_duplicates` (JSONL) and `ramdocs`
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eadpr.corpus.given import rows, shown
from eadpr.corpus.qa_files import ramdocs
from eadpr.corpus.sources import File
from eadpr.near_duplicates.config import Given, Rules, filled
from eadpr.records import Passage, Question
from eadpr.supervision import spans
from eadpr.supervision.pairs import Pair
from eadpr.text import has_answer

# Words that begin a sentence with a capital letter only because it begins there.
_LOWERED = re.compile(
    r"(the|an?|it|its|he|his|she|her|they|their|there|this|that|these|those|both|many|most|some|several|in|on|at|by|for"
    r"|from|with|as|after|before|during|since|while|when|where|although|though|however|because|if|one|two|another|each"
    r"|later|today|not|under|according|despite)\b",
    re.IGNORECASE,
)
FIELDS_GIVEN = {"question_id", "question", "text", "title", "type"}
UNTYPED = "near_duplicate"  # type of a row that names none


class Original(NamedTuple):
    """A question, its positive, and the text to start from: the positive without its evidence; empty if nothing is
    left, or if nothing tells what the evidence is."""

    question: Question
    positive: Passage
    text: str


class Candidate(NamedTuple):
    title: str
    text: str


# The candidates of the given numbers, which count from 0 within a question; fewer where there are no more. A function
# of settings, original and numbers, so that an interrupted run ends as an undisturbed one.
Generate = Callable[[Original, range], list[Candidate]]


def original(pair: Pair, distractor: str | None) -> Original:
    """The distractor, or the positive where there is none, less the sentences that hold an answer. A positive that has
    neither a distractor nor such a sentence would keep its evidence: nothing is made of it."""
    question = pair.question
    text = pair.passage.text if distractor is None else distractor
    sentences = spans.segment(pair.passage, "sentence") if distractor is None else spans.sentences(text)
    held = [s for s in sentences if has_answer(question.answers, text[s.start : s.end], question.answer_kind)]
    known = distractor is not None or held
    return Original(question, pair.passage, spans.without(text, held) if known else "")


def draw(seed: int, question_id: str, number: int) -> int:
    """A 64-bit integer, the same in every process, to seed the draws of one candidate with."""
    digest = hashlib.sha256(f"{seed}\0{number}\0{question_id}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def rules(settings: Rules, seed: int) -> Generate:
    def generate(original: Original, numbers: range) -> list[Candidate]:
        sentences = [original.text[start:end] for start, end in spans.sentences(original.text)]
        if not sentences:
            return []
        title = original.positive.title
        return [Candidate(title, _variant(settings, seed, original, sentences, number)) for number in numbers]

    return generate


def _variant(settings: Rules, seed: int, original: Original, sentences: list[str], number: int) -> str:
    if number == 0:
        return original.text
    rng = np.random.default_rng(draw(seed, original.question.id, number))
    count = len(sentences)
    fewest = max(1, math.ceil(settings.keep * count))
    chosen = [sentences[i] for i in rng.permutation(count)[: rng.integers(fewest, count + 1)]]
    rephrased = rng.random(len(chosen)) < settings.rephrase
    templates = rng.integers(len(settings.templates), size=len(chosen))
    return " ".join(
        _rephrased(settings.templates[template], sentence, original.positive.title) if change else sentence
        for sentence, change, template in zip(chosen, rephrased, templates, strict=True)
    )


def _rephrased(template: str, sentence: str, title: str) -> str:
    if _LOWERED.match(sentence) and not template.startswith("{sentence}"):
        sentence = sentence[0].lower() + sentence[1:]
    return filled(template, sentence=sentence, title=title)


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
