"""Negatives: what is refused and why, order, random draws, and the counts of what was not found."""

import json
from unittest import mock

import pytest

from eadpr.storage import engine, tables
from eadpr.storage.records import Context, Fold, Negative, Passage, Positive, Ranked
from eadpr.supervision import negatives
from eadpr.supervision.negatives import Negatives, mine_negatives
from eadpr.text.answers import has_answer
from tests.toy_records import context, question, write_ranking, write_records

BASE = {"kind": "ranked", "depth": 100, "keep": 30, "exclude": ["answer"], "seed": 0}
PASSAGES = [
    ("p0", "t", "Ada was born in London."), ("p1", "London", "She wrote notes."), ("p2", "t", "London is a city."),
    ("p3", "t", "ADA  was born\nin London. "), ("p4", "t", "Bea was born in Rome."),
    ("p5", "t", "Cyd was born in Bern."), ("p6", "t", "Rome has hills."),
]  # fmt: skip
TITLED = [(i, f"title of {i}" if i in ("p4", "p5", "p6") else title, text) for i, title, text in PASSAGES]
QUESTIONS = [question("q0", ["London"]), question("q1", [r"Ro\w+"], "regex"), question("q2", []), question("q3", ["x"])]
POSITIVES = {"q0": ["p0"], "q1": ["p4", "p6"], "q2": ["p3"], "q3": ["p1"]}


def settings(**changes) -> Negatives:
    return Negatives(**{**BASE, **changes})


@pytest.fixture
def folders(tmp_path):
    records = write_records(tmp_path / "records", passages=PASSAGES, questions=QUESTIONS)
    positives = (Positive(q, p, "given", None) for q, ids in POSITIVES.items() for p in ids)
    tables.write(tmp_path / "positives" / "positives.parquet", Positive, positives)
    folds = [Fold(q.id, "train", 0) for q in QUESTIONS]
    tables.write(tmp_path / "positives" / "folds.parquet", Fold, folds)
    return records, tmp_path / "positives", tmp_path / "out"


def run(folders, ranking, **changes) -> tuple[list[Negative], dict]:
    records, positives, out = folders
    count = mine_negatives(records, positives, ranking, out, negatives=settings(**changes))
    rows, report = list(tables.rows(out / "negatives.parquet", Negative)), json.loads((out / "report.json").read_text())
    assert count == len(rows) == report["negatives"]
    return rows, report


def pairs(rows: list[Negative]) -> list[tuple[str, str, int]]:
    return [(row.question_id, row.passage_id, row.rank) for row in rows]


def test_each_reason_to_refuse(folders, tmp_path):
    """q0: p0 is the positive, p2, itself q2, holds the answer, p3 has the positive's text, p1 the answer as title."""
    tables.write(folders[0] / "contexts.parquet", Context, [context("q2", "p2", 0, "own")])
    ranking = write_ranking(
        tmp_path / "bm25",
        train={"q0": ["p0", "p2", "p1", "p3", "p5"], "q1": ["p6", "p4", "p5"], "q2": ["p0", "p3", "p2", "p1"]},
    )
    rows, report = run(folders, ranking)
    assert pairs(rows) == [("q0", "p1", 3), ("q0", "p5", 5), ("q1", "p5", 3), ("q2", "p1", 4)]
    assert {row.source for row in rows} == {"bm25"}
    refused = {"is_positive": 5, "text_of_positive": 2, "title_of_positive": 0, "holds_answer": 1}
    counts = {"questions": 4, "without_candidates": 1, "without_negatives": 1, "negatives": 4}
    assert report == {"source": "bm25", "refused": refused} | counts


@pytest.mark.parametrize(("exclude", "expected", "refused"), [
    (["answer"], ["p1", "p5"], {"is_positive": 1, "text_of_positive": 1, "holds_answer": 1}),
    (["title"], ["p1", "p5"], {"is_positive": 1, "text_of_positive": 1, "title_of_positive": 1}),
    ([], ["p2", "p1", "p5"], {"is_positive": 1, "text_of_positive": 1}),
])  # fmt: skip
def test_what_excludes_a_negative(folders, tmp_path, exclude, expected, refused):
    """p2 holds q0's answer and has the title of its positive p0; p3 has that one's text."""
    ranking = write_ranking(tmp_path / "bm25", train={"q0": ["p0", "p2", "p1", "p3", "p5"]})
    tables.write(folders[0] / "passages.parquet", Passage, (Passage(i, u, t, None) for i, u, t in TITLED))
    rows, report = run(folders, ranking, exclude=exclude)
    assert [row.passage_id for row in rows] == expected
    assert {reason: n for reason, n in report["refused"].items() if n} == refused


