"""Fusion by hand, against a naive count, and through the stage's function on a small collection."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr import files, params, tables
from eadpr.config import Sets
from eadpr.records import Fold, Passage, Positive, Question, Ranked, SetMember
from eadpr.search.config import Fuse
from eadpr.search.fusion import CHOSEN, Both, fuse, paired, reciprocal, weighted
from tests.repository import ROOT
from tests.small_collection import python

HERE = Both("q", {"a": 9.0, "b": 5.0, "c": 1.0}, {"c": 0.5, "d": 0.4})
SCORES = st.dictionaries(st.sampled_from("abcdef"), st.floats(-50, 50, width=32), max_size=6)


def test_reciprocal_by_hand():
    assert reciprocal(HERE, 1) == pytest.approx({"a": 1 / 2, "b": 1 / 3, "c": 1 / 4 + 1 / 2, "d": 1 / 3})


def test_weighted_by_hand():
    """Scaled: a 1, b 0.5, c 0 and c 1, d 0."""
    assert weighted(HERE, 0.25) == pytest.approx({"a": 0.75, "b": 0.375, "c": 0.25, "d": 0.0})


def test_equal_scores_of_a_ranking_count_in_full():
    assert weighted(Both("q", {"a": 3.0}, {"b": 7.0, "c": 7.0}), 0.5) == {"a": 0.5, "b": 0.5, "c": 0.5}
    assert weighted(Both("q", {}, {"b": 7.0}), 0.5) == {"b": 0.5}


@given(SCORES, SCORES, st.integers(0, 60))
def test_reciprocal_equals_a_naive_count_and_does_not_care_which_is_first(first, second, k):
    found = reciprocal(Both("q", first, second), k)
    for passage_id, score in found.items():
        ranks = [
            sum((-s, p) <= (-scores[passage_id], passage_id) for p, s in scores.items())
            for scores in (first, second)
            if passage_id in scores
        ]
        assert score == pytest.approx(sum(1 / (k + rank) for rank in ranks))
    assert found == pytest.approx(reciprocal(Both("q", second, first), k))


@given(SCORES, SCORES)
def test_weights_0_and_1_order_as_one_ranking_alone(first, second):
    for weight, alone in ((0.0, first), (1.0, second)):
        found = weighted(Both("q", first, second), weight)
        assert set(found) == set(first) | set(second)
        order = sorted(alone, key=lambda p: (-alone[p], p))
        scores = [found[p] for p in order]
        assert scores == sorted(scores, reverse=True)


def write_passages(folder, **texts):
    rows = [Passage(passage_id, "", text, None) for passage_id, text in texts.items()]
    tables.write(folder / "records/passages.parquet", Passage, rows)


@pytest.fixture
def collection(tmp_path):
    """q1 and q2 train (q2 for validation), q3 is evaluated; q3 has no first ranking.

    q2's positive p2, which alone holds its answer, is second in the first ranking (scaled 0.5) and best in the second.
    """
    write_passages(tmp_path, p1="no", p2="an x", p3="no")
    questions = [Question(f"q{i}", "?", ["x"], "string", None, None, None, None) for i in (1, 2, 3)]
    tables.write(tmp_path / "records/questions.parquet", Question, questions)
    members = [SetMember("s", "train", "q1"), SetMember("s", "train", "q2"), SetMember("s", "dev", "q3")]
    tables.write(tmp_path / "records/question_sets.parquet", SetMember, members)
    tables.write(tmp_path / "positives/positives.parquet", Positive, [Positive("q2", "p2", "given", None)])
    folds = [Fold("q1", "train", 0), Fold("q2", "validation", 1)]
    tables.write(tmp_path / "positives/folds.parquet", Fold, folds)
    rankings = {
        "first/train": {"q1": {"p1": 1.0}, "q2": {"p1": 3.0, "p2": 2.0, "p3": 1.0}},
        "first/evaluate": {},
        "second/train": {"q1": {"p3": 1.0}, "q2": {"p2": 9.0, "p3": 8.0}},
        "second/evaluate": {"q3": {"p1": 0.2, "p2": 0.1}},
    }
    for name, of_questions in rankings.items():
        rows = [
            Ranked(question_id, passage_id, rank, score)
            for question_id, scores in of_questions.items()
            for rank, (passage_id, score) in enumerate(scores.items(), start=1)
        ]
        tables.write(tmp_path / f"{name}.parquet", Ranked, rows)
    return tmp_path


def run(folder, depth=2, **changes):
    settings = Fuse(**{"by": "weighted", "weights": [0.0, 0.25, 0.75, 1.0], "k": 60} | changes)
    sets = Sets(train=["s/train"], evaluate=["s/dev"], annotator=[])
    inputs = (folder / name for name in ("records", "positives", "first", "second", "out"))
    chosen = fuse(*inputs, settings=settings, sets=sets, depth=depth)
    assert json.loads((folder / "out" / CHOSEN).read_text(encoding="utf-8")) == chosen
    return chosen, {name: list(tables.rows(folder / f"out/{name}.parquet", Ranked)) for name in ("train", "evaluate")}


def test_the_weight_is_the_best_on_validation_and_the_least_of_equals(collection):
    """At 0.25: p1 0.75, p2 0.375 + 0.25. At 0.75 and 1 p2 is first."""
    chosen, found = run(collection)
    assert chosen == {"weight": 0.75, "mrr_0": 0.5, "mrr_0.25": 0.5, "mrr_0.75": 1.0, "mrr_1": 1.0}
    assert [(r.question_id, r.passage_id, r.rank) for r in found["train"]] == [
        ("q1", "p3", 1),
        ("q1", "p1", 2),
        ("q2", "p2", 1),
        ("q2", "p1", 2),
    ]
    assert [(r.question_id, r.passage_id, r.score) for r in found["evaluate"]] == [
        ("q3", "p1", pytest.approx(0.75)),
        ("q3", "p2", 0.0),
    ]


def test_ranks_beyond_the_depth_count_for_no_weight(collection):
    chosen, _ = run(collection, depth=1)
    assert chosen == {"weight": 0.75, "mrr_0": 0.0, "mrr_0.25": 0.0, "mrr_0.75": 1.0, "mrr_1": 1.0}


def test_a_passage_with_an_answer_counts_though_it_is_no_positive(collection):
    """Where BM25 found the positives, the others that a dense ranking finds are right too."""
    write_passages(collection, p1="x it is", p2="an x", p3="no")
    chosen, _ = run(collection, weights=[0.0, 1.0])
    assert chosen == {"weight": 0.0, "mrr_0": 1.0, "mrr_1": 1.0}


@pytest.mark.parametrize(("answers", "kind"), [([], "string"), (["x"], "yes-no")])
def test_positives_count_where_no_text_can_hold_the_answer(collection, answers, kind):
    write_passages(collection, p1="x it is", p2="no", p3="no")
    rows = list(tables.rows(collection / "records/questions.parquet", Question))
    rows[1] = rows[1]._replace(answers=answers, answer_kind=kind)
    tables.write(collection / "records/questions.parquet", Question, rows)
    chosen, _ = run(collection, weights=[0.0, 1.0])
    assert chosen == {"weight": 1.0, "mrr_0": 0.5, "mrr_1": 1.0}


def test_questions_in_another_order_are_not_left_out_unsaid(collection):
    rows = [Ranked("q2", "p1", 1, 1.0), Ranked("q1", "p1", 1, 1.0)]
    tables.write(collection / "second/train.parquet", Ranked, rows)
    with pytest.raises(ValueError, match=r"second/train\.parquet: question 'q1' does not stand where"):
        list(paired(collection / "first/train.parquet", collection / "second/train.parquet", ["q1", "q2"]))


def test_reciprocal_needs_no_validation(collection):
    tables.write(collection / "positives/folds.parquet", Fold, [Fold("q1", "train", 0)])
    chosen, found = run(collection, by="reciprocal")
    assert chosen == {}
    assert [r.passage_id for r in found["train"] if r.question_id == "q2"] == ["p2", "p3"], "p3 is in both"


def test_without_validation_questions_no_weight_can_be_chosen(collection):
    tables.write(collection / "positives/folds.parquet", Fold, [Fold("q1", "train", 0)])
    with pytest.raises(ValueError, match=r"raise positives\.validation, or set fuse\.by to reciprocal"):
        run(collection)
    assert not (collection / "out").exists()


def test_questions_that_only_one_ranking_holds_are_paired_with_nothing(collection):
    (both,) = paired(collection / "first/evaluate.parquet", collection / "second/evaluate.parquet", ["q3"])
    assert (both.first, list(both.second)) == ({}, ["p1", "p2"])


def test_stage(collection):
    values = params.load(ROOT / "params.yaml") | {"fused": {"both": {"first": "bm25", "second": "dpr"}}}
    config = params.configs(values)["fused/both.json"]
    config["sets"] = {"train": ["s/train"], "evaluate": ["s/dev"], "annotator": []}
    config["retrieve"]["depth"] = 1
    files.write_json(collection / "fuse.json", config)
    paths = {name: collection / name for name in ("records", "positives", "first", "second", "out")}
    options = [word for name, path in paths.items() for word in (f"--{name}", path)]
    command = ("-m", "stages.fuse", "--config", collection / "fuse.json", *options)
    done = python(*command, cache=collection / "cache")
    assert (done.returncode, done.stdout) == (0, "fuse: weighted, weight 0.4\n"), done.stderr
    assert [row.rank for row in tables.rows(collection / "out/train.parquet", Ranked)] == [1, 1]
