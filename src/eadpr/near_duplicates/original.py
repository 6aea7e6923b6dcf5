"""What near-duplicates are made of, and the form of a generator."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from eadpr.records import Passage, Question
from eadpr.supervision import spans
from eadpr.supervision.pairs import Pair
from eadpr.text import has_answer


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
