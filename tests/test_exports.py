"""Rankings for other tools: what ir_measures reads, and DPR's retrieval JSON."""

import json

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr import tables
from eadpr.records import Passage, Positive, Ranked
from eadpr.search import exports
from tests import small_collection as small

SCORES = [3.5, 3.5, 3.5, 1.0, 1.0, -2.25]  # ties, which TREC tools would break by passage id


@pytest.fixture
def ranked(tmp_path):
    """40 questions with 100 of 150 passages each, 1 to 4 of them positives; ranks are not in the order of ids."""
    rng = np.random.default_rng(0)
    rows, positives = [], []
    for q in range(40):
        order = rng.permutation(150)[:100]
        scores = np.sort(rng.integers(-5, 5, 100) / 4)[::-1]
        rows += [Ranked(f"q{q}", f"p{p}", rank + 1, float(scores[rank])) for rank, p in enumerate(order)]
        positives += [Positive(f"q{q}", f"p{p}", "given", None) for p in rng.permutation(150)[: 1 + q % 4]]
    positives.append(Positive("unasked", "p1", "given", None))
    tables.write(tmp_path / "ranking.parquet", Ranked, rows)
    tables.write(tmp_path / "positives.parquet", Positive, positives)
    return tmp_path, rows, positives


def test_ir_measures_reads_the_ranking_and_the_positives(ranked):
    folder, rows, positives = ranked
    assert exports.write_trec_run(folder / "ranking.parquet", folder / "run", tag="eadpr") == 4_000
    judged = exports.write_trec_qrels(folder / "positives.parquet", folder / "ranking.parquet", folder / "qrels")
    assert judged == len(positives) - 1
    qrels = [(q.query_id, q.doc_id, q.relevance) for q in ir_measures.read_trec_qrels(str(folder / "qrels"))]
    assert sorted(qrels) == sorted((p.question_id, p.passage_id, 1) for p in positives[:-1])
    run = sorted(ir_measures.read_trec_run(str(folder / "run")), key=lambda doc: (-doc.score, doc.doc_id))
    for question_id in {row.question_id for row in rows}:
        found = [doc.doc_id for doc in run if doc.query_id == question_id]
        assert found == [row.passage_id for row in rows if row.question_id == question_id]


def test_run_by_hand(tmp_path):
    rows = [Ranked("q", f"p{9 - i}", i + 1, score) for i, score in enumerate(SCORES)]
    tables.write(tmp_path / "ranking.parquet", Ranked, rows)
    exports.write_trec_run(tmp_path / "ranking.parquet", tmp_path / "run", tag="dpr")
    assert (tmp_path / "run").read_text() == (
        "q Q0 p9 1 3.5 dpr\n"
        "q Q0 p8 2 3.4999998 dpr\n"
        "q Q0 p7 3 3.4999995 dpr\n"
        "q Q0 p6 4 1.0 dpr\n"
        "q Q0 p5 5 0.99999994 dpr\n"
        "q Q0 p4 6 -2.25 dpr\n"
    )


@given(st.lists(st.floats(-100, 100, width=32) | st.sampled_from([0.0, -0.0, 1.0]), max_size=30))
def test_scores_in_a_run_fall_and_stay_as_near_as_they_can(scores):
    scores = sorted(scores, reverse=True)
    found = np.array([float(text) for text in exports.falling(scores)], np.float32)
    assert (np.diff(found) < 0).all()
    for i, score in enumerate(scores):
        assert found[i] <= score
        assert found[i] == np.float32(score) or found[i] == np.nextafter(found[i - 1], np.float32(-np.inf))


@pytest.mark.parametrize("bad", ["a b", "", "tab\t", "non\u00a0breaking"])
def test_ids_that_are_not_one_word_are_refused(tmp_path, bad):
    out = tmp_path / "run"
    out.write_text("earlier")
    tables.write(tmp_path / "ranking.parquet", Ranked, [Ranked("q", "fine", 1, 1.0), Ranked("q", bad, 2, 0.5)])
    with pytest.raises(ValueError, match="an id must be one word"):
        exports.write_trec_run(tmp_path / "ranking.parquet", out, tag="x")
    assert out.read_text() == "earlier"
    tables.write(tmp_path / "ranking.parquet", Ranked, [Ranked("q", "fine", 1, 1.0)])
    with pytest.raises(ValueError, match="the tag is"):
        exports.write_trec_run(tmp_path / "ranking.parquet", out, tag=bad)
    tables.write(tmp_path / "positives.parquet", Positive, [Positive("q", bad, "given", None)])
    with pytest.raises(ValueError, match=r"passage_id in .*positives"):
        exports.write_trec_qrels(tmp_path / "positives.parquet", tmp_path / "ranking.parquet", out)


@pytest.fixture
def described(tmp_path):
    passages = [
        Passage("p1", "Ada", "Born in “London”.\u2028She wrote.", None),
        Passage("p2", "", 'No answer, "quoted"\n\tand José', None),
        Passage("p3", "London", "The title is not searched", None),
    ]
    questions = [
        small.question("q1", "Where’s Ada born?", ["London"]),
        small.question("q2", "which", [r"jos."], "regex"),
        small.question("unranked", "never", ["x"]),
    ]
    small.write_records(tmp_path / "records", passages, questions, train=1)
    rows = [
        Ranked("q1", "p3", 1, 82.1), Ranked("q1", "p1", 2, 7.0), Ranked("q2", "p2", 1, -0.125),
        Ranked("q2", "p3", 2, -1e-7),
    ]  # fmt: skip
    tables.write(tmp_path / "ranking.parquet", Ranked, rows)
    return tmp_path


def test_retrieval_json(described):
    out = described / "retrieval.json"
    assert exports.write_retrieval_json(described / "ranking.parquet", described / "records", out) == 2
    title, text = "London", "The title is not searched"
    ada = {"id": "p1", "title": "Ada", "text": "Born in “London”.\u2028She wrote.", "score": "7.0", "has_answer": True}
    jose = {"id": "p2", "title": "", "text": 'No answer, "quoted"\n\tand José', "score": "-0.125", "has_answer": True}
    other = {"id": "p3", "title": title, "text": text}
    expected = [
        {"question": "Where’s Ada born?", "answers": ["London"],
         "ctxs": [{**other, "score": "82.1", "has_answer": False}, ada]},
        {"question": "which", "answers": ["jos."], "ctxs": [jose, {**other, "score": "-1e-07", "has_answer": False}]},
    ]  # fmt: skip
    assert out.read_text() == json.dumps(expected, indent=4)


def test_an_empty_ranking(described):
    tables.write(described / "empty.parquet", Ranked, [])
    out = described / "out"
    assert exports.write_retrieval_json(described / "empty.parquet", described / "records", out) == 0
    assert json.loads(out.read_text()) == []
    assert exports.write_trec_run(described / "empty.parquet", out, tag="x") == 0
    assert out.read_text() == ""


def test_a_ranking_of_another_collection(described):
    tables.write(described / "other.parquet", Ranked, [Ranked("q9", "p1", 1, 1.0)])
    with pytest.raises(ValueError, match="question_id 'q9' is not in"):
        exports.write_retrieval_json(described / "other.parquet", described / "records", described / "out")
    assert not (described / "out").exists()
