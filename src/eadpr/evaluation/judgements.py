"""Which ranked passages are hits: by answer string as in DPR, by passage id where the source says what is relevant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eadpr.passages import PassageStore
from eadpr.records import Question, Ranked
from eadpr.search.hits import Judge


class Judgements(NamedTuple):
    """Q questions x K ranks; rows in the order of the questions, counts of relevant passages beside them.

    `answer` is a hit by answer (by id where a question has none that a text can hold), `relevant` by the id of a given
    positive or supporting passage, `supporting` by the id of a supporting passage (`hops`). `ranked` counts a
    question's ranks.
    """

    answer_QK: NDArray[np.bool_]
    relevant_QK: NDArray[np.bool_]
    supporting_QK: NDArray[np.bool_]
    relevant_Q: NDArray[np.int64]
    supporting_Q: NDArray[np.int64]
    ranked_Q: NDArray[np.int64]


def judge(
    ranking: Iterable[Ranked],
    questions: Sequence[Question],
    relevant: Mapping[str, frozenset[str]],
    store: PassageStore,
    *,
    depth: int,
    advance: Callable[[int], None] = lambda done: None,
) -> Judgements:
    """Judge the first `depth` ranks of every question; a question without a ranking has no hits.

    `advance` is told 1 for every ranked question. Raises ValueError for a ranking with an unknown question, a question
    in two places, a rank below 1, two passages at one rank, or one passage at two.
    """
    place = {question.id: i for i, question in enumerate(questions)}
    shape = (len(questions), depth)
    answer, by_id, supporting = (np.zeros(shape, dtype=np.bool_) for _ in range(3))
    ranked = np.zeros(len(questions), dtype=np.int64)
    hits = Judge(store, relevant)
    for question_id, group in groupby(ranking, key=attrgetter("question_id")):
        rows = [row for row in group if row.rank <= depth]
        i = _checked(question_id, rows, place, ranked)
        question, columns = questions[i], [row.rank - 1 for row in rows]
        ids = [row.passage_id for row in rows]
        by_id[i, columns] = [passage_id in relevant[question_id] for passage_id in ids]
        supporting[i, columns] = [passage_id in (question.hops or ()) for passage_id in ids]
        answer[i, columns] = hits(question, ids)
        ranked[i] = len(rows)
        advance(1)
    return Judgements(
        answer_QK=answer,
        relevant_QK=by_id,
        supporting_QK=supporting,
        relevant_Q=np.array([len(relevant[question.id]) for question in questions], dtype=np.int64),
        supporting_Q=np.array([len(set(question.hops or ())) for question in questions], dtype=np.int64),
        ranked_Q=ranked,
    )


def _checked(question_id: str, rows: list[Ranked], place: Mapping[str, int], ranked: NDArray[np.int64]) -> int:
    """The question's row. `ranked` says which questions were seen before."""
    if question_id not in place:
        raise ValueError(f"ranking: question {question_id!r} is in none of sets.evaluate; run `dvc repro`")
    ranks = [row.rank for row in rows]
    if ranked[place[question_id]] or len(set(ranks)) < len(ranks) or min(ranks, default=1) < 1:
        raise ValueError(f"ranking: question {question_id!r} has ranks that repeat or are below 1: {sorted(ranks)[:5]}")
    if len({row.passage_id for row in rows}) < len(rows):
        raise ValueError(f"ranking: question {question_id!r} has a passage at two ranks")
    return place[question_id]
