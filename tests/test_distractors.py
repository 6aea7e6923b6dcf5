"""Distractors and placebos: the text without the evidence or a piece like it, and every reason why there is none."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.storage import tables
from eadpr.storage.records import Distractor, Evidence, Passage, Question, ScoredSpan, Span
from eadpr.supervision.config import Distractors
from eadpr.supervision.distractors import write_distractors
from eadpr.supervision.evidence import Annotate
from eadpr.supervision.forms import cut
from eadpr.supervision.manifest import Manifest, Prompt
from eadpr.supervision.pairs import Pair
from eadpr.supervision.placebos import choose_placebos
from eadpr.text.answers import answer_spans, has_answer
from eadpr.text.spans import sentences, without
from tests.supervision_toy import EVIDENCE, write_collection

CUT = Distractors(forms=["cut"], seed=0)
TEXT = "Ann liked tea. She was born in Rome. Rome is old."


def pair(text: str = TEXT, answers=("Rome",), kind: str = "string") -> Pair:
    question = Question("q", "Where?", list(answers), kind, None, None, None, None)
    return Pair(question, Passage("p", "Rome", text, None), None)


def evidence(*spans: Span, chosen: list[int], target: str = "Rome", strategy: str = "pseudo") -> Evidence:
    return Evidence("q", "p", strategy, target, [ScoredSpan(*span, None) for span in spans], chosen, None)


def test_a_distractor_lacks_all_chosen_spans():
    expected = ("kept", Distractor("q", "p", "pseudo", 0, "cut", "Ann liked tea. Rome is old.", [Span(15, 36)]), ())
    assert cut(pair(), evidence(Span(0, 14), Span(15, 36), Span(37, 49), chosen=[1])) == expected
    outcome = cut(pair(), evidence(Span(0, 14), Span(15, 36), Span(37, 49), chosen=[1, 2], strategy="sentence"))
    assert (outcome.reason, outcome.distractor.text) == ("kept", "Ann liked tea.")
    outcome = cut(pair("Mayors. - A, 1985 - Ann of Rome, 90"), evidence(Span(8, 35), chosen=[0]))
    assert (outcome.reason, outcome.distractor.text) == ("kept", "Mayors."), "7 of 35 are a fifth"


@pytest.mark.parametrize(("qa_pair", "row", "reason"), [
    *((pair(), evidence(Span(15, 36), chosen=[0], strategy=name), "holds_answer")
      for name in ("sentence", "window", "answer")),
    (pair(answers=[r"r.me"], kind="regex"), evidence(Span(15, 36), chosen=[0], strategy="answer"), "holds_answer"),
    (pair("Only Rome."), evidence(Span(0, 10), chosen=[0]), "little_left"),
    (pair("Mayors. - A, 1985 - Ann of Rome, 1990"), evidence(Span(8, 37), chosen=[0]), "little_left"),  # 7 of 37
    (pair(), evidence(chosen=[]), "no_evidence"),
    (pair(answers=[]), evidence(Span(0, 14), chosen=[], target=""), "no_answer"),
])  # fmt: skip
def test_reasons(qa_pair, row, reason):
    assert cut(qa_pair, row) == (reason, None, ())


@pytest.mark.parametrize(("qa_pair", "row", "reason"), [
    (pair(), evidence(Span(0, 14), chosen=[0]), "kept"),
    (pair(), evidence(chosen=[]), "no_placebo"),
    (pair(answers=[]), evidence(chosen=[], target=""), "no_answer"),
    # The answer is Rome, but only where tea was spoken of before.
    (pair(answers=[r"(?<=tea.*)Rome"], kind="regex"), evidence(Span(0, 14), chosen=[0]), "answer_lost"),
    (pair(answers=["Oslo"]), evidence(Span(0, 14), chosen=[0]), "kept"),  # none was there
])  # fmt: skip
def test_what_a_placebo_is_taken_from_still_holds_the_answer(qa_pair, row, reason):
    counted, distractor, _ = cut(qa_pair, row._replace(strategy="placebo"))
    assert counted == reason
    assert (distractor and distractor.text) == ("She was born in Rome. Rome is old." if reason == "kept" else None)


def written(tmp_path: Path, rows: list[Evidence], settings: Distractors) -> tuple[Path, int]:
    records, positives = write_collection(tmp_path)
    evidence, out = tmp_path / "evidence.parquet", tmp_path / "distractors"
    tables.write(evidence, Evidence, rows)
    return out, write_distractors(settings, records=records, positives=positives, evidence=evidence, out=out)


def test_the_stage_counts_by_strategy_and_question_set(tmp_path):
    """The town's sentence is taken from q0 and q4, another one from q1; q2 has no evidence."""
    rows = [
        Evidence("q0", "p0", "pseudo", "Arlo", [ScoredSpan(0, 19, 1.0), ScoredSpan(20, 46, 2.0)], [1], 0.1),
        Evidence("q0", "p0", "answer", "Arlo", [ScoredSpan(41, 45, None)], [0], None),
        Evidence("q1", "p1", "sentence", "Brund", [ScoredSpan(0, 19, 2.0)], [0], 0.1),
        Evidence("q2", "p2", "pseudo", "Cassel", [], [], None),
        Evidence("q4", "p4", "pseudo", "Elmar", [ScoredSpan(0, 19, 1.0), ScoredSpan(20, 47, 2.0)], [1], 0.1),
    ]
    out, count = written(tmp_path, rows, CUT)
    assert count == 3
    distractors = list(tables.rows(out / "distractors.parquet", Distractor))
    assert [(d.question_id, d.strategy) for d in distractors] == [("q0", "pseudo"), ("q0", "answer"), ("q4", "pseudo")]
    assert distractors[0].text == "Person 0 liked tea. Nobody knows why."
    assert distractors[1].text == "Person 0 liked tea. Person 0 was born in. Nobody knows why."
    assert json.loads((out / "report.json").read_text()) == {
        "toy/dev": {"pseudo": {"cut": {"pairs": 1, "kept": 1, "dropped": {}}}},
        "toy/train": {
            "answer": {"cut": {"pairs": 1, "kept": 1, "dropped": {}}},
            "pseudo": {"cut": {"pairs": 2, "kept": 1, "dropped": {"no_evidence": 1}}},
            "sentence": {"cut": {"pairs": 1, "kept": 0, "dropped": {"holds_answer": 1}}},
        },
    }


