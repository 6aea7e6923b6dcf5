"""What the reader of paths reads and writes, as records; see `eadpr.records`."""

from __future__ import annotations

from typing import NamedTuple

from eadpr.records import Passage, Span
from eadpr.supervision import spans

Fact = tuple[str, int]  # a page, and the number of a sentence on it


class RankedPath(NamedTuple):
    """What is read of a ranking of paths: passages in the order of the hops, rows in that of questions, then ranks."""

    made_by = "retrieve_multihop"
    question_id: str
    rank: int
    passage_ids: list[str]


class Sentence(NamedTuple):
    """`sentence` is the index of one of `sentences_of` the passage."""

    passage_id: str
    sentence: int


class SupportedAnswer(NamedTuple):
    """An answer and the sentences it rests on."""

    made_by = "read_paths"
    question_id: str
    answer: str
    support: list[Sentence]


def sentences_of(passage: Passage) -> list[Span]:
    """The source's sentences, blank ones too, as HotpotQA counts them; by rule where it gave none."""
    return spans.sentences(passage.text) if passage.sentences is None else passage.sentences
