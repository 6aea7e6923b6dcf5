"""Rankings for other tools: what ir_measures reads, and DPR's retrieval JSON."""

import json
import math
import re
import shutil

import ir_measures
import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import AP, RR, nDCG
from typer.testing import CliRunner

from eadpr.search import exports
from eadpr.storage import tables
from eadpr.storage.records import Context, Passage, Positive, Question, Ranked, SetMember
from stages import export
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
    others = [Positive("unasked", "p1", "given", None), Positive("q0", "p2", "bm25", None)]
    tables.write(tmp_path / "ranking.parquet", Ranked, rows)
    tables.write(tmp_path / "positives.parquet", Positive, [*positives, *others])
    passages = [Passage(f"p{p}", "", "In Rome." if p % 100 == 3 else "None.", None) for p in range(150)]
    small.write_records(tmp_path, passages, [small.question(f"q{q}", "where", ["Rome"]) for q in range(40)], train=0)
    graded = [Context(*one[:2], "positive", 0, 1.0 + i % 3, None, None) for i, one in enumerate(positives)]
    tables.write(tmp_path / "contexts.parquet", Context, graded)
    return tmp_path, rows, positives


def by_definition(rows, graded):
    """RR@100, nDCG@10 and AP@100 of each question, by the definitions; `graded` maps its passages to grades."""
    values = {}
    for question in dict.fromkeys(row.question_id for row in rows):
        ranking = [row.passage_id for row in rows if row.question_id == question]
        of = graded[question]
        hits = [rank for rank, passage in enumerate(ranking, 1) if passage in of]
        gain = sum(of[ranking[rank - 1]] / math.log2(rank + 1) for rank in hits if rank <= 10)
        ideal = sorted(of.values(), reverse=True)[:10]
        best = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(ideal, 1))
        values[question, "RR@100"] = 1 / hits[0] if hits else 0.0
        values[question, "nDCG@10"] = gain / best if best else 0.0
        values[question, "AP@100"] = sum(n / rank for n, rank in enumerate(hits, 1)) / max(len(of), 1)
    return values


def test_ir_measures_agrees_by_id_and_by_answer(ranked):
    """Grades are 1 to 3. What BM25 found, and a question that was not asked, is in neither of the qrels."""
    folder, rows, positives = ranked
    ranking, given = folder / "ranking.parquet", folder / "positives.parquet"
    assert exports.write_trec_run(ranking, folder / "run", tag="eadpr") == 4_000
    assert exports.write_id_qrels(folder, given, ranking, folder / "ids") == len(positives)
    exports.write_answer_qrels(folder, given, ranking, folder / "answers")
    run = list(ir_measures.read_trec_run(str(folder / "run")))
    by_id, by_answer = ({row.question_id: {} for row in rows} for _ in range(2))
    for i, positive in enumerate(positives):
        by_id[positive.question_id][positive.passage_id] = 1 + i % 3
    for row in rows:
        if row.passage_id in ("p3", "p103"):
            by_answer[row.question_id][row.passage_id] = 1
    assert min(map(len, by_answer.values())) == 0
    for name, graded in (("ids", by_id), ("answers", by_answer)):
        qrels = list(ir_measures.read_trec_qrels(str(folder / name)))
        measured = ir_measures.iter_calc([RR @ 100, nDCG @ 10, AP @ 100], qrels, run)
        found = {(value.query_id, str(value.measure)): value.value for value in measured}
        assert found == pytest.approx(by_definition(rows, graded), abs=1e-9)


