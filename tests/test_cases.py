"""Case studies over the collection of `tests.evaluated`."""

import inspect
import sys
from pathlib import Path

import pytest

from eadpr.storage import tables
from eadpr.storage.records import Evidence, Question, ScoredSpan, Span
from eadpr.studies import provenance
from eadpr.studies.cases import cases, marked, won
from stages import cases as command
from tests import study_toy
from tests.evaluated import EVALUATE, QUESTIONS, evaluated, write_inputs

ARMS = ("eadpr", "dpr")


@pytest.fixture
def inputs(tmp_path):
    write_inputs(tmp_path)
    for arm in ARMS:
        evaluated(tmp_path, arm)
    spans = [ScoredSpan(0, 26, 1.0), ScoredSpan(0, 2, 0.5)]
    rows = [
        Evidence("q1", "p1", "pseudo", "Romulus", spans, [0], 0.1),
        Evidence("q1", "p1", "gold", "Romulus", spans, [1], None),
        Evidence("q1", "p1", "placebo", "Romulus", [ScoredSpan(3, 6, None)], [0], None),
    ]
    tables.write(tmp_path / "evidence.parquet", Evidence, rows)
    return tmp_path


def test_a_case_shows_both_arms_with_answer_and_evidence(inputs):
    text = cases(inputs, ARMS, "main/dev", kind="who", depth=2)
    said, _, title, _, answers, _, positive, _, *table = text.splitlines()
    assert said.startswith("Questions of type who of main/dev with an answer in the first passage: 1 by eadpr")
    assert " alone, 0 by dpr alone. Shown: 1 of the former, drawn with seed 0." in said
    assert said.endswith("evidence (pseudo, known of positives) is marked, its placebo, if any, underlined.")
    assert (title, answers) == ("## Who founded Rome?", "Answers: Romulus")
    assert positive == "Positive: <i>Rome</i><br><mark>It <u>was</u> founded by <b>Romulus</b>.</mark>"
    second = "<i>Romulus</i><br><b>Romulus</b>, a king, had a twin in 753 BC."
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in table] == [
        ["", "eadpr (first answer: rank 1)", "dpr (first answer: rank 2)"],
        ["---", "---", "---"],
        ["1", "<i>Rome</i><br><mark>It <u>was</u> founded by <b>Romulus</b>.</mark>",
         "<i>Romulus</i><br>A title with the answer counts for nothing."],
        ["2", second, second],
    ]  # fmt: skip


def test_the_strategy_chooses_what_is_marked_and_a_short_ranking_leaves_cells_empty(inputs):
    text = cases(inputs, ARMS, "main/dev", kind="who", depth=4, strategy="gold")
    assert "<mark>It</mark> <u>was</u> founded by" in text
    assert text.splitlines()[-1] == "| 4 |  |  |"


def test_the_draw_is_the_seed_s_and_without_replacement(inputs):
    assert won(inputs / "outcomes", ARMS, "main/dev") == (["q1", "q2", "q4"], [])
    all_three = cases(inputs, ARMS, "main/dev", count=9)
    assert all_three.count("## ") == 3
    assert all_three == cases(inputs, ARMS, "main/dev", count=9)
    one = {cases(inputs, ARMS, "main/dev", count=1, seed=seed).split("## ")[1].splitlines()[0] for seed in range(9)}
    assert one == {"Who founded Rome?", "when was the moon landing", "name the twin of Rome&#x27;s founder"}


def test_what_no_text_can_answer_is_judged_by_passage_id_and_called_a_hit(inputs):
    evaluated(inputs, "bm25")
    text = cases(inputs, ("bm25", "dpr"), "main/dev", kind="which", depth=1)
    assert text.startswith(
        "Questions of type which of main/dev with a hit (an answer or, where no text can hold one, a passage known to"
        " be relevant) in the first passage: 1 by bm25 alone, 0 by dpr alone."
    )
    assert "|  | bm25 (first hit: rank 1) | dpr (first hit: rank 2) |" in text
    both = cases(inputs, ("bm25", "dpr"), "main/dev")
    assert "with a hit (" in both
    assert "|  | bm25 (first answer: rank 1) | dpr (first answer: rank 3) |" in both
    assert "0 by dpr alone, 3 by eadpr alone. Shown: 0" in cases(inputs, ("dpr", "eadpr"), "main/dev")


def test_an_answer_that_every_text_holds_is_found_first_as_evaluate_finds_it(inputs):
    path = inputs / "records" / "questions.parquet"
    asked = [row._replace(answers=["\u200b"]) if row.id == "q1" else row for row in QUESTIONS]
    tables.write(path, Question, asked)
    evaluated(inputs, "eadpr")
    text = cases(inputs, ARMS, "main/dev", kind="who")
    assert "|  | eadpr (first answer: rank 1) | dpr (first answer: rank 1) |" in text


def test_an_unknown_set_and_a_cutoff_that_was_not_measured_are_named(inputs):
    with pytest.raises(ValueError, match=r"eadpr\.parquet has no top1 of nq/test; name one of sets\.evaluate$"):
        won(inputs / "outcomes", ARMS, "nq/test")
    evaluated(inputs, "dpr", settings=EVALUATE.model_copy(update={"top_k": [2]}))
    with pytest.raises(ValueError, match=r"dpr\.parquet has no top1 of main/dev; put 1 into evaluate\.top_k$"):
        won(inputs / "outcomes", ARMS, "main/dev")


def test_marks_nest_wherever_they_overlap_and_nothing_breaks_the_table():
    assert marked("ab|cd\n<e>", [Span(1, 4)], [Span(3, 6)]) == "a<b>b&#124;</b><mark><b>c</b>d </mark>&lt;e&gt;"
    assert marked("2*3_4`", [], []) == "2&#42;3&#95;4&#96;"


def test_the_command_prints_the_cases_and_writes_them_where_it_is_told_to(inputs, tmp_path, monkeypatch):
    study_toy.measured(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["cases.py", "eadpr", "dpr", "--out", "docs"])
    given = {"question_set": "main/dev", "kind": "who", "count": 1, "depth": 2, "seed": 0, "collection": None}
    given |= {"params": Path("params.yaml")}
    printed = command.main(*ARMS, **given, out=None)
    assert printed.startswith("# eadpr against dpr\n\nQuestions of type who of main/dev")
    assert not Path("docs").exists()
    with pytest.raises(ValueError, match=r"^nosuch was not evaluated on atlas; what was: dpr, eadpr$"):
        command.main("eadpr", "nosuch", **given, out=None)
    with pytest.raises(ValueError, match="--type whose: no such type; known are who, when"):
        command.main(*ARMS, **given | {"kind": "whose"}, out=None)
    assert command.main(*ARMS, **given, out=Path("docs")) == "cases: docs/atlas/cases-eadpr-dpr.md"
    written = Path("docs/atlas/cases-eadpr-dpr.md").read_text(encoding="utf-8")
    assert written.startswith("# eadpr against dpr\n\n`python -m stages.cases eadpr dpr --out docs`\n\n")
    assert provenance.read(written).said in written
    assert printed.split("\n\n", 1)[1].strip() in written
    assert inspect.signature(command.main).parameters["out"].default.default is None
