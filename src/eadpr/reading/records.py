"""The record types of readers; a table's columns are the fields of one of them."""

from __future__ import annotations

from typing import NamedTuple

from eadpr.records import Passage, Span
from eadpr.supervision import spans

Fact = tuple[str, int]  # a page, and the number of a sentence on it


class Sentence(NamedTuple):
    """`sentence` is the index of one of `sentences_of` the passage."""

    passage_id: str
    sentence: int


class Prediction(NamedTuple):
    """What a reader answers to a question from the first `top_k` passages of a ranking, or paths.

    An extractive reader says where: `start` and `end` are offsets into the text of `passage_id`, `passage_score` is the
    logit of that passage, or path. `answer_score` is the answer's log-probability: of the span among all of the
    passage, or of the words that were written, or, from paths, among all answers. An answer that was not found is
    empty, yes and no stand nowhere. `support` are the sentences that the answer rests on, None of a reader of passages.
    """

    made_by = "read"
    question_id: str
    top_k: int
    answer: str
    answer_score: float | None
    passage_id: str | None
    passage_score: float | None
    start: int | None
    end: int | None
    support: list[Sentence] | None = None


class SupportedAnswer(NamedTuple):
    """An answer from paths and the sentences it rests on: columns of `Prediction`."""

    made_by = "read"
    question_id: str
    answer: str
    support: list[Sentence]


class RankedPath(NamedTuple):
    """What is read of a ranking of paths: passages in the order of the hops, rows in that of questions, then ranks."""

    made_by = "retrieve_multihop"
    question_id: str
    rank: int
    passage_ids: list[str]


def sentences_of(passage: Passage) -> list[Span]:
    """The source's sentences, blank ones too, as HotpotQA counts them; by rule where it gave none."""
    return spans.sentences(passage.text) if passage.sentences is None else passage.sentences
