"""The stage `evaluate` on the collection of `tests.evaluated`; every expected number is worked out by hand."""

from __future__ import annotations

from math import log2

import pytest
from typer.testing import CliRunner

import stages.evaluate
from eadpr import commands, tables
from eadpr.config import Sets
from eadpr.evaluation import awareness, evaluate
from eadpr.evaluation.config import Evaluate
from eadpr.evaluation.summary import summary
from eadpr.records import Outcome, PairScore, Passage, Positive, Question, Ranked
from tests.evaluated import EVALUATE, POSITIVES, QUESTIONS, SETS, write_config, write_inputs
from tests.evaluated import evaluated as measure


@pytest.fixture
def inputs(tmp_path):
    write_inputs(tmp_path)
    return tmp_path


def evaluated(inputs, name, *, sets=SETS):
    """The outcomes and their summary."""
    measure(inputs, name, sets=sets)
    path = inputs / "outcomes" / f"{name}.parquet"
    return list(tables.rows(path, Outcome)), summary(path, sets.evaluate)


def of(rows, question_set, metric):
    return {row.question_id: row.value for row in rows if (row.question_set, row.metric) == (question_set, metric)}


def test_answers_are_matched_in_texts_not_titles(inputs):
    """dpr puts p4, whose title is the answer, first for q1, and p2, whose text has it, second."""
    rows, _ = evaluated(inputs, "dpr")
    assert of(rows, "main/dev", "top1")["q1"] == 0
    assert of(rows, "main/dev", "top2")["q1"] == 1
    assert of(rows, "main/dev", "mrr3")["q1"] == 0.5


def test_a_question_without_a_ranking_counts_as_wrong(inputs):
    rows, report = evaluated(inputs, "dpr")
    assert of(rows, "main/dev", "top5") == {"q1": 1, "q2": 0, "q3": 1, "q4": 1}
    assert report["main/dev"]["top5"] == 0.75
    assert (report["main/dev"]["n"], report["main/dev"]["n_ranked"]) == (4, 3)


def test_a_question_without_answers_is_judged_by_passage_id(inputs):
    """q3: p4 is at rank 2 with dpr and not ranked with eadpr."""
    rows, report = evaluated(inputs, "dpr")
    assert of(rows, "main/dev", "mrr3")["q3"] == 0.5
    assert of(evaluated(inputs, "eadpr")[0], "main/dev", "mrr3")["q3"] == 0
    assert report["main/dev"]["n_without_answers"] == 1
    assert report["main/dev"]["n_unjudged"] == 0


def test_yes_and_no_are_judged_by_passage_id(inputs):
    """q1 asked for a yes: its positive p1 is third with dpr; that p4 holds the word yes counts for nothing."""
    questions = list(tables.rows(inputs / "records/questions.parquet", Question))
    questions[0] = questions[0]._replace(answers=["yes"], answer_kind="yes-no")
    tables.write(inputs / "records/questions.parquet", Question, questions)
    passages = list(tables.rows(inputs / "records/passages.parquet", Passage))
    passages[3] = passages[3]._replace(text="Yes.")
    tables.write(inputs / "records/passages.parquet", Passage, passages)
    rows, report = evaluated(inputs, "dpr")
    assert of(rows, "main/dev", "mrr3")["q1"] == pytest.approx(1 / 3)
    assert [of(rows, "main/dev", f"top{k}")["q1"] for k in (1, 2, 5)] == [0, 0, 1]
    assert of(rows, "main/dev", "recall2")["q1"] == 0
    assert (report["main/dev"]["n_without_answers"], report["main/dev"]["n_unjudged"]) == (2, 0)


def test_a_hit_beyond_the_depth_does_not_count(inputs):
    """q5 of dpr has its only hit, by regular expression, at rank 5; mrr3 stops at 3, top5 does not."""
    rows, _ = evaluated(inputs, "dpr")
    assert of(rows, "more/dev", "mrr3")["q5"] == 0
    assert of(rows, "more/dev", "top5")["q5"] == 1


def test_metrics_by_id_take_given_positives_only(inputs):
    """q2 and q5 have positives that BM25 found, so no relevance is known; q4 of dpr has p1, p2, p5 and lacks p4."""
    rows, report = evaluated(inputs, "dpr")
    assert set(of(rows, "main/dev", "ndcg3")) == {"q1", "q3", "q4"}
    assert of(rows, "main/dev", "ndcg3")["q4"] == pytest.approx((1 + 1 / log2(4)) / (1 + 1 / log2(3) + 1 / log2(4)))
    assert of(rows, "main/dev", "recall2") == {"q1": 0, "q3": 1, "q4": pytest.approx(1 / 3)}
    assert report["main/dev"]["recall2"] == pytest.approx(4 / 9, abs=1e-6)
    assert report["main/dev"]["n_relevant"] == 3


