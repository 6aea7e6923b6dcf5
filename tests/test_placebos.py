"""Placebos: which piece of a passage is like its evidence or its answers and neither, by passages that can be seen."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.storage.records import Passage, Question, Span
from eadpr.supervision.annotator_manifest import Manifest, Prompt
from eadpr.supervision.evidence import Annotate
from eadpr.supervision.pairs import Pair
from eadpr.supervision.placebos import choose_placebos, draw_run, runs
from eadpr.supervision.spans import sentences, without
from eadpr.text.answers import answer_spans, has_answer
from tests.supervision_toy import EVIDENCE

ANN = "Ann liked tea. She was born in Rome, Italy. Rome is old. Nobody knows why she left."


def found(text: str, answers: list[str], *evidence: str, segmenter: str = "sentence") -> dict[str, str | None]:
    """The pieces' texts by kind; `evidence` are parts of the text."""
    spans = [Span(text.index(part), text.index(part) + len(part)) for part in evidence]
    held = answer_spans(answers, text)
    cut = choose_placebos(Passage("p", "", text, None), spans, held, key="q", segmenter=segmenter)
    return {kind: piece and text[piece.start : piece.end] for kind, piece in cut.items()}


def test_the_second_placebo_is_the_next_nearest_and_another():
    text = "Ann had tea. Nobody saw her. Bob was in Rome. Nobody knows why she left. All of this was so very long ago."
    cut = found(text, ["Rome"], "Bob was in Rome.")
    assert (cut["placebo"], cut["placebo_second"]) == ("Nobody saw her.", "Ann had tea.")
    cut = found(ANN, ["Rome"], "She was born in Rome, Italy.")
    assert (cut["placebo"], cut["placebo_second"]) == ("Nobody knows why she left.", "Ann liked tea.")
    assert found("Ann had tea. Bob was in Rome.", ["Rome"], "Bob was in Rome.")["placebo_second"] is None


def test_a_sentence_of_like_length_is_taken_where_one_that_is_not_lies_nearer():
    """Beside evidence of 16 characters 7 are nearer than 29, but less than half."""
    text = "Abc ef. Bob was in Rome. Nobody knows a reason or why."
    assert found(text, ["Rome"], "Bob was in Rome.")["placebo"] == "Nobody knows a reason or why."


def test_evidence_that_is_a_clause_has_a_clause_for_placebo():
    text = "Ann was born in the old town of Rome, which few people knew, and she left it for good, as many others did."
    evidence = "Ann was born in the old town of Rome,"
    assert found(text, ["Rome"], evidence)["placebo"] is None
    assert found(text, ["Rome"], evidence, segmenter="clause")["placebo"] == "and she left it for good,"


@pytest.mark.parametrize(
    ("text", "answers", "evidence", "words", "inside"),
    [
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
    ],
)  # fmt: skip
def test_as_many_words_in_a_row_as_the_answers_have(text, answers, evidence, words, inside):
    """Wherever they may be drawn; the punctuation at their ends stays where it is."""
    held = answer_spans(answers, text)
    span = Span(text.index(evidence), text.index(evidence) + len(evidence))
    cut = [
        choose_placebos(Passage("p", "", text, None), [span], held, key=str(i), segmenter="sentence") for i in range(99)
    ]
    for kind, expected in (("placebo_words", words), ("placebo_inside", inside)):
        assert {one[kind] and text[one[kind].start : one[kind].end] for one in cut} == expected, kind


def test_the_place_of_words_is_the_pairs():
    text = "A b c d e f g h i j k l m n o p q r s t."
    places = runs(text, [Span(0, len(text))], [], 2)
    assert len(places) == 19
    keys = [f"q{i}\0p" for i in range(400)]
    assert {draw_run(text, places, key) for key in keys} == {draw_run(text, [place], "") for place in places}
    assert [draw_run(text, places, key) for key in keys] == [draw_run(text, places, key) for key in keys]


