"""Which ranked passages are hits, by hand."""

import pyarrow as pa
import pytest

from eadpr.evaluation.metrics import given_positives, judge, relevant_of
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage, Positive, Question, Ranked

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


def test_ranks_below_the_depth_are_left_out_and_every_ranked_question_is_told(store):
    asked = list(zip(QUESTIONS, [ranking("q0", "b", "a"), ranking("q1", "b", "a"), []], strict=True))
    told = []
    relevant = {"q0": {"a": 2.0}, "q1": {"b": 1.0, "a": 3.0}, "q2": {}}
    found = judge(asked, relevant, store, depth=1, advance=told.append)
    assert found.answer_QK.tolist() == found.relevant_QK.tolist() == found.supporting_QK.tolist() == [[0], [1], [0]]
    assert (found.gain_QK.tolist(), found.best_QK.tolist()) == ([[0], [1], [0]], [[2], [3], [0]])
    assert (found.relevant_Q.tolist(), found.supporting_Q.tolist()) == ([1, 2, 0], [0, 1, 0])
    assert (found.ranked_Q.tolist(), told) == ([1, 1, 0], [1, 1])


def test_given_positives_are_those_of_the_source_for_the_questions_asked(tmp_path):
    rows = [("q1", "a", "given"), ("q9", "c", "given"), ("q0", "b", "given"), ("q0", "a", "bm25")]
    tables.write(tmp_path / "positives.parquet", Positive, [Positive(*row, None) for row in rows])
    given = given_positives(tmp_path / "positives.parquet", pa.array(["q0", "q1", "q2"]))
    assert relevant_of(given, 0, QUESTIONS, {}) == {"q0": {"b": 1}, "q1": {"a": 1, "b": 1}, "q2": {}}
    graded = {"q1": {"a": 3.0}, "q9": {"c": 2.0}}
    assert relevant_of(given, 1, QUESTIONS[1:], graded) == {"q1": {"a": 3, "b": 1}, "q2": {}}
