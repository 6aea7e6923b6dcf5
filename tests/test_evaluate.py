"""The stage `evaluate` on the collection of `tests.evaluated`; every expected number is worked out by hand."""

from math import log2

import pytest

from eadpr.report import markdown
from eadpr.storage import tables
from eadpr.storage.rankings import SENTENCES, MatchedSentence
from eadpr.storage.records import Outcome, PairScore, Passage, Positive, Question, Ranked, Span
from tests.evaluated import POSITIVES, QUESTIONS, RANKINGS, SETS, summary, write_inputs
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


@pytest.fixture(scope="module")
def by_arm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluated")
    write_inputs(folder)
    return {name: evaluated(folder, name) for name in RANKINGS}


def values(rows, question_set, metric):
    return {row.question_id: row.value for row in rows if (row.question_set, row.metric) == (question_set, metric)}


NDCG_OF_Q4 = (1 + 1 / log2(4)) / (1 + 1 / log2(3) + 1 / log2(4))


@pytest.mark.parametrize(("arm", "question_set", "metric", "expected"), [
    # q1: p4, whose title is the answer, is first, and p2, whose text has it, second. q2 has no ranking, which is
    # wrong. q3 has no answers, so p4 counts by its id: second with dpr, not ranked with eadpr.
    ("dpr", "main/dev", "top1", {"q1": 0, "q2": 0, "q3": 0, "q4": 0}),
    ("dpr", "main/dev", "top2", {"q1": 1, "q2": 0, "q3": 1, "q4": 0}),
    ("dpr", "main/dev", "top5", {"q1": 1, "q2": 0, "q3": 1, "q4": 1}),
    ("dpr", "main/dev", "mrr3", {"q1": 1 / 2, "q2": 0, "q3": 1 / 2, "q4": 1 / 3}),
    ("eadpr", "main/dev", "mrr3", {"q1": 1, "q2": 1, "q3": 0, "q4": 1}),
    # q5 has its only hit, by regular expression, at rank 5; mrr3 stops at 3, top5 does not. q4 is in both sets.
    ("dpr", "more/dev", "mrr3", {"q4": 1 / 3, "q5": 0}),
    ("dpr", "more/dev", "top5", {"q4": 1, "q5": 1}),
    # q2 and q5 have positives that BM25 found, so no relevance is known; q4 has p1, p2, p5 and lacks p4.
    ("dpr", "main/dev", "ndcg3", {"q1": 1 / 2, "q3": 1 / log2(3), "q4": NDCG_OF_Q4}),
    ("dpr", "main/dev", "recall2", {"q1": 0, "q3": 1, "q4": 1 / 3}),
    # By id p2, which holds q1's answer, is no hit.
    ("dpr", "main/dev", "id_top2", {"q1": 0, "q3": 1, "q4": 1}),
    ("dpr", "main/dev", "id_mrr3", {"q1": 1 / 3, "q3": 1 / 2, "q4": 1}),
    ("dpr", "main/dev", "map3", {"q1": 1 / 3, "q3": 1 / 2, "q4": (1 + 2 / 3) / 3}),
    # Of the supporting p1 and p5; p4, which is relevant but not supporting, need not be found.
    ("dpr", "main/dev", "all2", {"q4": 0}),
    ("dpr", "main/dev", "all3", {"q4": 1}),
    # q2 is a tie, which counts against; of q4's two pairs one is cut; q2 has no distractor.
    ("dpr", "main/dev", "aa", {"q1": 1, "q2": 0, "q4": 1}),
    ("dpr", "main/dev", "aa_evidence", {"q1": 0, "q4": 1}),
    ("dpr", "main/dev", "score_difference", {"q1": -0.5, "q4": 1}),
])  # fmt: skip
def test_outcomes_by_hand(by_arm, arm, question_set, metric, expected):
    rows, report = by_arm[arm]
    assert values(rows, question_set, metric) == pytest.approx(expected)
    assert report[question_set][metric] == pytest.approx(sum(expected.values()) / len(expected), abs=1e-6)


def test_yes_and_no_are_judged_by_passage_id(inputs):
    """q1 asked for a yes: its positive p1 is third with dpr; that p4 holds the word yes counts for nothing."""
    questions = list(tables.rows(inputs / "records/questions.parquet", Question))
    questions[0] = questions[0]._replace(answers=["yes"], answer_kind="yes-no")
    tables.write(inputs / "records/questions.parquet", Question, questions)
    passages = list(tables.rows(inputs / "records/passages.parquet", Passage))
    passages[3] = passages[3]._replace(text="Yes.")
    tables.write(inputs / "records/passages.parquet", Passage, passages)
    rows, report = evaluated(inputs, "dpr")
    assert values(rows, "main/dev", "mrr3")["q1"] == pytest.approx(1 / 3)
    assert [values(rows, "main/dev", f"top{k}")["q1"] for k in (1, 2, 5)] == [0, 0, 1]
    assert values(rows, "main/dev", "recall2")["q1"] == 0
    assert report["main/dev"]["n_without_answers"] == 2
    assert "n_unjudged" not in report["main/dev"]


