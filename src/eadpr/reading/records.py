"""The record types of readers; a table's columns are the fields of one of them."""

from __future__ import annotations

from typing import NamedTuple


class Prediction(NamedTuple):
    """What a reader answers to a question from the first `top_k` passages of a ranking.

    An extractive reader says where: `start` and `end` are offsets into the text of `passage_id`, `passage_score` is the
    logit of that passage. `answer_score` is the answer's log-probability: of the span among all of the passage, or of
    the words that were written. An answer that was not found is empty.
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