WORDS = ["ann", "bob", "rome", "oslo", "ate", "is", "a", "very-large", "(old)", "1912,", "+"]
PROSE = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9), min_size=1, max_size=6)


@given(
    PROSE, st.lists(st.sampled_from(["rome", "oslo", "very", "1912", "is a", "+"]), min_size=1, max_size=2), st.data()
)
def test_what_is_cut_is_neither_evidence_nor_answer(prose, answers, data):
    """Against the definition: what is left holds the answers as before and the evidence whole, and no sentence that may
    be cut is nearer in length."""
    text = " ".join(" ".join(words).capitalize() + "." for words in prose)
    cuts = sentences(text)
    chosen = data.draw(st.lists(st.sampled_from(cuts), min_size=1, max_size=2, unique=True))
    held = answer_spans(answers, text)
    made = choose_placebos(Passage("p", "", text, None), chosen, held, key="q", segmenter="sentence")

    def free(span: Span, *taken: Span) -> bool:
        return not any(set(range(*span)) & set(range(*other)) for other in taken)

    for kind, piece in made.items():
        if piece is None:
            continue
        left = without(text, [piece])
        assert has_answer(answers, left) == has_answer(answers, text)
        assert free(piece, *held)
        assert free(piece, *chosen) == (kind != "placebo_inside")
        if kind != "placebo_inside":
            assert all(text[start:end] in left for start, end in chosen)
        if kind in ("placebo_words", "placebo_inside"):
            assert any(cut.start <= piece.start and piece.end <= cut.end for cut in cuts)
            answer_words = sum(len(re.findall(r"\S*\w\S*", text[start:end])) for start, end in held)
            assert len(re.findall(r"\S*\w\S*", text[piece.start : piece.end])) == answer_words
    length = sum(end - start for start, end in chosen)
    may_be = [cut for cut in cuts if free(cut, *held, *chosen) and length / 2 <= cut.end - cut.start <= 2 * length]
    nearest = sorted(may_be, key=lambda cut: (abs(cut.end - cut.start - length), cut.start))
    assert [made["placebo"], made["placebo_second"]] == [*nearest, None, None][:2]


def test_rows_of_placebos_stand_where_the_settings_have_them():
    """Also before those of the evidence that they are made from; one that is not to be had chooses nothing."""
    strategies = ["placebo_words", "gold", "placebo"]
    settings = EVIDENCE.model_copy(update={"strategies": strategies, "placebo_of": "gold"})
    question = Question("q", "Where was Ann born?", ["Rome"], "string", None, None, None, None)
    annotate = Annotate(settings, Manifest("none", Prompt("", lowercase=True), [], {}), lambda *_: np.zeros(0))
    rows = list(annotate([Pair(question, Passage("p", "Ann", ANN, None), gold) for gold in ([Span(31, 35)], None)]))
    assert [row.strategy for row in rows] == strategies * 2
    expected = [["She was born in Rome, Italy."], ["Nobody knows why she left."]]
    assert [[ANN[start:end] for start, end in row.chosen_spans] for row in rows][1:3] == expected
    assert ({row.target for row in rows}, [row.chosen for row in rows[3:]]) == ({"Rome"}, [[], [], []])


@pytest.mark.parametrize(("strategies", "placebo_of", "said"), [
    (["gold", "placebo"], "pseudo", "placebo_of: 'pseudo' is not in strategies, but the placebos there .placebo. need"),
    (["placebo", "placebo"], "pseudo", "names a strategy twice"),
    (["gold"], "placebo", "Input should be 'pseudo', 'gold'"),
])  # fmt: skip
def test_settings_that_do_not_fit_each_other(strategies, placebo_of, said):
    with pytest.raises(ValueError, match=said):
        type(EVIDENCE).model_validate(EVIDENCE.model_dump() | {"strategies": strategies, "placebo_of": placebo_of})
