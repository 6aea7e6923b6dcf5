"""Answer matching equals DPR's: golden values of its functions (methods.md 2.4), then naive loops, then offsets."""

import unicodedata
from itertools import pairwise

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from eadpr.readers.evaluate import exact_match_normal
from eadpr.storage.records import Span
from eadpr.text import answers
from eadpr.text.answers import AnswerMatcher, answer_spans, has_answer, tokens
from eadpr.text.question_types import question_type

STRING_CASES = [
    (["U.S."], "the U. S. army", True),
    (["U.S."], "The US army", False),
    (["US"], "join us today", True),
    (["José"], unicodedata.normalize("NFD", "José Martí"), True),
    (["Jose"], "José", False),
    (["14 December 1972"], "On 14 December, 1972 he", False),
    (["New York"], "New-York", False),
    (["New-York"], "New - York", True),
    ([""], "anything", True),
    ([" "], "anything", True),
    (["\u200b"], "anything", True),
    ([""], "", True),
    (["cat"], "cats", False),
    (["it's"], "it’s", False),
    (["2,000"], "2 , 000 men", True),
    (["2000"], "2,000", False),
    (["C++"], "in C + + code", True),
    (["snake_case"], "snake _ case", True),
    (["İstanbul"], "i̇stanbul", True),
    (["ß"], "SS", False),
    ([], "x", False),
    (["ﬁ"], "fi", False),
    (["H₂O"], "H2O", False),
    # Unlike DPR: each character of a script without spaces is a token.
    (["東京"], "東京都", True),
    (["か"], "が", False),
    (["京 A股"], "東京A股票", True),
    (["กา"], "มากา", True),
    (["서울"], "서울에서", False),
]
REGEX_CASES = [
    (["Kilometers?"], "5 kilometer", True),
    (["("], "(", False),
    (["^b"], "a\nb", True),
    ([unicodedata.normalize("NFC", "café")], unicodedata.normalize("NFD", "un café"), True),
    (["(", "x"], "x", True),
    (["(?u)(?a)x"], "x", False),
]


@pytest.mark.parametrize(
    ("answers", "text", "expected", "kind"),
    [(*case, "string") for case in STRING_CASES] + [(*case, "regex") for case in REGEX_CASES],
)
def test_golden_matches(answers, text, expected, kind):
    assert has_answer(answers, text, kind) is expected
    assert AnswerMatcher().matches(answers, [text], kind).tolist() == [expected]


def test_a_pattern_that_never_ends_is_named_and_in_no_text(monkeypatch):
    monkeypatch.setattr(answers, "SECONDS", 0.05)
    pattern, texts = r"(\d|\d\d)+$", [f"{'1' * 60} seeds", f"{'2' * 60} seeds", "12"]
    with pytest.warns(UserWarning, match=regex.escape(f"answer {pattern!r} of question 'how many?' takes more")):
        assert AnswerMatcher().matches([pattern], texts, "regex", question="how many?").tolist() == [False, False, True]
    monkeypatch.setattr(answers, "SECONDS", 0)  # what was searched in vain is not searched again
    assert answers.answer_spans([pattern], "12", "regex") == [(0, 2)]
    with pytest.warns(UserWarning, match="takes more than"):
        assert not any(answers.pattern_matches([pattern[:-1]], "1" * 60 + "x", fullmatch=True))


def test_golden_tokens():
    expected = "émile zola ' s 1 , 234 . 5 km — u . s . a . ( c . 1900 )"
    assert tokens("Émile Zola's 1,234.5 km—U.S.A. (c. 1900)") == unicodedata.normalize("NFD", expected).split(" ")


def test_yes_and_no_match_no_text():
    assert not has_answer(["yes", "no"], "Yes or no", "yes-no")
    assert answer_spans(["yes"], "Yes or no", "yes-no") == []
    assert AnswerMatcher().matches(["yes"], ["yes", "no"], "yes-no").tolist() == [False, False]


def test_the_normal_form_for_exact_match():
    assert exact_match_normal(" The U.S.A.,  an Army of theirs! ") == "usa army of theirs"


# Texts that meet every branch: ASCII and not, both sigmas, marks out of canonical order, separators, Hangul.
ALPHABET = "aAbBsS19.,'’- \n\t\x00\x7f\u2028\u200bσςΣΟéÉe\u0301\u0323İıßẞﬁK각\u1100東_+—"
TEXTS = st.text(ALPHABET, max_size=24) | st.text(max_size=12)


def naive_tokens(text: str) -> list[str]:
    """DPR's rule, without the short cut for ASCII, then runs split at each character of a script without spaces."""
    pattern = regex.compile(r"([\p{L}\p{N}\p{M}]+)|([^\p{Z}\p{C}])", regex.I | regex.U | regex.M)
    runs = [m.group().lower() for m in pattern.finditer(unicodedata.normalize("NFD", text))]
    parts = regex.compile(rf"[{answers.UNSPACED}]\p{{M}}*|[^{answers.UNSPACED}]+")
    return [part for run in runs for part in parts.findall(run)]


