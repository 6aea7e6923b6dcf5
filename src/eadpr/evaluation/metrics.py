"""Hits among ranked passages, and metrics of a ranking of hits.

A hit is judged by answer string as in DPR, or by passage id where the source names relevant passages. Metrics take
arrays of hits, Q questions x K ranks, rank 1 first, False where a ranking is shorter than K. Each gives one value per
question, so that all means, breakdowns and paired tests come from the same numbers. One without a ranking is wrong.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eadpr.runtime.progress import progress
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import GIVEN, grades
from eadpr.storage.records import Positive, Question, Ranked
from eadpr.text.answers import AnswerMatcher

Hits = NDArray[np.bool_]
Floats = NDArray[np.float64]


class Judge:
    """Judge passages by answer string, as DPR does: BM25 then gains nothing from positives that it found itself.

    `relevant` holds the relevant passage ids of each question, with their grades."""

    def __init__(self, store: PassageStore, relevant: Mapping[str, Mapping[str, float]]) -> None:
        self.store = store
        self.relevant = relevant
        self._matcher = AnswerMatcher()

    def __call__(self, question: Question, passage_ids: Sequence[str]) -> NDArray[np.bool_]:
        """Return (P,): whether each passage holds an answer or, if no text can, whether it is relevant."""
        if not question.matchable:
            return np.array([passage_id in self.relevant[question.id] for passage_id in passage_ids], dtype=np.bool_)
        texts = self.store.texts(self.store.rows(passage_ids))
        return self._matcher.matches(question.answers, texts, question.answer_kind, question=question.question)


class Judgements(NamedTuple):
    """Q questions x K ranks, with rows in the order of the questions, and counts of relevant passages.

    `answer` is a hit by answer (by id where a question has none that a text can hold), `relevant` by the id of a given
    positive or supporting passage, `supporting` by the id of a supporting passage (`hops`). `gain` is the grade of a
    relevant passage, 1 where the source gives none, `best` has those of an ideal ranking, `ranked` counts ranks.
    """

    answer_QK: NDArray[np.bool_]
    relevant_QK: NDArray[np.bool_]
    supporting_QK: NDArray[np.bool_]
    gain_QK: Floats
    best_QK: Floats
    relevant_Q: NDArray[np.int64]
    supporting_Q: NDArray[np.int64]
    ranked_Q: NDArray[np.int64]


def load_judge(records: Path, positives: Path, questions: Sequence[Question]) -> Judge:
    """Return the judge of these questions.

    Relevant are the positives that the source gave, not those that BM25 found, in the table `positives`, and the
    `hops`. Their grade is 1 unless a user's judgements say otherwise.
    """
    ids = pa.array([question.id for question in questions], pa.string())
    table = tables.read(positives, Positive, ["question_id", "passage_id", "source"])
    mask = pc.and_(pc.equal(table["source"], GIVEN), pc.is_in(table["question_id"], value_set=ids))
    given_passages = table.filter(mask).to_pandas().groupby("question_id")["passage_id"].agg(list).to_dict()
    relevant, graded = {}, grades(records)
    for question in questions:
        ungraded = dict.fromkeys([*(question.hops or ()), *given_passages.get(question.id, ())], 1.0)
        relevant[question.id] = ungraded | graded.get(question.id, {})
    return Judge(PassageStore(records / "passages.parquet"), relevant)


def judge_rankings(
    judge: Judge, questions: Sequence[Question], rankings: Iterable[Sequence[Ranked]], *, depth: int
) -> Judgements:
    """Judge the first `depth` ranks of every question; one without a ranking has no hits."""
    relevant, count = judge.relevant, len(questions)
    answer, by_id, supporting = (np.zeros((count, depth), dtype=np.bool_) for _ in range(3))
    gain, best = (np.zeros((count, depth)) for _ in range(2))
    ranked = np.zeros(count, dtype=np.int64)
    with progress("evaluate", count, "questions") as advance:
        for i, (question, ranking) in enumerate(zip(questions, rankings, strict=True)):
            ideal = sorted(relevant[question.id].values(), reverse=True)[:depth]
            best[i, : len(ideal)] = ideal
            advance(1)
            if not ranking:
                continue
            rows = [row for row in ranking if row.rank <= depth]
            columns, ids = [row.rank - 1 for row in rows], [row.passage_id for row in rows]
            by_id[i, columns] = [passage_id in relevant[question.id] for passage_id in ids]
            gain[i, columns] = [relevant[question.id].get(passage_id, 0.0) for passage_id in ids]
            supporting[i, columns] = [passage_id in (question.hops or ()) for passage_id in ids]
            answer[i, columns] = judge(question, ids)
            ranked[i] = len(rows)
    relevant_Q = np.array([len(relevant[question.id]) for question in questions], dtype=np.int64)
    supporting_Q = np.array([len(set(question.hops or ())) for question in questions], dtype=np.int64)
    return Judgements(answer, by_id, supporting, gain, best, relevant_Q, supporting_Q, ranked)


def top_k_accuracy(hits_QK: Hits, k: int) -> Floats:
    """(Q,): 1 where any of the first k passages is a hit, else 0 (DPR's top-k accuracy)."""
    return hits_QK[:, :k].any(axis=1).astype(np.float64)


def ndcg(gain_QK: Floats, best_QK: Floats, depth: int) -> Floats:
    """(Q,): discounted gain, sum of grade / log2(rank + 1) over relevant passages, divided by the same of the best
    ranking possible (Järvelin and Kekäläinen, 2002; trec_eval's ndcg_cut). A relevant passage without a grade counts 1.

    `best_QK` holds the grades of a question's relevant passages, found or not, the highest first; at least one.
    """
    assert gain_QK.shape == best_QK.shape, (gain_QK.shape, best_QK.shape)
    assert (best_QK[:, :1] > 0).all(), "undefined for a question without a relevant passage"
    discounts = 1.0 / np.log2(np.arange(2, min(depth, gain_QK.shape[1]) + 2))
    gain = gain_QK[:, :depth] @ discounts
    return gain / np.cumsum(best_QK[:, :depth] * discounts, axis=1)[:, -1]


def average_precision(hits_QK: Hits, relevant_Q: NDArray[np.integer], depth: int) -> Floats:
    """(Q,): sum of the precision at the ranks of the hits among the first `depth`, divided by the number of relevant
    passages, found or not; its mean is MAP (trec_eval's map_cut)."""
    cut = hits_QK[:, :depth]
    precision = np.cumsum(cut, axis=1) / np.arange(1, cut.shape[1] + 1)
    return (precision * cut).sum(axis=1) / relevant_Q


def recall(hits_QK: Hits, relevant_Q: NDArray[np.integer], k: int) -> Floats:
    """(Q,): share of the relevant passages that are among the first k."""
    return hits_QK[:, :k].sum(axis=1) / relevant_Q


def all_found(hits_QK: Hits, relevant_Q: NDArray[np.integer], k: int) -> Floats:
    """(Q,): 1 where all relevant passages are among the first k (R@k of multi-hop retrieval), else 0."""
    return (hits_QK[:, :k].sum(axis=1) == relevant_Q).astype(np.float64)


def reciprocal_rank(hits_QK: NDArray[np.bool_], depth: int) -> NDArray[np.float64]:
    """(Q,): 1 / rank of the first hit among the first `depth` passages, else 0."""
    cut = hits_QK[:, :depth]
    if cut.shape[1] == 0:
        return np.zeros(len(cut))
    return np.where(cut.any(axis=1), 1.0 / (cut.argmax(axis=1) + 1.0), 0.0)
