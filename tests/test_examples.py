"""Examples: the same questions and positives in every arm, and only what an arm uses in its files."""

import json
from pathlib import Path

import pytest

import stages.examples as stage
from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.records import Distractor, Example, Fold, Negative, Positive, Span
from eadpr.supervision.examples import ArmExamples, make_examples

GOLD = ArmExamples(strategy="gold", form="cut", positive="first", questions=None, seed=1, placebos=None)


def pseudo(question, passage, strategy="gold", level=0, form="cut"):
    text = f"{passage} {form} by {strategy} {level}"
    return Distractor(question, passage, strategy, level, form, text, [Span(0, 3)])


@pytest.fixture
def sources(tmp_path):
    roles = {"q1": "train", "q2": "train", "q3": "validation", "q4": "train", "q5": "annotator"}
    tables.write(tmp_path / "positives/folds.parquet", Fold, [Fold(i, role, 0) for i, role in roles.items()])
    positives = [("q1", "a"), ("q1", "b"), ("q2", "c"), ("q3", "d"), ("q5", "e"), ("dev1", "f")]
    rows = [Positive(q, p, "given", None) for q, p in positives]
    tables.write(tmp_path / "positives/positives.parquet", Positive, rows)
    mined = [("q1", "x", 1), ("q1", "y", 2), ("q1", "a", 3), ("q1", "x", 4), ("q3", "z", 1), ("q4", "z", 1)]
    tables.write(tmp_path / "negatives/negatives.parquet", Negative, [Negative(q, p, "bm25", r) for q, p, r in mined])
    rows = [
        *(pseudo("q1", "a", "gold", 1), pseudo("q1", "a", "gold", 0), pseudo("q1", "b"), pseudo("q1", "a", "answer")),
        *(pseudo("q3", "d"), pseudo("dev1", "f")),
    ]
    tables.write(tmp_path / "distractors/distractors.parquet", Distractor, rows)
    return tmp_path


def make(folder, examples, name="out"):
    out = folder / name
    count = make_examples(folder / "positives", folder / "negatives", folder / "distractors", out, examples=examples)
    return count, list(tables.rows(out / "examples.parquet", Example)), out


def test_examples(sources):
    count, rows, out = make(sources, GOLD)
    assert count == 2
    assert rows == [
        Example("q1", "train", "a", ["x", "y"], [0, 1], ["b"]),
        Example("q2", "train", "c", [], [], []),
        Example("q3", "validation", "d", ["z"], [0], []),
    ]
    used = list(tables.rows(out / "distractors.parquet", Distractor))
    expected = [("q1", "a", "gold", 1), ("q1", "a", "gold", 0), ("q3", "d", "gold", 0)]
    assert [(d.question_id, d.passage_id, d.strategy, d.level) for d in used] == expected
    assert used[0] == pseudo("q1", "a", "gold", 1)
    assert json.loads((out / "report.json").read_text()) == {
        "train": {"examples": 2, "without_positive": 1, "without_negatives": 1, "without_distractor": 1},
        "validation": {"examples": 1, "without_positive": 0, "without_negatives": 0, "without_distractor": 0},
    }


def test_an_arm_without_distractors_has_the_same_examples_and_does_not_depend_on_them(sources):
    none = GOLD.model_copy(update={"strategy": "none"})
    _, rows, out = make(sources, none)
    _, with_gold, _ = make(sources, GOLD, "gold")
    assert [row[:4] for row in rows] == [row[:4] for row in with_gold]
    assert all(row.distractors == [] for row in rows)
    files.write_json(sources / "configs/examples.json", {"examples": none.model_dump()})
    folders = {name: sources / name for name in ("positives", "negatives", "distractors")}
    tables.write(sources / "distractors/distractors.parquet", Distractor, [pseudo("q9", "x")])
    stage.main.run({"config": sources / "configs/examples.json", **folders, "out": sources / "again"})
    assert files.tree_sha256(sources / "again") == files.tree_sha256(out)


def test_each_positive_is_an_example_with_its_own_distractors(sources):
    """q1's negatives hold its positive a; neither example may have it, nor b."""
    mined = [("q1", "x"), ("q1", "b"), ("q1", "a"), ("q3", "z")]
    rows = [Negative(q, p, "bm25", rank) for rank, (q, p) in enumerate(mined, 1)]
    tables.write(sources / "negatives/negatives.parquet", Negative, rows)
    count, rows, out = make(sources, GOLD.model_copy(update={"positive": "each"}))
    assert count == 3
    assert rows == [
        Example("q1", "train", "a", ["x"], [0, 1], ["b"]), Example("q1", "train", "b", ["x"], [0], ["a"]),
        Example("q2", "train", "c", [], [], []), Example("q3", "validation", "d", ["z"], [0], []),
    ]  # fmt: skip
    used = [(d.question_id, d.passage_id, d.level) for d in tables.rows(out / "distractors.parquet", Distractor)]
    assert used == [("q1", "a", 1), ("q1", "a", 0), ("q1", "b", 0), ("q3", "d", 0)]
    report = json.loads((out / "report.json").read_text())["train"]
    assert report == {"examples": 3, "without_positive": 1, "without_negatives": 1, "without_distractor": 1}


