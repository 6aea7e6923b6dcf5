"""Tables for looking at single questions: rankings with near-duplicates, and readers' answers.

The records stand here and not in `eadpr.storage.records`, an edit of which reruns every stage.
"""

from pathlib import Path
from typing import NamedTuple

DUPLICATES = "near_duplicates.parquet"  # in a folder of outcomes among near-duplicates


class RankedAmong(NamedTuple):
    """A row of a ranking of the corpus with near-duplicates. A near-duplicate has no `passage_id`, but the question it
    was `made_for` and a `number` there."""

    question_id: str
    passage_id: str | None
    made_for: str | None
    number: int | None
    rank: int
    score: float


class ReadAnswer(NamedTuple):
    """A reader's answer from the first `top_k` passages, or paths, of a ranking, `right` if it is an exact match."""

    question_id: str
    top_k: int
    answer: str
    right: bool


def ranking_among(folder: Path, count: int) -> Path:
    """Return the ranking below a folder of outcomes among near-duplicates; there is none for a count of 0."""
    return folder / "rankings" / f"{count}.parquet"
