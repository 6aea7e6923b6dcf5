"""When a predicted answer is right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.readers.evaluate import exact_match, exact_match_normal, f1

pytestmark = pytest.mark.readers


@pytest.mark.parametrize(("prediction", "answers", "match", "overlap"), [
    ("the Paris", ["Paris!"], True, 1.0),
    ("in Paris", ["Paris"], False, 2 / 3),
    ("New York City", ["Boston", "York", "New York"], False, 4 / 5),
    ("York York", ["York"], False, 2 / 3),  # a word counts as often as both sides have it
    ("1,912", ["1912"], True, 1.0),
    ("Rome", ["Paris"], False, 0.0),
    ("", ["the"], False, 0.0),
    ("Paris", [], False, 0.0),
])  # fmt: skip
def test_exact_match_and_f1_take_the_best_answer(prediction, answers, match, overlap):
    assert exact_match(prediction, answers) is match
    assert f1(prediction, answers) == pytest.approx(overlap)


@pytest.mark.parametrize(("prediction", "pattern", "match"), [
    ("5 kilometers", r"5 kilometers?", True),
    ("about 5 kilometers", r"5 kilometers?", False),  # the whole of it
    ("5 kilometers away", r"5 kilometers?", False),
    (" PARIS ", r"paris|rome", True),
    ("cafe\u0301", "café", True),
    ("", r".*", False),
    ("(", r"(", False),
    ("x", r"(?V0)(?V1)x", False),  # flags that clash
])  # fmt: skip
def test_a_pattern_matches_the_whole_prediction(prediction, pattern, match):
    assert exact_match(prediction, [pattern], "regex") is match
    assert f1(prediction, [pattern], "regex") == float(match)


WORDS = st.lists(st.sampled_from(["a", "the", "red", "Red!", "sea", "York", "1,9"]), max_size=5).map(" ".join)


@given(WORDS, WORDS)
def test_f1_equals_precision_and_recall_counted_one_by_one(prediction, answer):
    predicted_words, answer_words = exact_match_normal(prediction).split(), exact_match_normal(answer).split()
    unmatched, common = list(answer_words), 0
    for word in predicted_words:
        if word in unmatched:
            unmatched.remove(word)
            common += 1
    expected = 0.0
    if common:
        precision, recall = common / len(predicted_words), common / len(answer_words)
        expected = 2 * precision * recall / (precision + recall)
    if prediction.strip() and not predicted_words and not answer_words:
        expected = 1.0
    assert f1(prediction, [answer]) == pytest.approx(expected)
    assert not exact_match(prediction, [answer]) or f1(prediction, [answer]) == 1.0
