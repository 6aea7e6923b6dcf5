"""Swaps: another question's answer of the same kind, put where the own one stood."""

import pytest

from eadpr.storage import tables
from eadpr.storage.records import Fold, Passage, Question
from eadpr.supervision.pairs import Pair
from eadpr.supervision.swaps import Swaps, swap_answers


def asked(question_id, question, *answers, relation=None, kind="string") -> Question:
    return Question(question_id, question, list(answers), kind, None, relation, None, None)


def pair(question: Question, text: str) -> Pair:
    return Pair(question, Passage("p", "", text, None), None)


def swaps(folder, questions, learnt=(), seed=0) -> Swaps:
    tables.write(folder / "questions.parquet", Question, questions)
    tables.write(folder / "folds.parquet", Fold, [Fold(i, "train", 0) for i in learnt])
    return Swaps(seed, records=folder, folds=folder / "folds.parquet")


def drawn(found: Swaps, one: Pair) -> set[str | None]:
    return {found.draw_answer(one, number) for number in range(60)}


OWN = asked("q", "Where was Ann born?", "Rome", "Roma")
TEXT = "Ann was born in Rome, far from Oslo."


@pytest.mark.parametrize(("other", "lends"), [
    (asked("o", "where is it", "Paris"), True),
    (asked("o", "Who was it?", "Paris"), False),
    (asked("o", "Where was Ann born?", "Paris", relation="P19"), False),
    (asked("o", "Where is it?", "20 towns"), False),  # a digit
    (asked("o", "Where is it?", "at home"), False),  # no name
    (asked("o", "Where is it?", "at Home"), True),
    (asked("o", "Where is it?", "Paris", kind="regex"), False),
    (asked("o", "Where is it?", "Oslo"), False),  # stands in the passage
    (asked("o", "Where is it?", "roma"), False),  # an answer of its own
    (asked("o", "Where is it?", "Rome, Italy"), False),  # holds one
    (asked("o", "Where is it?", "New York"), True),
    (asked("o", "Where is it?", "New York City"), False),  # thrice as many words
    (asked("o", "Where is it?", "!!!", "Paris"), False),
    (asked("o", "Where is it?"), False),
])  # fmt: skip
def test_who_lends_an_answer_by_wh_word(tmp_path, other, lends):
    assert drawn(swaps(tmp_path, [OWN, other]), pair(OWN, TEXT)) == {other.answers[0] if lends else None}


def test_a_relation_comes_before_the_wh_word(tmp_path):
    own = asked("q", "Where was Ann born?", "Rome", relation="P19")
    others = [
        asked("a", "What is Bob's birthplace?", "Paris", relation="P19"),
        asked("b", "Where was Cid born?", "Delhi", relation="P20"),
        asked("c", "Where was Dan born?", "Quito"),
    ]
    assert drawn(swaps(tmp_path, [own, *others]), pair(own, TEXT)) == {"Paris"}


def test_those_learnt_from_and_the_others_lend_to_their_own_only(tmp_path):
    other = [asked("a", "Where?", "Paris"), asked("b", "Where?", "Delhi")]
    assert drawn(swaps(tmp_path, [OWN, *other], learnt=["q", "a"]), pair(OWN, TEXT)) == {"Paris"}
    assert drawn(swaps(tmp_path, [OWN, *other], learnt=["a"]), pair(OWN, TEXT)) == {"Delhi"}


@pytest.mark.parametrize("own", [
    asked("q", "Is it so where?", "yes", kind="yes-no"),
    asked("q", "Where?", "R.me", kind="regex"),
    asked("q", "Where?"),
    asked("q", "Name it.", "Rome"),  # neither relation nor wh-word
    asked("q", "Where?", " "),
])  # fmt: skip
def test_who_takes_none(tmp_path, own):
    others = [asked("a", "Where?", "Paris"), asked("b", "Name one.", "Paris")]
    assert drawn(swaps(tmp_path, [own, *others]), pair(own, TEXT)) == {None}


def test_a_seed_decides_whose_answers_are_lent_and_which_is_taken(tmp_path, monkeypatch):
    others = [asked(f"{i}", "Where is it?", f"Town{chr(97 + i)}") for i in range(20)]
    taken = [swaps(tmp_path, [OWN, *others], seed=seed).draw_answer(pair(OWN, TEXT), 0) for seed in (1, 1, 2, 3, 4)]
    assert taken[0] == taken[1]
    assert len(set(taken)) > 2
    assert len(drawn(swaps(tmp_path, [OWN, *others]), pair(OWN, TEXT))) > 10
    monkeypatch.setattr("eadpr.supervision.swaps.DRAWN", 3)
    assert len(drawn(swaps(tmp_path, [OWN, *others]), pair(OWN, TEXT))) <= 3


@pytest.mark.parametrize(("text", "answers", "other", "expected"), [
    ("Born in Rome. Rome, or Roma, is old.", ["Rome", "Roma"], "Oslo", "Born in Oslo. Oslo, or Oslo, is old."),
    ("She plays the piano. The piano is old.", ["the piano"], "An oboe", "She plays an oboe. An oboe is old."),
    ("It was the Pope. “The Pope” it was.", ["the pope"], "in Oslo", "It was in Oslo. “In Oslo” it was."),
    ("He was a farmer.", ["farmer"], "engineer", "He was an engineer."),
    ("An engineer he was.", ["engineer"], "farmer", "A farmer he was."),
    ("It was plan A Rome chose.", ["Rome"], "Oslo", "It was plan A Oslo chose."),
    ("Plan A\nRome is old.", ["Rome"], "Oslo", "Plan A\nOslo is old."),
    ("He left. “A farmer came.”", ["farmer"], "engineer", "He left. “An engineer came.”"),
    ("She saw An Engineer.", ["Engineer"], "Farmer", "She saw A Farmer."),
    ("She liked Rome.", ["Rome"], "gold leaf", "She liked gold leaf."),
    ("Rome is old.", ["Rome"], "gold leaf", "Gold leaf is old."),
    ("They saw rome.", ["Rome"], "Interlaken", "They saw Interlaken."),
    ("Romeo saw ROME’s walls.", ["Rome"], "Oslo", "Romeo saw Oslo’s walls."),
    # An article or preposition that stands there already
    ("He joined the Beatles in May.", ["Beatles"], "The Who", "He joined the Who in May."),
    ("He came in 1990, In 1990.", ["1990"], "in 1991", "He came in 1991, In 1991."),
    ("He is an actor.", ["actor"], "a painter", "He is a painter."),
    ("He is a farmer, the farmer.", ["farmer"], "The engineer", "He is an engineer, the engineer."),
    ("A farmer came.", ["farmer"], "the engineer", "An engineer came."),
    ("He lives in Rome.", ["Rome"], "in The Hague", "He lives in The Hague."),
    ("They saw the band.", ["band"], "The", "They saw the the."),  # nothing would be left
    ("He came at 9.", ["9"], "in 1991", "He came at in 1991."),
    ("He gave in in 1990.", ["in 1990"], "in 1991", "He gave in in 1991."),
    ("He wrote the The Who song.", ["The Who"], "A Band", "He wrote the A Band song."),
    ("Plan A Rome chose.", ["Rome"], "the Oslo", "Plan A the Oslo chose."),
    ("Where he was in\n\nRome is old.", ["Rome"], "in Oslo", "Where he was in\n\nIn Oslo is old."),
])  # fmt: skip
def test_the_text_with_another_answer(text, answers, other, expected):
    assert swap_answers(pair(asked("q", "Where?", *answers), text), other) == expected
