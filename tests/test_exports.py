"""Rankings for other tools: what ir_measures reads."""

import math

import ir_measures
import numpy as np
import pytest
import typer
from ir_measures import AP, RR, nDCG
from typer.testing import CliRunner

from eadpr.evaluation import exports
from eadpr.storage import tables
from eadpr.storage.records import Context, Passage, Positive, Ranked, SetMember
from stages import export
from tests import small_collection as small


def exported(folder, **changes):
    """Export the ranking of a folder to its folder `out`."""
    paths = (folder / "ranking.parquet", folder, folder / "positives.parquet", folder / "out")
    counts = exports.export(*paths, **{"sets": ()} | changes)
    return {path.name: count for path, count in counts.items()}


def trec(folder):
    """The run and the qrels by id and by answer, as ir_measures reads them."""
    run = list(ir_measures.read_trec_run(str(folder / "out" / "run.trec")))
    return run, *(
        list(ir_measures.read_trec_qrels(str(folder / "out" / f"qrels-{kind}.trec"))) for kind in ("ids", "answers")
    )


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
    ignored = [Positive("unasked", "p1", "given", None), Positive("q0", "p2", "bm25", None)]
    tables.write(tmp_path / "ranking.parquet", Ranked, rows)
    tables.write(tmp_path / "positives.parquet", Positive, [*positives, *ignored])
    passages = [Passage(f"p{p}", "", "In Rome." if p % 100 == 3 else "None.", None) for p in range(150)]
    small.write_records(tmp_path, passages, [small.question(f"q{q}", "where", ["Rome"]) for q in range(40)], train=0)
    graded = [Context(*positive[:2], "positive", 0, 1.0 + i % 3, None, None) for i, positive in enumerate(positives)]
    tables.write(tmp_path / "contexts.parquet", Context, graded)
    return tmp_path, rows, positives


def by_definition(rows, graded):
    """RR@100, nDCG@10 and AP@100 of each question, by the definitions; `graded` maps its passages to grades."""
    values = {}
    for question in dict.fromkeys(row.question_id for row in rows):
        ranking = [row.passage_id for row in rows if row.question_id == question]
        grades = graded[question]
        hits = [rank for rank, passage in enumerate(ranking, 1) if passage in grades]
        gain = sum(grades[ranking[rank - 1]] / math.log2(rank + 1) for rank in hits if rank <= 10)
        ideal = sorted(grades.values(), reverse=True)[:10]
        best = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(ideal, 1))
        values[question, "RR@100"] = 1 / hits[0] if hits else 0.0
        values[question, "nDCG@10"] = gain / best if best else 0.0
        values[question, "AP@100"] = sum(n / rank for n, rank in enumerate(hits, 1)) / max(len(grades), 1)
    return values


def test_ir_measures_agrees_by_id_and_by_answer(ranked):
    """Grades are 1 to 3. What BM25 found, and a question that was not asked, is in neither of the qrels."""
    folder, rows, positives = ranked
    counts = exported(folder)
    assert (counts["run.trec"], counts["qrels-ids.trec"]) == (4_000, len(positives))
    by_id, by_answer = ({row.question_id: {} for row in rows} for _ in range(2))
    for i, positive in enumerate(positives):
        by_id[positive.question_id][positive.passage_id] = 1 + i % 3
    for row in rows:
        if row.passage_id in ("p3", "p103"):
            by_answer[row.question_id][row.passage_id] = 1
    assert min(map(len, by_answer.values())) == 0
    run, *both = trec(folder)
    for qrels, graded in zip(both, (by_id, by_answer), strict=True):
        values = ir_measures.iter_calc([RR @ 100, nDCG @ 10, AP @ 100], qrels, run)
        by_query = {(value.query_id, str(value.measure)): value.value for value in values}
        assert by_query == pytest.approx(by_definition(rows, graded), abs=1e-9)


def test_a_question_of_a_set_that_nothing_was_found_for_counts_as_wrong(tmp_path):
    """The first two of q0, q1 and q2 are of the set, and q1 is not ranked; ir_measures then halves what q0 has."""
    questions = [small.question(f"q{i}", "where", ["Rome"]) for i in range(3)]
    small.write_records(tmp_path, [Passage("p0", "", "In Rome.", None)], questions, train=2)
    positives = [Positive(f"q{i}", "p0", "given", None) for i in range(3)]
    tables.write(tmp_path / "positives.parquet", Positive, positives)
    tables.write(tmp_path / "ranking.parquet", Ranked, [Ranked("q0", "p0", 1, 1.0), Ranked("q2", "p0", 1, 1.0)])
    for sets, expected in ((("toy/train",), 0.5), ((), 1.0)):
        exported(tmp_path, sets=sets)
        run, *both = trec(tmp_path)
        for qrels in both:
            assert ir_measures.calc_aggregate([RR @ 100], qrels, run)[RR @ 100] == expected


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
    small.write_records(tmp_path, passages, questions, train=1)
    rows = [Ranked("q1", "p3", 1, 82.1), Ranked("q1", "p1", 2, 82.1)]
    rows += [Ranked("q2", "p2", 1, -0.125), Ranked("q2", "p3", 2, -1e-7)]
    tables.write(tmp_path / "ranking.parquet", Ranked, rows)
    tables.write(tmp_path / "positives.parquet", Positive, [])
    return tmp_path


def test_a_run_by_hand(described):
    """It is called as the folder of its ranking, in one word; equal scores fall."""
    folder = described / "my eadpr"
    folder.mkdir()
    (described / "ranking.parquet").rename(folder / "ranking.parquet")
    assert run_command(described, folder / "ranking.parquet").exit_code == 0
    scores = ["q1 Q0 p3 1 82.1", "q1 Q0 p1 2 82.09999", "q2 Q0 p2 1 -0.125", "q2 Q0 p3 2 -0.12500001"]
    assert (described / "out" / "run.trec").read_text() == "".join(f"{score} my_eadpr\n" for score in scores)
    tables.write(described / "ranking.parquet", Ranked, [])
    assert set(exported(described).values()) == {0}


@pytest.mark.parametrize(("spoiled", "words", "message"), [
    (Ranked("q9", "p1", 1, 1.0), [], "question 'q9' is in none of the sets"),
    (SetMember("toy", "train", "unranked"), ["--set", "toy/train"], r"ranking\.parquet ranks no question of toy/train"),
    (None, ["--set", "toy/none"], "toy/none"),
])  # fmt: skip
def test_a_refused_export_leaves_all_files_as_they_were(described, spoiled, words, message):
    if spoiled:
        name = "ranking" if isinstance(spoiled, Ranked) else "question_sets"
        tables.write(described / f"{name}.parquet", type(spoiled), [spoiled])
    (out := described / "out").mkdir()
    (out / "run.trec").write_text("before")
    done = run_command(described, described / "ranking.parquet", *words)
    with pytest.raises(ValueError, match=message):
        raise done.exception
    assert [(path.name, path.read_text()) for path in out.iterdir()] == [("run.trec", "before")]


def run_command(folder, ranking, *words):
    app = typer.Typer()
    app.command()(export.main)
    options = ["--ranking", ranking, "--records", folder, "--positives", folder]
    return CliRunner().invoke(app, [str(word) for word in (*options, "--out", folder / "out", *words)])
