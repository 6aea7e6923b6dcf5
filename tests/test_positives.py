"""Positives as given or from BM25, and folds by whole titles."""

import hashlib
import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.rankings import MatchedSentence, write_rankings
from eadpr.storage.records import Context, Fold, Positive, Question, Ranked, Span
from eadpr.supervision.positives import Positives, carve, find_positives
from stages.positives import main as stage
from tests.toy_records import context, question, write_ranking, write_records

SETTINGS = Positives(validation=0.25, seed=3)
SETS = Sets(train=["toy/train"], evaluate=["toy/dev"], annotator=["toy/qa"])
PASSAGES = [
    ("p1", "Ada", "Ada was born in London."), ("p2", "Ada", "Ada wrote notes."), ("p3", "Bea", "Bea lives in Paris."),
    ("p4", "", "London and Paris are cities."), ("p5", "Cyd", "Cyd met Bea."),
]  # fmt: skip
QUESTIONS = [
    question("t0", ["London"]), question("t1", ["Paris"]), question("t2", ["Rome"]), question("t3", []),
    question("d0", [r"Lon\w+"], "regex"), question("d1", ["notes"]), question("q0", ["Bea"]), question("q1", ["Ada"]),
]  # fmt: skip
MEMBERS = {"toy/train": ["t3", "t2", "t1", "t0"], "toy/dev": ["d0", "d1"], "toy/qa": ["q0", "q1", "t0"]}
GOLD = [Span(16, 22)]
CONTEXTS = [
    context("t0", "p4", 1), context("t0", "p1", 0, gold=GOLD), context("t0", "p1", 2),
    context("t0", "p3", 0, role="hard_negative"), context("d1", "p3", 0), context("q0", "p5", 0),
    context("q1", "p3", 0, role="negative"),
]  # fmt: skip
RANKING = {
    "train": {"t0": ["p3", "p4"], "t1": ["p1", "p4", "p3"], "t2": ["p1", "p2"], "t3": ["p1"]},
    "evaluate": {"d0": ["p2", "p4", "p1"]},
}


@pytest.fixture
def folders(tmp_path):
    rows = {"passages": PASSAGES, "questions": QUESTIONS, "sets": MEMBERS, "contexts": CONTEXTS}
    records = write_records(tmp_path / "records", **rows)
    return records, write_ranking(tmp_path / "bm25", **RANKING), tmp_path / "out"


@pytest.mark.parametrize(("changes", "message"), [
    ({"train": ["toy/dev"]}, r"'d0' and 1 more are in sets\.train \(toy/dev\) and in sets\.evaluate"),
    ({"annotator": ["toy/dev"]}, r"'d0' and 1 more are in sets\.annotator \(toy/dev\) and in sets\.evaluate"),
    ({"validation": ["toy/dev"]}, r"'d0' and 1 more are in sets\.validation \(toy/dev\) and in sets\.evaluate"),
    ({"validation": ["toy/qa"]}, r"'t0' and 0 more are in sets\.train .*\(toy/qa\); validate with other"),
])  # fmt: skip
def test_questions_are_not_measured_on_what_is_learnt_from(folders, changes, message):
    records, ranking, out = folders
    sets = SETS.model_copy(update=changes)
    with pytest.raises(ValueError, match=message):
        find_positives(records, ranking, out, positives=SETTINGS, sets=sets)
    assert not out.exists()


def test_positives_folds_and_report(folders):
    """Given ones come first in order, then the best ranked with an answer; folds hold the learners with a positive."""
    records, ranking, out = folders
    count = find_positives(records, ranking, out, positives=SETTINGS, sets=SETS)
    positives = list(tables.rows(out / "positives.parquet", Positive))
    assert count == len(positives)
    assert positives == [
        Positive("t0", "p1", "given", GOLD), Positive("t0", "p4", "given", None), Positive("t1", "p4", "bm25", None),
        Positive("d0", "p4", "bm25", None), Positive("d1", "p3", "given", None), Positive("q0", "p5", "given", None),
    ]  # fmt: skip
    report = json.loads((out / "report.json").read_text())
    assert report["train"] == {
        "questions": 4, "with_given_positives": 1, "with_bm25_positive": 1, "without_positive": 2,
        "given_positives_hold_no_answer": 0, "positives": 3,
    }  # fmt: skip
    assert report["evaluate"]["given_positives_hold_no_answer"] == 1
    assert (report["evaluate"]["with_bm25_positive"], report["annotator"]["without_positive"]) == (1, 1)
    assert report["folds"] == {"train": 1, "validation": 1, "annotator": 1}
    folds = list(tables.rows(out / "folds.parquet", Fold))
    assert [fold.question_id for fold in folds] == ["t0", "t1", "q0"]
    assert sorted(fold.role for fold in folds[:2]) == ["train", "validation"]
    assert folds[2].role == "annotator"