def naive_has_answer(answers: list[str], text: str) -> bool:
    words = naive_tokens(text)
    for answer in answers:
        part = naive_tokens(answer)
        if any(words[i : i + len(part)] == part for i in range(len(words) - len(part) + 1)):
            return True
    return False


@given(TEXTS)
def test_tokens_equal_the_plain_rule(text):
    assert tokens(text) == naive_tokens(text)


@given(st.lists(TEXTS, max_size=3), st.lists(TEXTS, max_size=4))
@example(["ΟΔΟΣ"], ["ΟΔΟΣ's end", "ΟΔΟΣ", "οδοσ"])
@example(["a b"], ["a\x00b", "ab", "x a B y"])
def test_matcher_equals_naive_loops(answers, texts):
    expected = [naive_has_answer(answers, text) for text in texts]
    assert AnswerMatcher().matches(answers, texts).tolist() == expected
    assert [has_answer(answers, text) for text in texts] == expected
    pieces = [text[1:6] for text in texts]
    rows = [expected, [naive_has_answer(pieces, text) for text in texts], [False] * len(texts)]
    questions = [(answers, "string"), (pieces, "string"), (["a"], "yes-no"), (["^a"], "regex")]
    rows += [[has_answer(["^a"], text, "regex") for text in texts]]
    assert AnswerMatcher().table(questions, texts).tolist() == rows


@given(TEXTS, st.integers(0, 24), st.integers(0, 24), TEXTS)
def test_a_piece_of_the_text_matches_as_in_naive_loops(text, start, end, unrelated):
    """Answers cut out of the text match far more often than independent ones."""
    answers, texts = [text[start:end]], (text, unrelated, text)
    matched = AnswerMatcher(size=1).matches(answers, texts)
    assert matched.tolist() == [naive_has_answer(answers, t) for t in texts]


@pytest.mark.parametrize(("answers", "text", "kind", "pieces"), [
    (["cat"], "A cat, a Cat, cats.", "string", ["cat", "Cat"]),
    (["New York", "York City"], "in New York City today", "string", ["New York City"]),
    (["New York", "New York"], "New York", "string", ["New York"]),
    (["a"], "a a", "string", ["a", "a"]),
    (["U.S."], "the U. S. army", "string", ["U. S."]),
    (["é"], "caf é", "string", ["é"]),
    (["José"], "Señor José.", "string", ["José"]),
    (["", "\u200b"], "anything", "string", []),
    (["km|kilometres?"], "5 KM or 5 kilometre", "regex", ["KM", "kilometre"]),
    (["x*"], "axxb", "regex", ["xx"]),
    (["caf."], "le café noir", "regex", ["café"]),
    (["("], "(", "regex", []),
    ([r"\s+"], "a b\u2003c", "regex", []),
    ([r"\s+|b "], "a b c", "regex", ["b "]),
    (["각"], "한 각 한", "string", ["각"]),
])  # fmt: skip
def test_spans(answers, text, kind, pieces):
    spans = answer_spans(answers, text, kind)
    assert [text[start:end] for start, end in spans] == pieces
    assert all(isinstance(span, Span) for span in spans)


def test_spans_where_marks_are_out_of_order():
    """a + acute + dot below: NFD puts the dot (class 220) before the acute (230), so ends are swapped."""
    assert answer_spans(["a\u0323\u0301"], "x a\u0301\u0323 y") == [Span(2, 5)]
    assert answer_spans(["\u0323$"], "a\u0301\u0323", "regex") == []
    assert answer_spans(["\u0323"], "a\u0301\u0323", "regex") == [Span(2, 3)]


@given(TEXTS, st.integers(0, 24), st.integers(1, 24), st.sampled_from(["string", "regex"]))
def test_spans_agree_with_has_answer(text, start, length, kind):
    piece = text[start : start + length]
    answers = [piece if kind == "string" else regex.escape(piece)]
    spans = answer_spans(answers, text, kind)
    if tokens(piece):
        assert bool(spans) == has_answer(answers, text, kind)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(first.end <= second.start for first, second in pairwise(spans))
    if kind == "string":
        assert all(has_answer(answers, text[span.start : span.end]) for span in spans)


@pytest.mark.parametrize(("question", "expected"), [
    ("who wrote it", "who"), ("Who wrote it?", "who"), ("WHOM did she marry?", "who"), ("Whose idea was it?", "who"),
    ("who's the king", "who"), ("who’s the king", "who"), ("whos the king", "who"), ("when was it built", "when"),
    ("what is it", "what"), ("whats the movie called", "what"), ("Where's the tower?", "where"),
    ("how many legs", "how"), ("Which city is larger?", "which"), ("in what year was he born", "what"),
    ("In which year, and where, was he born?", "which"), ("the actor who plays Avery", "who"),
    ("tell me when and how", "when"), ("(where) is it", "where"), ("why did he go", "other"),
    ("name the king of France", "other"), ("", "other"), ("how-to books", "how"), ("then\twho\u00a0came", "who"),
    *((f"is the {word} thing here", "other") for word in ("whole", "somewhat", "whoever", "nowhere", "show")),
])  # fmt: skip
def test_the_first_wh_word_decides(question, expected):
    assert question_type(question) == expected