def test_questions_ordered_a_few_at_a_time_give_the_same_bytes(folders, tmp_path, monkeypatch):
    found_by = engine.batches
    ranking = write_ranking(tmp_path / "bm25", train={q: ["p1", "p5", "p6", "p4"] for q in ("q0", "q1", "q3")})
    run(folders, ranking, keep=2)
    expected = (folders[2] / "negatives.parquet").read_bytes()
    for at_a_time, parts in {1: 4, 2: 2, 3: 2}.items():
        monkeypatch.setattr(negatives, "SORTED", at_a_time)
        queries = mock.Mock(wraps=found_by)
        monkeypatch.setattr(engine, "batches", queries)
        rows, _ = run((*folders[:2], tmp_path / str(at_a_time)), ranking, keep=2)
        assert len({row.question_id for row in rows}) == 3
        assert queries.call_count == parts
        assert (tmp_path / str(at_a_time) / "negatives.parquet").read_bytes() == expected


def test_a_yes_keeps_no_passage_away(folders, tmp_path):
    passages = [("p0", "A", "A sings."), ("p1", "B", "Yes, B sings."), ("p2", "", "Yes."), ("p3", "", "No.")]
    write_records(folders[0], passages=passages, questions=[question("q0", ["yes"], "yes-no")])
    positives = [Positive("q0", p, "given", None) for p in ("p0", "p2")]
    tables.write(folders[1] / "positives.parquet", Positive, positives)
    tables.write(folders[1] / "folds.parquet", Fold, [Fold("q0", "train", 0)])
    ranking = write_ranking(tmp_path / "bm25", train={"q0": ["p1", "p0", "p3"]})
    for exclude in (["answer"], ["answer", "title"]):  # passages without a title share none
        assert [row.passage_id for row in run(folders, ranking, exclude=exclude)[0]] == ["p1", "p3"]


def test_ties_go_by_id_and_the_source_is_the_arm(folders, tmp_path):
    rows = [Ranked("q0", p, rank, score) for rank, (p, score) in enumerate([("p6", 1.0), ("p5", 1.0), ("p1", 2.0)], 1)]
    mined, _ = run(folders, write_ranking(tmp_path / "eadpr", train=rows))
    assert pairs(mined) == [("q0", "p1", 3), ("q0", "p5", 2), ("q0", "p6", 1)]
    assert {row.source for row in mined} == {"eadpr"}


def test_given_negatives_are_the_hard_ones_in_the_sources_order_and_others_only_where_it_has_none(folders, tmp_path):
    """q0 has hard negatives, of which p2 holds the answer and p5 stands twice; q1 has others only; q2 and q3 none."""
    listed = [
        context("q0", "p1", 0, role="negative"), context("q0", "p5", 0, role="hard_negative"),
        context("q0", "p2", 1, role="hard_negative"), context("q0", "p4", 2, role="hard_negative"),
        context("q0", "p5", 3, role="hard_negative"), context("q1", "p5", 0, role="negative"),
        context("q2", "p4", 0),
    ]  # fmt: skip
    write_records(folders[0], passages=PASSAGES, questions=QUESTIONS, contexts=listed)
    rows, report = run(folders, tmp_path / "unread", kind="given")
    assert pairs(rows) == [("q0", "p5", 1), ("q0", "p4", 3), ("q1", "p5", 1)]
    assert {row.source for row in rows} == {"given"}
    assert (report["without_candidates"], report["refused"]["holds_answer"]) == (2, 1)


def test_a_source_without_negatives_gives_none(folders, tmp_path):
    with pytest.raises(ValueError, match=r"contexts\.parquet has negatives of none of the 4 training questions"):
        run(folders, tmp_path / "unread", kind="given")
    assert not folders[2].exists()


def test_random_negatives_hold_no_answer_and_stay_for_a_question(folders, tmp_path):
    _, positives, _ = folders
    texts = {i: text for i, _, text in PASSAGES}
    mined, report = run(folders, tmp_path / "unused", kind="random", depth=7)
    assert {row.source for row in mined} == {"random"}
    assert {row.passage_id for row in mined if row.question_id == "q0"} == {"p1", "p4", "p5", "p6"}
    for row in mined:
        query = next(q for q in QUESTIONS if q.id == row.question_id)
        assert row.passage_id not in POSITIVES[row.question_id]
        assert not has_answer(query.answers, texts[row.passage_id], query.answer_kind)
    assert report["without_candidates"] == 0
    ranks = [{row.passage_id: row.rank for row in mined if row.question_id == i} for i in ("q2", "q3")]
    assert any(ranks[0][i] != ranks[1][i] for i in ranks[0].keys() & ranks[1].keys())  # each question has its own draw

    tables.write(positives / "folds.parquet", Fold, [Fold("q0", "train", 0)])
    alone, _ = run(folders, tmp_path / "unused", kind="random", depth=7)
    assert alone == [row for row in mined if row.question_id == "q0"]
    assert pairs(alone) == [("q0", "p4", 2), ("q0", "p6", 3), ("q0", "p1", 4), ("q0", "p5", 7)], "in every process"
    reseeded, _ = run(folders, tmp_path / "unused", kind="random", depth=7, seed=1)
    assert pairs(reseeded) != pairs(alone)
    few, _ = run(folders, tmp_path / "unused", kind="random", depth=100, keep=2)
    assert pairs(few) == pairs(alone)[:2]