def test_the_stage_says_that_given_positives_hold_no_answer(folders):
    """d1's answer stands in no given positive."""
    records, ranking, out = folders
    sets, paths = Sets(train=["toy/dev"], evaluate=[], annotator=[]), {"records": records, "ranking": ranking}
    message = stage.main(SETTINGS, sets, **paths, out=out)
    assert message.endswith("; the given positives of 1 of 2 training questions hold no answer")
    message = stage.main(SETTINGS, SETS, **paths, out=out)
    assert message == "positives: 6 positive passages"


def test_sets_that_are_named_validate_and_nothing_is_carved(folders):
    """d0 has BM25's positive, of the training's title too; d1 a given one; t0 and t1 stay training questions."""
    records, ranking, out = folders
    sets = Sets(train=["toy/train"], evaluate=[], annotator=["toy/qa"], validation=["toy/dev"])
    find_positives(records, ranking, out, positives=SETTINGS, sets=sets)
    folds = {fold.question_id: fold.role for fold in tables.rows(out / "folds.parquet", Fold)}
    assert folds == {
        "t0": "train", "t1": "train", "d0": "validation", "d1": "validation", "q0": "annotator",
    }  # fmt: skip
    report = json.loads((out / "report.json").read_text())
    assert (report["validation"]["questions"], report["folds"]["validation"]) == (2, 2)


def test_questions_to_validate_with_are_ranked_with_those_of_training(folders):
    """Each is asked in one part: training and validation in train, those evaluated on in evaluate."""
    records, _, out = folders
    ids_by_part: dict[str, list[str]] = {"train": [], "evaluate": []}

    def rank(some: list[Question], part: str) -> tuple[pa.Table, pa.Table]:
        """Ranks two passages, the first without a sentence."""
        ids_by_part[part] += [q.id for q in some]
        ranked = [Ranked(q.id, p, r, 3.0 - r) for q in some for r, p in ((1, "x"), (2, "y"))]
        matched = [MatchedSentence(q.id, "y", 2, 0, 5, 1.0) for q in some]
        return tables.as_table(Ranked, ranked), tables.as_table(MatchedSentence, matched)

    sets = Sets(train=["toy/train"], evaluate=["toy/qa"], annotator=[], validation=["toy/dev"])
    tables.write(records / "contexts.parquet", Context, [context("q0", "x", 0, "own"), context("t0", "y", 0, "own")])
    write_rankings(records, out, rank, {".": Ranked, "sentences": MatchedSentence}, sets=sets, block=2)
    assert ids_by_part == {"train": ["t0", "t1", "t2", "t3", "d0", "d1"], "evaluate": ["t0", "q0", "q1"]}
    ranked = [row[:3] for row in tables.rows(out / "evaluate.parquet", Ranked)]
    assert ranked == [("t0", "x", 1), ("q0", "y", 1), ("q1", "x", 1), ("q1", "y", 2)], "without own documents"
    matched = [row[:3] for row in tables.rows(out / "sentences/evaluate.parquet", MatchedSentence)]
    assert matched == [("q0", "y", 1), ("q1", "y", 2)]