def test_a_question_of_a_set_that_nothing_was_found_for_counts_as_wrong(tmp_path):
    """Of q0, q1 and q2 the first two are of the set, and q1 is not ranked; ir_measures then halves what q0 has."""
    questions = [small.question(f"q{i}", "where", ["Rome"]) for i in range(3)]
    small.write_records(tmp_path, [Passage("p0", "", "In Rome.", None)], questions, train=2)
    given = tmp_path / "positives.parquet"
    tables.write(given, Positive, [Positive(f"q{i}", "p0", "given", None) for i in range(3)])
    tables.write(tmp_path / "contexts.parquet", Context, [])
    tables.write(tmp_path / "ranking.parquet", Ranked, [Ranked("q0", "p0", 1, 1.0), Ranked("q2", "p0", 1, 1.0)])
    exports.write_trec_run(tmp_path / "ranking.parquet", tmp_path / "run", tag="x")
    run = list(ir_measures.read_trec_run(str(tmp_path / "run")))
    for write in (exports.write_id_qrels, exports.write_answer_qrels):
        for sets, expected in ((("toy/train",), 0.5), ((), 1.0)):
            write(tmp_path, given, tmp_path / "ranking.parquet", tmp_path / "qrels", sets=sets)
            qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "qrels")))
            assert ir_measures.calc_aggregate([RR @ 100], qrels, run)[RR @ 100] == expected


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
    found = np.array([float(text) for text in exports.make_falling(scores)], np.float32)
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
    small.write_records(tmp_path, [], [small.question("q", "where", ["x"])], train=0)
    tables.write(tmp_path / "positives.parquet", Positive, [Positive("q", bad, "given", None)])
    with pytest.raises(ValueError, match=r"passage_id in .*positives"):
        exports.write_id_qrels(tmp_path, tmp_path / "positives.parquet", tmp_path / "ranking.parquet", out)


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
    rows = [Ranked("q1", "p3", 1, 82.1), Ranked("q1", "p1", 2, 7.0)]
    rows += [Ranked("q2", "p2", 1, -0.125), Ranked("q2", "p3", 2, -1e-7)]
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
        {
            "question": "Where’s Ada born?",
            "answers": ["London"],
            "ctxs": [{**other, "score": "82.1", "has_answer": False}, ada],
        },
        {"question": "which", "answers": ["jos."], "ctxs": [jose, {**other, "score": "-1e-07", "has_answer": False}]},
    ]
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


@pytest.mark.parametrize(("words", "said"), [
    (["--set", "toy/train"], r"ranking\.parquet ranks no question of toy/train"),
    (["--set", "toy/none"], "toy/none"),
    ([], r"passage p\d+ has grade 0\.5 for question q0"),
])  # fmt: skip
def test_a_refused_export_leaves_all_files_as_they_were(ranked, words, said):
    folder, _, positives = ranked
    tables.write(folder / "contexts.parquet", Context, [Context(*positives[0][:2], "positive", 0, 0.5, None, None)])
    tables.write(folder / "question_sets.parquet", SetMember, [SetMember("toy", "train", "unasked")])
    questions = [*tables.rows(folder / "questions.parquet", Question), small.question("unasked", "where", ["Rome"])]
    tables.write(folder / "questions.parquet", Question, questions)
    (out := folder / "out").mkdir()
    (out / "run.trec").write_text("before")
    app = typer.Typer()
    app.command()(export.main)
    given = ["--ranking", folder / "ranking.parquet", "--records", folder, "--positives", folder, "--out", out, *words]
    done = CliRunner().invoke(app, list(map(str, given)))
    assert re.search(said, str(done.exception)), done.exception
    assert [(path.name, path.read_text()) for path in out.iterdir()] == [("run.trec", "before")]


@pytest.mark.parametrize(("said", "tag"), [((), "bm25"), (("--tag", "mine"), "mine")])
def test_a_run_is_called_as_its_ranking(ranked, said, tag):
    folder, _, _ = ranked
    (folder / "bm25").mkdir()
    shutil.copy(folder / "ranking.parquet", folder / "bm25" / "evaluate.parquet")
    app = typer.Typer()
    app.command()(export.main)
    words = ["--ranking", folder / "bm25" / "evaluate.parquet", "--records", folder, "--positives", folder]
    done = CliRunner().invoke(app, [str(word) for word in (*words, "--out", folder, "--format", "run", *said)])
    assert done.exit_code == 0, done.exception
    assert {line.split()[-1] for line in (folder / "run.trec").read_text().splitlines()} == {tag}