def test_supporting_passages_are_all_to_be_found_and_are_relevant_without_positives(inputs):
    """p4 of q4."""
    ranked = [Ranked("q4", passage_id, rank, 10.0 - rank) for rank, passage_id in enumerate(("p4", "p1", "p5"), 1)]
    tables.write(inputs / "rankings" / "dpr" / "evaluate.parquet", Ranked, ranked)
    rows, _ = evaluated(inputs, "dpr")
    assert (values(rows, "main/dev", "all2"), values(rows, "main/dev", "all3")) == ({"q4": 0}, {"q4": 1})
    # Of p1 and p5 dpr has p1 among the first two.
    rest = [row for row in POSITIVES if row.question_id != "q4"]
    tables.write(inputs / "positives" / "positives.parquet", Positive, rest)
    rows, _ = evaluated(inputs, "dpr")
    assert values(rows, "main/dev", "recall2")["q4"] == 0.5


def test_the_macro_average_counts_every_relation_alike(inputs):
    """Top-2 of dpr: q1 1 and q2 0 of P19, q3 1 of P20, q4 0 of P30. Pairs: q1 aware, q2 not; q4 aware; none of P20."""
    pairs = zip(QUESTIONS, ("P19", "P19", "P20", "P30", None), strict=True)
    tables.write(inputs / "records/questions.parquet", Question, [row._replace(relation=name) for row, name in pairs])
    _, report = evaluated(inputs, "dpr")
    scores = report["main/dev"]
    assert (scores["top2"], scores["macro"]["top2"]) == (0.5, 0.5)
    assert (scores["top5"], scores["macro"]["top5"]) == (0.75, pytest.approx((0.5 + 1 + 1) / 3, abs=1e-6))
    assert (scores["aa"], scores["macro"]["aa"]) == (pytest.approx(2 / 3, abs=1e-6), (0.5 + 1) / 2)
    assert scores["macro"]["recall2"] == pytest.approx((0 + 1 + 1 / 3) / 3, abs=1e-6)
    assert scores["macro"]["relations"] == 3
    assert "macro" not in report["more/dev"], "q5 has no relation"


@pytest.mark.parametrize(("rows", "message"), [
    ([("q9", "p1", 1)], "'q9' is in none of the sets"),
    ([("q1", "p1", 1), ("q2", "p1", 1), ("q1", "p2", 2)], "not in order"),
    ([("q1", "p9", 1)], "'p9' is not in"),
])  # fmt: skip
def test_an_impossible_ranking_is_refused(inputs, rows, message):
    path = inputs / "rankings" / "bm25" / "evaluate.parquet"
    tables.write(path, Ranked, [Ranked(*row, 0.0) for row in rows])
    with pytest.raises(ValueError, match=message):
        evaluated(inputs, "bm25")


def test_scores_of_a_model_that_diverged_are_refused(inputs):
    tables.write(inputs / "pairs" / "dpr.parquet", PairScore, [PairScore("q1", "p1", "positive", float("nan"))])
    with pytest.raises(ValueError, match="a score is not a finite number"):
        evaluated(inputs, "dpr")


def test_the_matched_sentence_of_a_right_first_passage_is_judged_by_the_annotated_evidence(inputs):
    """q1's sentence overlaps the gold of 18 to 25; that of q4 ends where the gold begins; q3's first passage has no
    gold, and q5's gold is in a passage that is second."""
    tables.write(inputs / "positives" / "positives.parquet", Positive, [
        Positive("q1", "p1", "given", [Span(0, 2), Span(18, 25)]), Positive("q3", "p4", "given", None),
        Positive("q4", "p5", "given", [Span(5, 9)]), Positive("q5", "p2", "given", [Span(0, 7)]),
    ])  # fmt: skip
    matched = [
        ("q1", "p1", 1, 20, 26), ("q1", "p2", 2, 0, 3), ("q3", "p4", 1, 0, 4), ("q4", "p5", 1, 0, 5),
        ("q5", "p1", 1, 0, 7), ("q5", "p2", 2, 0, 7),
    ]  # fmt: skip
    table = inputs / "rankings" / "dpr" / SENTENCES
    tables.write(table, MatchedSentence, [MatchedSentence(*row, 0.5) for row in matched])
    rows, report = evaluated(inputs, "dpr")
    assert values(rows, "main/dev", "evidence1") == values(rows, "main/dev", "evidence_top1") == {"q1": 1, "q4": 0}
    assert (report["more/dev"]["n_evidence1"], values(rows, "more/dev", "evidence_top1")["q5"]) == (1, 0)
    assert (markdown.title("evidence1"), markdown.title("evidence_top1")) == ("evidence@1", "evidence top-1")
    tables.write(table, MatchedSentence, [])
    assert "evidence_top1" not in evaluated(inputs, "dpr")[1]["main/dev"]
