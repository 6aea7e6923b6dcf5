"""Which ranked passages are hits: by answer string as in DPR, by passage id where the source says what is relevant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eadpr import tables
from eadpr.passages import PassageStore
from eadpr.records import Positive, Question, Ranked
from eadpr.search.hits import GIVEN, Judge


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


class GivenPositives(NamedTuple):
    """The positives that the source gave, not those that BM25 found: the question's row, ascending, and the passage."""

    rows: NDArray[np.int64]
    passage_ids: pa.Array


def given_positives(positives: Path, ids: pa.Array) -> GivenPositives:
    """Of the questions `ids`."""
    table = tables.read(positives, Positive, ["question_id", "passage_id", "source"])
    table = table.filter(pc.equal(table["source"], GIVEN)).combine_chunks()
    rows = pc.fill_null(pc.index_in(table["question_id"], value_set=ids), -1).to_numpy()
    order = np.argsort(rows, kind="stable")
    return GivenPositives(rows[order], table["passage_id"].combine_chunks().take(pa.array(order)))


def relevant_of(given: GivenPositives, start: int, questions: Sequence[Question]) -> dict[str, frozenset[str]]:
    """Ids known to be relevant per question, its given positives and its `hops`; the first question is row `start`."""
    found = [set(question.hops or ()) for question in questions]
    first, last = np.searchsorted(given.rows, [start, start + len(questions)]).tolist()
    own = zip(given.rows[first:last].tolist(), given.passage_ids[first:last].to_pylist(), strict=True)
    for row, passage_id in own:
        found[row - start].add(passage_id)
    return {question.id: frozenset(ids) for question, ids in zip(questions, found, strict=True)}


def judge(
    asked: Sequence[tuple[Question, Sequence[Ranked]]],
    relevant: Mapping[str, frozenset[str]],
    store: PassageStore,
    *,
    depth: int,
    advance: Callable[[int], None] = lambda done: None,
) -> Judgements:
    """Judge the first `depth` ranks of every question; one without a ranking has no hits.

    `advance` is told 1 for every ranked question. Raises ValueError for a rank below 1, two passages at one rank, or
    one passage at two.
    """
    hits = Judge(store, relevant)
    answer, by_id, supporting = (np.zeros((len(asked), depth), dtype=np.bool_) for _ in range(3))
    ranked = np.zeros(len(asked), dtype=np.int64)
    for i, (question, ranking) in enumerate(asked):
        if not ranking:
            continue
        rows = [row for row in ranking if row.rank <= depth]
        _check(question, rows)
        columns, ids = [row.rank - 1 for row in rows], [row.passage_id for row in rows]
        by_id[i, columns] = [passage_id in relevant[question.id] for passage_id in ids]
        supporting[i, columns] = [passage_id in (question.hops or ()) for passage_id in ids]
        answer[i, columns] = hits(question, ids)
        ranked[i] = len(rows)
        advance(1)
    questions = [question for question, _ in asked]
    return Judgements(
        answer_QK=answer,
        relevant_QK=by_id,
        supporting_QK=supporting,
        relevant_Q=np.array([len(relevant[question.id]) for question in questions], dtype=np.int64),
        supporting_Q=np.array([len(set(question.hops or ())) for question in questions], dtype=np.int64),
        ranked_Q=ranked,
    )


def _check(question: Question, rows: Sequence[Ranked]) -> None:
    ranks = [row.rank for row in rows]
    if len(set(ranks)) < len(ranks) or min(ranks, default=1) < 1:
        raise ValueError(f"ranking: question {question.id!r} has ranks that repeat or are below 1: {sorted(ranks)[:5]}")
    if len({row.passage_id for row in rows}) < len(rows):
        raise ValueError(f"ranking: question {question.id!r} has a passage at two ranks")
