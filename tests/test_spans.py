"""Sentences with offsets, and taking spans out of a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.storage.records import Passage, Span
from eadpr.text.answers import merge
from eadpr.text.spans import overlapping, segment, sentences, without


def pieces(text: str, spans) -> list[str]:
    return [text[s.start : s.end] for s in spans]


@pytest.mark.parametrize(
    "expected",
    [["He was born in 1961.", "She left!", "Why?", "Nobody knows"],
     ["Dr. A. B. Smith met Mr. Jones in St. Louis.", "They talked."],
     ["It cost $3.50 at No. 5 King St. Paul's Road.", "Fine."],
     ["It joined the U.S. Army in Jan. 1944.", "Later it left the U.S.", "The war ended."],
     ['He said "Stop." and left.', '"Go!"', "She went."], ["She (b. Paris. d. Rome.) was a painter.", "He was not."],
     ["Acme Inc. was founded by J. R. R. Hill, Jr. of Leeds.", "It grew."],
     ["Yahoo! is a company.", "So is e.g. Acme."], ["He studied art.", "He said no.", "Then he slept..."],
     ["There J. A. Hill wrote ... . . and left.", "He died."], ["東京は首都です。", "大阪は違う！", "はい。"],
     ["東京の人は「はい。行く！」と言った。", "「雨だ。」", "帰った。"],
     ["He waited...", "She left."], ["It rained (all day.)", "Then it snowed."], ["Of Ulm. eBay in 1990. , or so."],
     ["A paragraph without a stop", "Another one"], ["she was born in st. louis.", "it grew!", "so did she."],
     ["i saw NASA.", "she led it."], ["of Ulm, approx. five.", "The rest fell."],
     ["値は３．１４です．", "犬です．"], ["Τι είναι;", "Ναι."], ["བོད་ཡིག།", "ལགས་སོ།"],
     ["भारत की राजधानी दिल्ली है।", "मुंबई बड़ा है॥"], ["وہ لاہور میں ہے۔", "کیا؟", "ہاں۔"], ["እሱ ተወለደ።", "አዲስ ነው።"],
     ["Er starb am 3. Mai 1990 in Ulm.", "Im 19. Jahrhundert war er 30.", "May kam."],
     ["It was 3.", "Julia smiled."], ["iPhone sales rose at Apple Inc. and fell."], ["Это сделано им.", "Он ушёл."],
     ["ชื่อดา", "อยู่ที่นี่"], ["An open (bracket is here.", "And a sentence.", "And more."]],
    ids=lambda sentences: sentences[0][:12],
)  # fmt: skip
def test_sentences(expected):
    text = ("\n\n" if "stop" in expected[0] else "" if "東" in expected[0] else " ").join(expected)
    assert pieces(text, sentences(text)) == expected


@pytest.mark.parametrize(("text", "expected"), [
    ("Ulm.[1] It grew.²\u200b<b>Why.</b><p>Ah", ["Ulm.[1]", "It grew.²", "\u200b<b>Why.", "</b><p>Ah"]),
    ("three\nBlind mice", ["three", "Blind mice"]), ("three\nBlind mice run.", ["three\nBlind mice run."]),
    ("Она ушла.Он жил.", ["Она ушла.", "Он жил."]), ("וכתב.והלך", ["וכתב.", "והלך"]),
    ("It ended.She left.Why", ["It ended.", "She left.", "Why"]), ("See Node.js or a.B.", ["See Node.js or a.B."]),
    ("Bring\n- bread\n 2. salt\n(b) rye\nand oil", ["Bring", "- bread", "2. salt", "(b) rye\nand oil"]),
    ("name: Ada\nborn: 1815, in\nLondon", ["name: Ada", "born: 1815, in\nLondon"]),
    ("Rivers:\n| Rhine | Ulm |\n|---|---|\n| Po |", ["Rivers:", "| Rhine | Ulm |\n|---|---|", "| Po |"]),
    ("中" * 150 + "。", ["中" * 100, "中" * 50 + "。"]),
])  # fmt: skip
def test_sentences_without_stops_or_spaces(text, expected):
    assert pieces(text, sentences(text)) == expected


@pytest.mark.parametrize(("between", "count"), [(200, 1), (201, 2)])
def test_brackets_hide_a_stop_where_they_are_close(between, count):
    assert len(sentences(f"It (ended. {'X' * (between - 9)}) then.")) == count


TEXTS = st.text(alphabet=st.sampled_from(list("aB1 .,;!?\"'()[]\n。\u2029—é")), max_size=60) | st.text(max_size=60)


@given(TEXTS)
def test_spans_are_sorted_disjoint_and_cover_every_character(text):
    spans = sentences(text)
    covered = [i for s in spans for i in range(s.start, s.end)]
    assert covered == sorted(set(covered))
    assert all(s.start < s.end and not text[s.start].isspace() and not text[s.end - 1].isspace() for s in spans)
    assert {i for i, c in enumerate(text) if not c.isspace()} <= set(covered)


@given(TEXTS, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=4))
def test_without_keeps_exactly_the_other_characters(text, cuts):
    spans = [Span(min(c), min(max(c), len(text))) for c in cuts if min(c) < min(max(c), len(text))]
    gone = {i for s in spans for i in range(s.start, s.end)}
    rest = without(text, spans)
    assert [c for c in rest if not c.isspace()] == [c for i, c in enumerate(text) if i not in gone and not c.isspace()]
    assert rest == rest.strip()


@pytest.mark.parametrize(("text", "removed", "rest"), [
    ("A b. C d. E f.", "C d.", "A b. E f."), ("A b. C d. E f.", "A b.", "C d. E f."),
    ("A b.  C d.\nE f.", "C d.", "A b. E f."), ("born in Paris, France", "Paris", "born in, France"),
    ("the city (Paris) is", "Paris", "the city () is"), ("( Paris ) is", "Paris", "() is"),
    ("a New York-based firm", "New York", "a -based firm"), ("anti-Paris-ism", "Paris", "anti--ism"),
    ("一。二。三。", "二。", "一。三。"), ("only one span.", "only one span.", ""),
    ("  spaces stay   inside  ", "stay", "spaces inside"), ("a Lyon–Paris train", "Paris", "a Lyon– train"),
])  # fmt: skip
def test_without(text, removed, rest):
    start = text.index(removed)
    assert without(text, [Span(start, start + len(removed))]) == rest


def test_without_neighbouring_and_overlapping_spans():
    text = "A b. C d. E f. G h."
    assert without(text, [Span(10, 14), Span(5, 9)]) == "A b. G h."
    assert without(text, [Span(5, 12), Span(8, 14)]) == "A b. G h."
    assert without(text, []) == text


def test_given_sentences_win():
    passage = Passage("1", "t", "One. two, three four five. Six.", [Span(0, 20), Span(20, 31)])
    assert segment(passage) == [Span(0, 20), Span(20, 31)]
    given_blank = passage._replace(text="One.  Two.", sentences=[Span(0, 4), Span(4, 6), Span(6, 10)])
    assert segment(given_blank) == [Span(0, 4), Span(6, 10)]
    assert segment(passage._replace(sentences=None)) == sentences(passage.text)


def test_merge_and_overlapping():
    assert merge([Span(5, 7), Span(0, 2), Span(2, 3), Span(6, 9)]) == [Span(0, 3), Span(5, 9)]
    assert overlapping([Span(0, 4), Span(4, 8), Span(8, 12)], [Span(3, 5)]) == [0, 1]
    assert overlapping([Span(0, 4), Span(4, 8), Span(8, 12)], [Span(0, 1), Span(9, 10)]) == [0, 2]
    assert overlapping([Span(0, 4)], [Span(4, 5)]) == []


def test_a_passage_of_ten_thousand_words_is_cut_quickly():
    text = "It was the (first) of many. " * 2_000
    assert len(sentences(text)) == 2_000