def test_all_supporting_passages_must_be_found(inputs):
    """p1 and p5; p4, which is relevant but not supporting, need not be."""
    rows, report = evaluated(inputs, "dpr")
    assert of(rows, "main/dev", "all2") == {"q4": 0}
    assert of(rows, "main/dev", "all3") == {"q4": 1}
    assert report["main/dev"]["n_supporting"] == 1


def test_a_relevant_passage_that_supports_nothing_stands_for_no_supporting_one(inputs):
    """p4 of q4."""
    ranked = [Ranked("q4", passage_id, rank, 10.0 - rank) for rank, passage_id in enumerate(("p4", "p1", "p5"), 1)]
    tables.write(inputs / "rankings" / "dpr" / "evaluate.parquet", Ranked, ranked)
    rows, _ = evaluated(inputs, "dpr")
    assert (of(rows, "main/dev", "all2"), of(rows, "main/dev", "all3")) == ({"q4": 0}, {"q4": 1})


def test_supporting_passages_are_relevant_where_no_positive_is_given(inputs):
    """Of p1 and p5 dpr has p1 among the first two."""
    rest = [row for row in POSITIVES if row.question_id != "q4"]
    tables.write(inputs / "positives" / "positives.parquet", Positive, rest)
    rows, _ = evaluated(inputs, "dpr")
    assert of(rows, "main/dev", "recall2")["q4"] == 0.5


def test_awareness_is_the_share_of_pairs_with_ties_against(inputs):
    """dpr in main/dev: q1 aware, q2 a tie, q4 aware once and once cut; by evidence q1 not, q4 aware."""
    _, report = evaluated(inputs, "dpr")
    found = report["main/dev"]
    assert found["aa"] == pytest.approx(2 / 3, abs=1e-6)
    assert (found["n_aa"], found["n_aa_cut"]) == (3, 1)
    assert (found["aa_evidence"], found["n_aa_evidence"], found["n_aa_evidence_cut"]) == (0.5, 2, 1)
    assert found["score_difference"] == 0.25  # of -0.5 and 1
    expected = {"q05": -0.425, "q25": -0.125, "q50": 0.25, "q75": 0.625, "q95": 0.925}
    assert found["score_difference_quantiles"] == pytest.approx(expected)


def test_each_set_has_its_own_questions(inputs):
    """q4 is in both sets."""
    rows, report = evaluated(inputs, "eadpr")
    assert list(report) == ["main/dev", "more/dev"]
    assert (report["more/dev"]["n"], report["more/dev"]["n_aa"]) == (2, 2)
    assert of(rows, "more/dev", "top1") == {"q4": 1, "q5": 1}


def test_every_metric_is_broken_down_by_question_type(inputs):
    _, report = evaluated(inputs, "dpr")
    by_type = report["main/dev"]["by_type"]
    assert list(by_type) == ["who", "when", "which", "other"]
    assert (by_type["who"]["n"], by_type["who"]["mrr3"], by_type["who"]["aa"], by_type["who"]["n_aa"]) == (1, 0.5, 1, 1)
    assert by_type["when"]["aa"] == 0
    assert "aa" not in by_type["which"]
    assert by_type["other"]["all3"] == 1


def test_bm25_has_no_awareness(inputs):
    rows, report = evaluated(inputs, "bm25")
    assert not any("aa" in row.metric for row in rows)
    assert "aa" not in report["main/dev"]
    assert report["main/dev"]["top1"] == 0.5


def test_means_of_outcomes_are_the_metrics(inputs):
    rows, report = evaluated(inputs, "dpr")
    for name, found in report.items():
        metrics = {row.metric for row in rows if row.question_set == name and row.metric in found}
        assert {"aa_evidence", "score_difference"} < metrics
        for metric in metrics:
            values = [row.value for row in rows if (row.question_set, row.metric) == (name, metric)]
            assert found[metric] == pytest.approx(sum(values) / len(values), abs=1e-6)


def with_relations(inputs, *relations):
    path = inputs / "records" / "questions.parquet"
    tables.write(path, Question, [q._replace(relation=r) for q, r in zip(QUESTIONS, relations, strict=True)])
    return inputs


def test_the_macro_average_counts_every_relation_alike(inputs):
    """Top-2 of dpr: q1 1 and q2 0 of P19, q3 1 of P20, q4 0 of P30. Pairs: q1 aware, q2 not; q4 aware; none of P20."""
    _, report = evaluated(with_relations(inputs, "P19", "P19", "P20", "P30", None), "dpr")
    found = report["main/dev"]
    assert (found["top2"], found["macro"]["top2"]) == (0.5, 0.5)
    assert (found["top5"], found["macro"]["top5"]) == (0.75, pytest.approx((0.5 + 1 + 1) / 3, abs=1e-6))
    assert (found["aa"], found["macro"]["aa"]) == (pytest.approx(2 / 3, abs=1e-6), (0.5 + 1) / 2)
    assert found["macro"]["recall2"] == pytest.approx((0 + 1 + 1 / 3) / 3, abs=1e-6)
    assert found["macro"]["relations"] == 3
    assert "macro" not in report["more/dev"], "q5 has no relation"


