"""What multi-hop retrieval finds, as a record; see `eadpr.records`."""

from __future__ import annotations

from typing import NamedTuple


class Path(NamedTuple):
    """Passages in the order of the hops; `score` is the sum of `hop_scores`. Rank 1 is the best; rows are ordered by
    question (as in questions), then rank."""

    made_by = "retrieve_multihop"
    question_id: str
    rank: int
    passage_ids: list[str]
    hop_scores: list[float]
    score: float