def test_questions_of_one_title_are_in_one_fold(tmp_path):
    """Two passages of each of ten titles, a question of each."""
    numbers = range(20)
    records = write_records(
        tmp_path / "records", passages=[(f"p{i}", f"T{i // 2}", "Rome.") for i in numbers],
        questions=[question(f"q{i}", ["Rome"]) for i in numbers],
        sets={"toy/train": [f"q{i}" for i in numbers]}, contexts=[context(f"q{i}", f"p{i}", 0) for i in numbers],
    )  # fmt: skip
    sets = Sets(train=["toy/train"], evaluate=[], annotator=[])
    find_positives(records, write_ranking(tmp_path / "bm25"), tmp_path / "out", positives=SETTINGS, sets=sets)
    folds = list(tables.rows(tmp_path / "out" / "folds.parquet", Fold))
    assert all(folds[i][1:] == folds[i + 1][1:] for i in numbers[::2])
    assert folds == carved({f"q{i}": f"title T{i // 2}" for i in numbers}, SETTINGS.validation, SETTINGS.seed)


def test_no_training_question_with_a_positive_is_an_error_and_leaves_the_earlier_output(folders):
    records, ranking, out = folders
    out.mkdir()
    (out / "earlier").touch()
    sets = SETS.model_copy(update={"train": ["toy/none"]})
    members = {**MEMBERS, "toy/none": ["t2", "t3"]}
    write_records(records, passages=PASSAGES, questions=QUESTIONS, sets=members, contexts=CONTEXTS)
    with pytest.raises(ValueError, match=r"none of the 2 training questions \(toy/none\) has a positive passage"):
        find_positives(records, ranking, out, positives=SETTINGS, sets=sets)
    assert [p.name for p in out.iterdir()] == ["earlier"]


def carved(titles: dict[str, str], validation: float, seed: int = 0) -> list[Fold]:
    """Folds of questions, in their order; `titles` maps a question to its title."""
    sizes = Counter(titles.values())
    order = sorted(sizes, key=lambda title: hashlib.sha256(f"{seed}\0{title}".encode()).hexdigest())
    places = carve(np.array([sizes[title] for title in order], np.int32), validation)
    by_title = {title: place for title, *place in zip(order, *(part.tolist() for part in places), strict=True)}
    roles = ("train", "validation")
    return [Fold(i, roles[by_title[title][0]], by_title[title][1]) for i, title in titles.items()]


@given(st.lists(st.integers(0, 9), max_size=60), st.sampled_from([0.0, 0.05, 0.3, 0.9]), st.integers(0, 3))
def test_titles_are_never_split(numbers, validation, seed):
    titles = {f"q{i}": f"title {n}" for i, n in enumerate(numbers)}
    folds = carved(titles, validation, seed)
    assert len({(titles[fold.question_id], fold.role, fold.half) for fold in folds}) == len(set(numbers))
    roles = Counter(fold.role for fold in folds)
    if len(set(numbers)) > 1:
        assert bool(roles["validation"]) == bool(validation)
        assert roles["train"]


def test_shares_and_halves_are_kept():
    titles = {f"q{i}": f"title {i // 4}" for i in range(2_000)}
    folds = carved(titles, 0.05)
    assert [fold.question_id for fold in folds] == list(titles)
    assert Counter(fold.role for fold in folds) == {"train": 1_900, "validation": 100}
    for role in ("train", "validation"):
        halves = Counter(fold.half for fold in folds if fold.role == role)
        assert abs(halves[0] - halves[1]) <= 4


def test_titles_that_are_all_too_large_give_the_smallest_and_one_is_all_training():
    titles = {f"q{i}": "big" if i < 60 else "small" for i in range(100)}
    assert {titles[f.question_id] for f in carved(titles, 0.05) if f.role == "validation"} == {"small"}
    assert [fold.role for fold in carved({"a": "x", "b": "x"}, 0.5)] == ["train", "train"]


def test_select_takes_the_questions_order_and_each_once_and_names_what_there_is(folders):
    path = folders[0] / "question_sets.parquet"
    assert read_question_ids(path, ["toy/train"]) == ["t0", "t1", "t2", "t3"]
    assert read_question_ids(path, ["toy/qa", "toy/train"]) == ["t0", "t1", "t2", "t3", "q0", "q1"]
    assert read_question_ids(path, []) == []
    assert [q.id for q in read_questions(folders[0] / "questions.parquet", ["q0", "t1"])] == ["t1", "q0"]
    with pytest.raises(ValueError, match=r"'toy/tset' is not in .*\(it holds toy/dev, toy/qa, toy/train\)"):
        read_question_ids(folders[0] / "question_sets.parquet", ["toy/train", "toy/tset"])