@pytest.mark.parametrize("relations", [["P19"] * 5, [None] * 5])
def test_no_macro_average_over_one_relation_or_none(inputs, relations):
    _, report = evaluated(with_relations(inputs, *relations), "dpr")
    assert "macro" not in report["main/dev"]


def test_a_ranking_of_other_questions_is_refused(inputs):
    with pytest.raises(ValueError, match=r"'q5' is in none of sets\.evaluate"):
        evaluated(inputs, "bm25", sets=Sets(train=[], evaluate=["main/dev"], annotator=[]))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("q1", "p1", 1), ("q1", "p2", 1)], "ranks that repeat"),
        ([("q1", "p1", 0)], "below 1"),
        ([("q1", "p1", 1), ("q1", "p1", 2)], "a passage at two ranks"),
        ([("q1", "p1", 1), ("q2", "p1", 1), ("q1", "p2", 2)], "ranks that repeat"),
        ([("q1", "p9", 1)], "'p9' is not in"),
    ],
)
def test_an_impossible_ranking_is_refused(inputs, rows, message):
    path = inputs / "rankings" / "bm25" / "evaluate.parquet"
    tables.write(path, Ranked, [Ranked(*row, 0.0) for row in rows])
    with pytest.raises(ValueError, match=message):
        evaluated(inputs, "bm25")


@pytest.mark.parametrize("names", [[], ["main/test"]])
def test_sets_that_hold_nothing_are_refused(inputs, names):
    with pytest.raises(ValueError, match=r"sets\.evaluate|main/test"):
        evaluated(inputs, "bm25", sets=Sets(train=[], evaluate=names, annotator=[]))


def test_a_pair_without_its_positive_is_refused():
    pairs = tables.as_table(PairScore, [PairScore("q1", "p1", "masked", 1.0)])
    with pytest.raises(ValueError, match="has a masked but no positive"):
        awareness.differences(pairs, "masked")


def test_a_score_that_is_no_number_is_refused():
    pairs = tables.as_table(PairScore, [PairScore("q1", "p1", "positive", float("nan"))])
    with pytest.raises(ValueError, match="is nan, not a finite number"):
        awareness.differences(pairs, "masked")


@pytest.mark.parametrize("cutoffs", [[], [5, 1], [1, 1], [0, 1]])
def test_cut_offs_must_rise(cutoffs):
    with pytest.raises(ValueError, match="top_k"):
        Evaluate(top_k=cutoffs, mrr_at=1, ndcg_at=1, recall_at=[], all_at=[])


def run_stage(inputs, *extra):
    write_config(inputs / "evaluate.json", evaluate=EVALUATE, sets=SETS)
    app = commands.app(stages.evaluate.main.command())
    options = {
        "config": inputs / "evaluate.json",
        "records": inputs / "records",
        "positives": inputs / "positives",
        "ranking": inputs / "rankings" / "dpr",
        "out": inputs / "dpr.parquet",
    }
    return CliRunner().invoke(app, [part for k, v in options.items() for part in (f"--{k}", str(v))] + [*extra])


def test_the_stage_writes_the_same_bytes_again(inputs):
    pairs = ("--pairs", str(inputs / "pairs" / "dpr.parquet"))
    written = []
    for _ in range(2):
        result = run_stage(inputs, *pairs)
        assert result.exit_code == 0, result.output
        written.append((inputs / "dpr.parquet").read_bytes())
    assert written[0] == written[1]
    assert "evaluate: dpr: 4 questions of main/dev, 2 questions of more/dev" in result.output
    assert summary(inputs / "dpr.parquet", ["main/dev"])["main/dev"]["aa"] == 0.666667
    kinds = {row.question_id: row.type for row in tables.rows(inputs / "dpr.parquet", Outcome)}
    assert kinds == {"q1": "who", "q2": "when", "q3": "which", "q4": "other", "q5": "who"}


def test_an_error_leaves_earlier_files_untouched(inputs):
    assert run_stage(inputs).exit_code == 0
    before = (inputs / "dpr.parquet").read_bytes()
    tables.write(inputs / "rankings" / "dpr" / "evaluate.parquet", Ranked, [Ranked("q9", "p1", 1, 0.0)])
    result = run_stage(inputs)
    assert isinstance(result.exception, ValueError)
    assert (inputs / "dpr.parquet").read_bytes() == before


def test_blocks_of_questions_decide_nothing(inputs, monkeypatch):
    whole = evaluated(inputs, "dpr")
    monkeypatch.setattr(evaluate, "BLOCK", 2)
    monkeypatch.setattr(awareness, "BLOCK", 2)
    assert evaluated(inputs, "dpr") == whole
