"""The wh-word rule, clause by clause, and its counts on the NQ test questions with gold passages."""

import pytest

from eadpr.text.question_types import question_type


@pytest.mark.parametrize(("question", "expected"), [
    ("who wrote it", "who"), ("Who wrote it?", "who"), ("WHOM did she marry?", "who"), ("Whose idea was it?", "who"),
    ("who's the king", "who"), ("who’s the king", "who"), ("whos the king", "who"), ("when was it built", "when"),
    ("what is it", "what"), ("whats the movie called", "what"), ("Where's the tower?", "where"),
    ("how many legs", "how"), ("Which city is larger?", "which"), ("in what year was he born", "what"),
    ("In which year, and where, was he born?", "which"), ("the actor who plays Avery", "who"),
    ("tell me when and how", "when"), ("(where) is it", "where"), ("why did he go", "other"),
    ("name the king of France", "other"), ("", "other"), ("how-to books", "how"),
])  # fmt: skip
def test_the_first_wh_word_decides(question, expected):
    assert question_type(question) == expected


@pytest.mark.parametrize("word", ["whole", "somewhat", "somehow", "whatever", "whenever", "whoever", "nowhere", "show"])
def test_a_part_of_a_word_is_no_wh_word(word):
    assert question_type(f"is the {word} thing here") == "other"


def test_the_gap_to_the_next_word_may_be_any_space():
    assert question_type("then\twho\u00a0came") == "who"
