"""Retrieval metrics: which passages are hits, by hand, and naive loops; tests/test_exports.py asks ir_measures."""

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.evaluation import metrics
from eadpr.evaluation.metrics import Judge, judge_rankings, load_judge, reciprocal_rank
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Context, Passage, Positive, Question, Ranked


def ndcg(hits: np.ndarray, relevant: np.ndarray, depth: int) -> np.ndarray:
    """Every relevant passage counts 1."""
    best = np.arange(hits.shape[1]) < relevant[:, None]
    return metrics.ndcg(hits.astype(float), best.astype(float), depth)


@st.composite
def judged(draw):
    """Hits of some questions and how many passages are relevant to each."""
    questions, ranks = draw(st.integers(1, 6)), draw(st.integers(1, 12))
    hits = np.array(
        draw(st.lists(st.lists(st.booleans(), min_size=ranks, max_size=ranks), min_size=questions, max_size=questions))
    )
    missed = draw(st.lists(st.integers(0, 3), min_size=questions, max_size=questions))
    return hits, np.maximum(hits.sum(axis=1) + missed, 1)


def naive(hits: list[bool], relevant: int, k: int) -> dict[str, float]:
    first = next((rank for rank, hit in enumerate(hits[:k], start=1) if hit), None)
    gain = sum(1 / log2(rank + 1) for rank, hit in enumerate(hits[:k], start=1) if hit)
    best = sum(1 / log2(rank + 1) for rank in range(1, min(relevant, k) + 1))
    hit_count = sum(hits[:k])
    precision = [sum(hits[:rank]) / rank for rank, hit in enumerate(hits[:k], start=1) if hit]
    return {
        "top": float(first is not None),
        "mrr": 1 / first if first else 0.0,
        "ndcg": gain / best,
        "map": sum(precision) / relevant,
        "recall": hit_count / relevant,
        "all": float(hit_count == relevant),
    }


@given(judged(), st.integers(1, 15))
def test_metrics_equal_naive_loops(case, k):
    hits, relevant = case
    by_name = {
        "top": metrics.top_k_accuracy(hits, k),
        "mrr": reciprocal_rank(hits, k),
        "ndcg": ndcg(np.pad(hits, ((0, 0), (0, 15))), relevant, k),
        "map": metrics.average_precision(hits, relevant, k),
        "recall": metrics.recall(hits, relevant, k),
        "all": metrics.all_found(hits, relevant, k),
    }
    for i, row in enumerate(hits.tolist()):
        expected = naive(row, int(relevant[i]), k)
        assert {name: values[i] for name, values in by_name.items()} == pytest.approx(expected)


def test_grades_count_in_ndcg():
    values = metrics.ndcg(np.array([[0.0, 3.0, 1.0]]), np.array([[3.0, 2.0, 1.0]]), 2)
    assert values == pytest.approx([(3 / log2(3)) / (3 + 2 / log2(3))])


GRADED = [("q1", "a", 3.0), ("q9", "c", 2.0)]
QUESTIONS = [
    Question(f"q{i}", "where?", [answer], "string", None, None, None, hops)
    for i, (answer, hops) in enumerate([("Aron", None), ("Belm", ["b"]), ("Cast", None)])
]


@pytest.fixture
def store(tmp_path):
    passages = [Passage("a", "", "Al of Aron.", None), Passage("b", "", "Be of Belm.", None)]
    tables.write(tmp_path / "passages.parquet", Passage, passages)
    return PassageStore(tmp_path / "passages.parquet")


def ranking(question_id: str, *ids: str) -> list[Ranked]:
    return [Ranked(question_id, passage_id, rank, 0.0) for rank, passage_id in enumerate(ids, start=1)]


def test_ranks_below_the_depth_are_left_out(store):
    rankings = [ranking("q0", "b", "a"), ranking("q1", "b", "a"), []]
    relevant = {"q0": {"a": 2.0}, "q1": {"b": 1.0, "a": 3.0}, "q2": {}}
    hits = judge_rankings(Judge(store, relevant), QUESTIONS, rankings, depth=1)
    assert hits.answer_QK.tolist() == hits.relevant_QK.tolist() == hits.supporting_QK.tolist() == [[0], [1], [0]]
    assert (hits.gain_QK.tolist(), hits.best_QK.tolist()) == ([[0], [1], [0]], [[2], [3], [0]])
    assert (hits.relevant_Q.tolist(), hits.supporting_Q.tolist()) == ([1, 2, 0], [0, 1, 0])
    assert hits.ranked_Q.tolist() == [1, 1, 0]


def test_given_positives_are_those_of_the_source_for_the_questions_asked_with_grades_of_judgements(store, tmp_path):
    rows = [("q1", "a", "given"), ("q9", "c", "given"), ("q0", "b", "given"), ("q0", "a", "bm25")]
    tables.write(tmp_path / "positives.parquet", Positive, [Positive(*row, None) for row in rows])
    graded = [Context(i, passage, "positive", 0, grade, None, None) for i, passage, grade in GRADED]
    tables.write(tmp_path / "contexts.parquet", Context, graded)
    judge = load_judge(tmp_path, tmp_path / "positives.parquet", QUESTIONS)
    assert judge.relevant == {"q0": {"b": 1}, "q1": {"a": 3, "b": 1}, "q2": {}}
