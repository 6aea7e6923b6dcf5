"""Pair scores: which forms of a positive are scored, what masking removes, and that scores are the encoders' own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.runtime.section import Sets
from eadpr.search.config import Probe
from eadpr.search.encode import embed
from eadpr.search.probe import probe
from eadpr.storage import tables
from eadpr.storage.records import Distractor, PairScore, Passage, Positive, Span
from eadpr.supervision.probed import mask_answers
from eadpr.text.answers import has_answer
from eadpr.training.encoder import load
from tests import small_collection as small
from tests import training_toy

FILLER = " ".join(["w9"] * 30)
PASSAGES = [
    Passage("p0", "ada", "ada was born in london . paris w1 w2", None),
    Passage("p1", "ada", "w3 w4 capital 1912", None),
    Passage("late", "w5", f"w6 {FILLER} paris . london", None),  # the answer is beyond 24 tokens
    Passage("only", "w7", "paris", None),
    Passage("regex", "", "w1 1912 w2 1913 w3", None),
]
QUESTIONS = [
    small.question("train", "where", ["paris"]),
    small.question("full", "where was ada born", ["london", "w2"]),
    small.question("plain", "where was ada", ["rome"]),
    small.question("late", "where w6", ["paris"]),
    small.question("only", "capital", ["paris"]),
    small.question("regex", "where", [r"19\d\d"], "regex"),
    small.question("none", "where", ["paris"]),
]
POSITIVES = [
    Positive("train", "p0", "given", None), Positive("full", "p0", "given", None),
    Positive("full", "p1", "given", None), Positive("plain", "p1", "bm25", None),
    Positive("late", "late", "given", None), Positive("only", "only", "given", None),
    Positive("regex", "regex", "given", [Span(3, 7)]),
]  # fmt: skip
DISTRACTORS = [
    Distractor("train", "p0", "pseudo", 0, "cut", "w1", []),
    Distractor("full", "p0", "gold", 0, "cut", "w1", []),
    Distractor("full", "p0", "pseudo", 1, "cut", "w2", []),
    Distractor("full", "p0", "pseudo", 0, "cut", "paris w1 w2", []),
    Distractor("full", "p0", "pseudo", 0, "filled", "w9", []),
    Distractor("full", "p0", "placebo_words", 0, "cut", "ada in london . paris w1 w2", []),
    Distractor("full", "p1", "pseudo", 0, "cut", "w4", []),
    Distractor("late", "late", "pseudo", 0, "cut", f"w6 {FILLER} paris .", []),
    Distractor("late", "late", "placebo", 0, "cut", f"w6 {FILLER} paris . london", []),
]
PROBE = Probe(annotated=False, strategy="pseudo", also=["gold"], placebos=["placebo", "placebo_words"])


def run(folder, **changes):
    records = small.write_records(folder / "records", PASSAGES, QUESTIONS, train=1)
    positives = small.write_positives(folder / "positives", POSITIVES, DISTRACTORS)
    model = small.write_model(folder / "model")
    tables_in = (positives / "positives.parquet", positives / "distractors.parquet")
    out = folder / "pairs.parquet"
    how = {"settings": PROBE.model_copy(update=changes), "sets": Sets(**small.SETS), "hardware": training_toy.MACHINE}
    count = probe(records, *tables_in, model, out, **how)
    return count, list(tables.rows(out, PairScore)), model


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    return run(tmp_path_factory.mktemp("probe"))


def test_pairs_without_annotated_evidence_can_be_left_out(tmp_path):
    count, rows, _ = run(tmp_path, annotated=True)
    assert (count, {row.question_id for row in rows}) == (1, {"regex"})


def test_which_pairs_have_which_forms(scored):
    """First positives of toy/dev are scored, `pseudo` and `gold` at level 0; `only` has nothing left once masked."""
    count, rows, _ = scored
    expected = {
        ("full", "p0"): "positive distractor gold placebo_words masked", ("plain", "p1"): "positive",
        ("late", "late"): "positive distractor_cut placebo_cut masked_cut", ("only", "only"): "positive",
        ("regex", "regex"): "positive masked",
    }  # fmt: skip
    forms = [(*pair, form) for pair, pair_forms in expected.items() for form in pair_forms.split()]
    assert [tuple(row[:3]) for row in rows] == forms
    assert count == 5


def test_scores_are_dot_products_of_single_encodings(scored):
    _, rows, model = scored
    texts = {
        ("full", "positive"): ("ada", "ada was born in london . paris w1 w2"),
        ("full", "distractor"): ("ada", "paris w1 w2"), ("full", "gold"): ("ada", "w1"),
        ("full", "placebo_words"): ("ada", "ada in london . paris w1 w2"),
        ("full", "masked"): ("ada", "ada was born in. paris w1"), ("plain", "positive"): ("ada", "w3 w4 capital 1912"),
        ("only", "positive"): ("w7", "paris"), ("regex", "positive"): ("", "w1 1912 w2 1913 w3"),
        ("regex", "masked"): ("", "w1 w2 w3"),
    }  # fmt: skip
    questions, passages = load(model, "question"), load(model, "passage")
    queries = {q.id: embed(questions, questions.question_ids([q.question]))[0] for q in QUESTIONS}
    scores = {(r.question_id, r.variant): r.score for r in rows}
    for (question, variant), (title, text) in texts.items():
        vector = embed(passages, passages.passage_ids([title], [text]))[0]
        assert scores[question, variant] == pytest.approx(float(np.dot(queries[question], vector)), rel=1e-5, abs=1e-5)
    for variant in ("distractor_cut", "placebo_cut", "masked_cut"):
        assert scores["late", variant] == scores["late", "positive"]


@pytest.mark.parametrize(("text", "answers", "kind", "expected"), [
    ("He was born in Paris, France.", ["Paris"], "string", "He was born in, France."),
    ("Paris, then paris and PARIS again", ["Paris"], "string", ", then and again"),
    ("a Paris b London c", ["London", "Paris"], "string", "a b c"),
    ("in New New York York now", ["New York"], "string", "in now"),  # removal brings about another one
    ("12 May 1912", [r"\d+"], "regex", "May"),
    ("no such place", ["Paris"], "string", None),
    ("Paris", ["Paris"], "string", None),
    ("anything", [], "string", None),
    ("a b", ["("], "regex", None),
])  # fmt: skip
def test_masked(text, answers, kind, expected):
    assert mask_answers(text, answers, kind) == expected


@given(
    st.lists(st.sampled_from(["a", "b", "c", "A", ",", "é", " "]), max_size=12).map(" ".join),
    st.lists(st.sampled_from(["a", "a b", "b c a", "é", "c ,"]), max_size=3),
)
def test_what_is_masked_holds_no_answer(text, answers):
    masked = mask_answers(text, answers, "string")
    if masked is not None:
        assert has_answer(answers, text)
        assert not has_answer(answers, masked)
        assert len(masked) < len(text)