@pytest.mark.parametrize("forms", [["filled"], ["cut", "cut"]])
def test_settings_are_checked(forms):
    with pytest.raises(ValueError, match=r"must hold cut|names one twice"):
        Distractors(forms=forms, seed=0)


ANN = "Ann liked tea. She was born in Rome, Italy. Rome is old. Nobody knows why she left."


@pytest.mark.parametrize(("text", "answers", "evidence", "words", "inside"), [
    # Rome stands in it twice: two words in a row, elsewhere and in the evidence.
    ("Ann left. Born in Rome. Rome is old.", ["Rome"], "Born in Rome.", {"Ann left", "is old"}, {"Born in"}),
    # Of two answers, three words.
    ("We saw old Ann. In New York or Rome she sang.", ["New York", "Rome"], "In New York or Rome she sang.",
     {"We saw old", "saw old Ann"}, {None}),
    # A word that an answer is a part of is no word of a placebo, nor is one without letter or digit.
    ("He saw Rome's gate – once. Rome it was.", ["Rome"], "Rome it was.", {"He saw", "gate – once"}, {"it was"}),
    ("It is in Rome. He is (not).", ["Rome"], "It is in Rome.", {"He", "is", "not"}, {"It", "is", "in"}),
    # A sentence has not as many words.
    ("Ann left. Born in Ann Arbor, Ann Arbor.", ["Ann Arbor"], "Born in Ann Arbor, Ann Arbor.", {None}, {None}),
    ("No such place. It is here.", ["Rome"], "It is here.", {None}, {None}),
])  # fmt: skip
def test_as_many_words_in_a_row_as_the_answers_have(text, answers, evidence, words, inside):
    """Wherever they may be drawn; the punctuation at their ends stays where it is."""
    places = answer_spans(answers, text)
    span = Span(text.index(evidence), text.index(evidence) + len(evidence))
    cut = [choose_placebos(Passage("p", "", text, None), [span], places, key=str(i)) for i in range(99)]
    for kind, expected in (("placebo_words", words), ("placebo_inside", inside)):
        assert {pieces[kind] and text[pieces[kind].start : pieces[kind].end] for pieces in cut} == expected, kind


