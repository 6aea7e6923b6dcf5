"""Tables for looking at single questions: readers' answers.

The record stands here and not in `eadpr.storage.records`, an edit of which reruns every stage.
"""

from typing import NamedTuple


class ReadAnswer(NamedTuple):
    """A reader's answer from the first `top_k` passages, or paths, of a ranking, `right` if it is an exact match."""

    question_id: str
    top_k: int
    answer: str
    right: bool
