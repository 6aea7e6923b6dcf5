"""The positive that a near-duplicate is made from, the form of a generator, and what makes a text unusable."""

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from eadpr.storage.records import Passage, Question, Span
from eadpr.supervision.pairs import Pair
from eadpr.text import spans
from eadpr.text.answers import has_answer, merge


class Original(NamedTuple):
    """A question and its positive, to write near-duplicates of.

    `removed` are the evidence and all further sentences that hold an answer, and `text` is the positive without them.
    `text` is empty if nothing remains, or if the evidence is not known.
    """

    question: Question
    positive: Passage
    removed: list[Span]
    text: str


class Candidate(NamedTuple):
    """A text that was written for an original; `text` is None if it was cut off."""

    title: str
    text: str | None


# Returns the candidates with these numbers, which count from 0 within a question, or fewer if there are no more. The
# result depends on settings, original and numbers alone, so that a killed run ends as an undisturbed one would.
Generate = Callable[[Original, range], list[Candidate]]


def make_original(pair: Pair, evidence: Sequence[Span] | None) -> Original:
    """Remove the evidence, and all sentences that hold an answer without it, from a positive.

    `evidence` are the spans that the distractor lacks, None if the positive has no distractor. Without evidence and
    without an answer the text is empty: the positive would keep its evidence.
    """
    question, passage = pair.question, pair.passage
    answering = [
        sentence
        for sentence in spans.segment(passage)
        if has_answer(question.answers, _cut(passage.text, sentence, evidence or ()), question.answer_kind)
    ]
    removed = merge([*(evidence or ()), *answering], touching=False)  # sentences stay apart
    text = spans.without(passage.text, removed) if removed else ""
    return Original(question, passage, removed, text)


def _cut(text: str, sentence: Span, evidence: Sequence[Span]) -> str:
    """Return the sentence without the evidence in it."""
    start, end = sentence
    inside = [Span(max(s, start) - start, min(e, end) - start) for s, e in evidence if s < end and start < e]
    return spans.without(text[start:end], inside)


def candidate_seed(seed: int, question_id: str, number: int) -> int:
    """Return a 64-bit seed for a candidate's random draws, the same in every process."""
    return int.from_bytes(hashlib.sha256(f"{seed}\0{number}\0{question_id}".encode()).digest()[:8], "little")


def squash_spaces(text: str) -> str:
    """Return the text with single spaces. Texts that differ in white space alone count as the same."""
    return " ".join(text.split())


def find_defect(question: Question, positive: Passage, text: str | None) -> str | None:
    """Return why a text cannot stand for the positive without its evidence, or None.

    cut_off: the text is incomplete; empty: it has no letter or digit; positive: it is the positive; holds_answer.
    """
    if text is None:
        return "cut_off"
    if not any(character.isalnum() for character in text):
        return "empty"
    if squash_spaces(text) == squash_spaces(positive.text):
        return "positive"
    return "holds_answer" if has_answer(question.answers, text, question.answer_kind) else None
