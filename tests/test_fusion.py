"""Fusion by hand, and against naive sums of ranks and scores, through the stage's function on a small collection."""

import json

import numpy as np
import pytest

from eadpr.evaluation.fusion import CHOSEN, fuse
from eadpr.runtime.section import Sets
from eadpr.search.config import Fuse
from eadpr.storage import tables
from eadpr.storage.records import Fold, Positive, Ranked
from tests.toy_records import question, write_records


@pytest.fixture
def collection(tmp_path):
    """q1 and q2 train (q2 for validation), q3 is evaluated; q3 has no first ranking.

    q2's positive p2, which alone holds its answer, is second in the first ranking (scaled 0.5) and best in the second.
    """
    write_questions(tmp_path, ["q3"])
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
        write_ranking(tmp_path / f"{name}.parquet", of_questions)
    return tmp_path


def write_questions(folder, evaluated):
    """Records of q1, q2 and of these."""
    questions, sets = [question(i, ["x"]) for i in ("q1", "q2", *evaluated)], {"s/train": ["q1", "q2"]}
    passages = [("p1", "", "no"), ("p2", "", "an x"), ("p3", "", "no")]
    write_records(folder / "records", passages=passages, questions=questions, sets=sets | {"s/dev": evaluated})


def write_ranking(path, of_questions):
    rows = [
        Ranked(question_id, passage_id, rank, score)
        for question_id, scores in of_questions.items()
        for rank, (passage_id, score) in enumerate(scores.items(), start=1)
    ]
    tables.write(path, Ranked, rows)


def run(folder, depth=2, **changes):
    settings = Fuse(**{"by": "weighted", "weights": [0.0, 0.25, 0.75, 1.0], "k": 60} | changes)
    sets = Sets(train=["s/train"], evaluate=["s/dev"], annotator=[])
    inputs = (folder / name for name in ("records", "positives", "first", "second", "out"))
    chosen = fuse(*inputs, settings=settings, sets=sets, depth=depth)
    assert json.loads((folder / "out" / CHOSEN).read_text(encoding="utf-8")) == chosen
    return chosen, {name: list(tables.rows(folder / f"out/{name}.parquet", Ranked)) for name in ("train", "evaluate")}


def test_the_weight_is_the_best_on_validation_within_the_depth_and_the_least_of_equals(collection):
    """p1 has 0.75, p2 0.375 + 0.25 at 0.25; p2 is first at 0.75 and 1."""
    chosen, rankings = run(collection)
    assert chosen == {"weight": 0.75, "mrr_0": 0.5, "mrr_0.25": 0.5, "mrr_0.75": 1.0, "mrr_1": 1.0}
    expected = [("q1", "p3", 1), ("q1", "p1", 2), ("q2", "p2", 1), ("q2", "p1", 2)]
    assert [(r.question_id, r.passage_id, r.rank) for r in rankings["train"]] == expected
    expected = [("q3", "p1", pytest.approx(0.75)), ("q3", "p2", 0.0)]
    assert [(r.question_id, r.passage_id, r.score) for r in rankings["evaluate"]] == expected
    chosen, _ = run(collection, depth=1)
    assert chosen == {"weight": 0.75, "mrr_0": 0.0, "mrr_0.25": 0.0, "mrr_0.75": 1.0, "mrr_1": 1.0}


def naive(first, second, shares, k):
    """Sums of scaled scores, with `k` of reciprocal ranks, and their order; two dictionaries of a question's scores."""
    fused = {}
    for share, scores in zip(shares, (first, second), strict=True):
        order, values = sorted(scores, key=lambda p: (-scores[p], p)), scores.values()
        for rank, p in enumerate(order, start=1):
            scaled = (scores[p] - min(values)) / (max(values) - min(values)) if max(values) > min(values) else 1.0
            fused[p] = fused.get(p, 0.0) + (share * scaled if k is None else 1 / (k + rank))
    return sorted(fused.items(), key=lambda item: (-item[1], item[0]))


def test_as_naive_sums(collection):
    """Few different scores, so that many tie; some questions are in one ranking or in none."""
    draw = np.random.default_rng(0)
    ids = [f"q{i}" for i in range(3, 43)]
    write_questions(collection, ids)
    sides = []
    for side in ("first", "second"):
        ranked = {i: draw.permutation(list("abcdef"))[: draw.integers(0, 7)].tolist() for i in ids}
        sides.append({i: {p: draw.integers(-3, 4) / 2 for p in passages} for i, passages in ranked.items()})
        write_ranking(collection / side / "evaluate.parquet", sides[-1])
    for changes, shares, k in (
        ({"by": "reciprocal", "k": 0}, (1, 1), 0),
        ({"weights": [0.0]}, (1, 0), None),
        ({"weights": [0.3]}, (0.7, 0.3), None),
        ({"weights": [1.0]}, (0, 1), None),
    ):
        expected = [
            (i, p, rank, pytest.approx(score))
            for i in ids
            for rank, (p, score) in enumerate(naive(*(scores.get(i, {}) for scores in sides), shares, k)[:4], start=1)
        ]
        assert [tuple(row) for row in run(collection, depth=4, **changes)[1]["evaluate"]] == expected


def test_without_validation_questions_no_weight_can_be_chosen(collection):
    tables.write(collection / "positives/folds.parquet", Fold, [Fold("q1", "train", 0)])
    with pytest.raises(ValueError, match=r"fuse\.by"):
        run(collection)
    assert not (collection / "out").exists()