WORDS = ["ann", "bob", "rome", "oslo", "ate", "is", "a", "very-large", "(old)", "1912,", "+"]
PROSE = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9), min_size=1, max_size=6)


@given(
    PROSE, st.lists(st.sampled_from(["rome", "oslo", "very", "1912", "is a", "+"]), min_size=1, max_size=2), st.data()
)
def test_what_is_cut_is_neither_evidence_nor_answer(prose, answers, data):
    """The text that remains holds answers and evidence as before, and no sentence to cut is nearer in length."""
    text = " ".join(" ".join(words).capitalize() + "." for words in prose)
    cuts = sentences(text)
    chosen = data.draw(st.lists(st.sampled_from(cuts), min_size=1, max_size=2, unique=True))
    places = answer_spans(answers, text)
    placebos = choose_placebos(Passage("p", "", text, None), chosen, places, key="q")

    def free(span: Span, *blocked: Span) -> bool:
        return not any(set(range(*span)) & set(range(*block)) for block in blocked)

    for kind, piece in placebos.items():
        if piece is None:
            continue
        remainder = without(text, [piece])
        assert has_answer(answers, remainder) == has_answer(answers, text)
        assert free(piece, *places)
        assert free(piece, *chosen) == (kind != "placebo_inside")
        if kind != "placebo_inside":
            assert all(text[start:end] in remainder for start, end in chosen)
        if kind in ("placebo_words", "placebo_inside"):
            assert any(cut.start <= piece.start and piece.end <= cut.end for cut in cuts)
            answer_words = sum(len(re.findall(r"\S*\w\S*", text[start:end])) for start, end in places)
            assert len(re.findall(r"\S*\w\S*", text[piece.start : piece.end])) == answer_words
    length = sum(end - start for start, end in chosen)
    may_be = [cut for cut in cuts if free(cut, *places, *chosen) and length / 2 <= cut.end - cut.start <= 2 * length]
    nearest = sorted(may_be, key=lambda cut: (abs(cut.end - cut.start - length), cut.start))
    assert [placebos["placebo"], placebos["placebo_second"]] == [*nearest, None, None][:2]


def test_rows_of_placebos_stand_where_the_settings_have_them():
    """Placebos may stand before the rows of the evidence that they are made from; a missing one chooses nothing."""
    strategies = ["placebo_words", "gold", "placebo"]
    settings = EVIDENCE.model_copy(update={"strategies": strategies, "placebo_of": "gold"})
    question = Question("q", "Where was Ann born?", ["Rome"], "string", None, None, None, None)
    annotate = Annotate(settings, Manifest("none", Prompt("", lowercase=True), [], {}), lambda *_: np.zeros(0))
    rows = list(annotate([Pair(question, Passage("p", "Ann", ANN, None), gold) for gold in ([Span(31, 35)], None)]))
    assert [row.strategy for row in rows] == strategies * 2
    expected = [["She was born in Rome, Italy."], ["Nobody knows why she left."]]
    assert [[ANN[start:end] for start, end in row.chosen_spans] for row in rows][1:3] == expected
    assert ({row.target for row in rows}, [row.chosen for row in rows[3:]]) == ({"Rome"}, [[], [], []])


@pytest.mark.parametrize(("strategies", "placebo_of", "message"), [
    (["gold", "placebo"], "pseudo", "placebo_of: 'pseudo' is not in strategies, but the placebos there .placebo. need"),
    (["placebo", "placebo"], "pseudo", "names one twice"),
    (["gold"], "placebo", "Input should be 'pseudo', 'gold'"),
])  # fmt: skip
def test_settings_that_do_not_fit_each_other(strategies, placebo_of, message):
    with pytest.raises(ValueError, match=message):
        type(EVIDENCE).model_validate(EVIDENCE.model_dump() | {"strategies": strategies, "placebo_of": placebo_of})
