"""Readers' answers as a record."""

from typing import NamedTuple


class Sentence(NamedTuple):
    """A sentence of a passage, by its index in `spans.sentences_of`."""

    passage_id: str
    sentence: int


class Prediction(NamedTuple):
    """A reader's answer to a question from the first `top_k` passages of a ranking, or paths.

    An extractive reader gives its place: `start` and `end` are offsets into the text of `passage_id`. No answer is an
    empty one. Yes and no have no place. `support` are the supporting sentences, None for a reader of passages.
    """

    question_id: str
    top_k: int
    answer: str
    passage_id: str | None = None
    start: int | None = None
    end: int | None = None
    support: list[Sentence] | None = None
