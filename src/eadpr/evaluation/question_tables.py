"""Tables for whoever looks at single questions: rankings among near-duplicates, and readers' answers.

The records stand here and not in `eadpr.records`, an edit of which reruns every stage.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from eadpr import tables
from eadpr.records import Ranked

RANKINGS = "rankings"  # below a folder of outcomes among near-duplicates: a table for each count but 0
DUPLICATES = "near_duplicates.parquet"  # beside it


class RankedAmong(NamedTuple):
    """A row of a ranking of the corpus and near-duplicates. A near-duplicate has no `passage_id`; `made_for` is the
    question that it was made for, `number` its number there."""

    made_by = "robustness"
    question_id: str
    passage_id: str | None
    made_for: str | None
    number: int | None
    rank: int
    score: float


class ReadAnswer(NamedTuple):
    """What a reader answers from the first `top_k` passages, or paths, of a ranking; whether that is an exact match."""

    made_by = "evaluate_reading"
    question_id: str
    top_k: int
    answer: str
    right: bool


class Joined(NamedTuple):
    """A near-duplicate in a question's ranking."""

    made_for: str
    number: int
    score: float


def ranking_among(folder: Path, count: int) -> Path:
    return folder / RANKINGS / f"{count}.parquet"


def merged(ranking: Path, joined: Mapping[str, Sequence[Joined]], *, count: int, depth: int) -> Iterator[RankedAmong]:
    """The first `depth` of a folder's ranking and near-duplicates of a number below `count`; of equal scores the
    corpus's passage is first."""
    ranked = tables.rows(ranking / "evaluate.parquet", Ranked)
    for question_id, of_one in groupby(ranked, key=attrgetter("question_id")):
        rows = [RankedAmong(question_id, row.passage_id, None, None, 0, row.score) for row in of_one]
        added = (one for one in joined.get(question_id, ()) if one.number < count)
        rows += [RankedAmong(question_id, None, one.made_for, one.number, 0, one.score) for one in added]
        rows.sort(key=attrgetter("score"), reverse=True)  # keeps the order of equals
        yield from (row._replace(rank=rank) for rank, row in enumerate(rows[:depth], start=1))