def test_training_questions_can_be_limited_and_fewer_are_among_more(tmp_path):
    ids = [f"q{i}" for i in range(20)]
    folds = [Fold(i, "validation" if i in ("q0", "q1") else "train", 0) for i in ids]
    tables.write(tmp_path / "positives/folds.parquet", Fold, folds)
    rows = [Positive(i, "a", "given", None) for i in ids if i != "q19"]
    tables.write(tmp_path / "positives/positives.parquet", Positive, rows)
    tables.write(tmp_path / "negatives/negatives.parquet", Negative, [])
    tables.write(tmp_path / "distractors/distractors.parquet", Distractor, [])
    training_ids = {}
    for most in (3, 7, 100):
        count, rows, out = make(tmp_path, GOLD.model_copy(update={"questions": most}), f"out{most}")
        training_ids[most] = {row.question_id for row in rows if row.role == "train"}
        assert count == len(training_ids[most]) == min(most, 17)
        assert [row.question_id for row in rows if row.role == "validation"] == ["q0", "q1"]
        report = json.loads((out / "report.json").read_text())["train"]
        assert (report["left_out"], report["without_positive"]) == (17 - count, 1)
    assert training_ids[3] < training_ids[7] < training_ids[100]
    _, rows, _ = make(tmp_path, GOLD.model_copy(update={"questions": 7, "seed": 2}), "other")
    assert {row.question_id for row in rows if row.role == "train"} != training_ids[7]


def write_forms(folder: Path, had: dict[str, list[str]]) -> None:
    """Training questions, of which each has the forms `had` of gold, and of placebos where these are told."""
    tables.write(folder / "positives/folds.parquet", Fold, [Fold(i, "train", 0) for i in had])
    tables.write(folder / "positives/positives.parquet", Positive, [Positive(i, "p", "given", None) for i in had])
    rows = []
    for i, forms in had.items():
        pairs = (form.split() if " " in form else ("gold", form) for form in forms)
        rows += [pseudo(i, "p", strategy, form=form) for strategy, form in pairs]
    tables.write(folder / "distractors/distractors.parquet", Distractor, rows)


def forms_of(out: Path, strategy: str = "gold", name: str = "distractors") -> dict[str, str]:
    rows = tables.rows(out / f"{name}.parquet", Distractor)
    return {row.question_id: row.form for row in rows if row.strategy == strategy}


def test_placebos_have_the_form_of_the_distractor_beside_them(sources):
    """Placebos without one are cut; they are no levels of the examples."""
    had = {
        "filled": ["cut", "filled", "placebo cut", "placebo filled"], "lacks": ["filled", "placebo cut"],
        "cut": ["cut", "placebo cut", "placebo filled"],
        "alone": ["placebo cut", "placebo filled"], "none": ["cut"],
    }  # fmt: skip
    write_forms(sources, had)
    arm = GOLD.model_copy(update={"form": "filled", "placebos": "placebo"})
    _, rows, out = make(sources, arm)
    assert forms_of(out) == {"filled": "filled", "lacks": "filled", "cut": "cut", "none": "cut"}
    assert forms_of(out, "placebo", "placebos") == {"filled": "filled", "cut": "cut", "alone": "cut"}
    assert {row.question_id: row.distractors for row in rows} == {i: [0] * (i in forms_of(out)) for i in had}
    report = json.loads((out / "report.json").read_text())["train"]
    assert (report["without_placebo"], report["forms"]) == (2, {"cut": 2, "filled": 2})
    _, rows, out = make(sources, arm.model_copy(update={"strategy": "none"}), "none")
    assert forms_of(out) == {}
    assert set(forms_of(out, "placebo", "placebos").values()) == {"cut"}
    assert not any(row.distractors for row in rows)


def test_a_placebo_can_be_the_distractor(sources):
    """Then another one is its placebo."""
    had = {"q1": ["cut", "placebo filled", "placebo cut", "placebo_second cut", "placebo_second filled"], "q2": ["cut"]}
    write_forms(sources, had)
    of_placebos = GOLD.model_copy(update={"form": "filled", "strategy": "placebo", "placebos": "placebo_second"})
    _, rows, out = make(sources, of_placebos)
    assert forms_of(out, "placebo") == forms_of(out, "placebo_second", "placebos") == {"q1": "filled"}
    assert forms_of(out) == forms_of(out, "placebo", "placebos") == {}
    assert [row.distractors for row in rows] == [[0], []]


def test_many_lists_take_little_memory(sources, monkeypatch):
    monkeypatch.setenv("EADPR_MEMORY", "48MiB")
    monkeypatch.setattr("eadpr.supervision.examples.BLOCK", 45_000)  # 1,500 questions
    questions, mined = [f"q{i}" for i in range(2000)], [f"p{7 * k % 30}" for k in range(30)]
    write_forms(sources, {i: [] for i in questions})
    rows = [Negative(i, passage, "bm25", rank) for i in questions for rank, passage in enumerate(mined, 1)]
    tables.write(sources / "negatives/negatives.parquet", Negative, rows)
    _, rows, _ = make(sources, GOLD)
    assert [(row.question_id, row.negatives) for row in rows] == [(i, mined) for i in questions]
