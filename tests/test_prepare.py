"""Files to records: counts, ids, what is refused, held-out questions, equal bytes, and that errors change nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from eadpr.corpus.rows import digest
from eadpr.corpus.sources import File, Source
from eadpr.settings.resolve import checked
from eadpr.storage.records import Context, Passage, Question, SetMember
from tests.corpus_toy import OF_PASSAGES, PASSAGES, lines, prepared, rows, write


def build(
    tmp_path: Path, *questions: dict[str, Any], passages: str = PASSAGES, file: dict | None = None, **settings: Any
):
    """A collection of p.tsv and q.jsonl."""
    write(tmp_path / "p.tsv", passages)
    write(tmp_path / "q.jsonl", lines(*questions))
    return prepared(tmp_path, OF_PASSAGES, {"kind": "questions", "path": "q.jsonl"} | (file or {}), **settings)


GOOD = [
    {"question": "who?", "answers": ["Alpha"], "positives": ["a"]},
    {"question": "who?", "answers": ["Alpha"], "positives": ["a"]},
    {"question": "what?", "id": "mine", "set": "s", "split": "dev"},
]


def test_records_and_report(tmp_path):
    records, report = build(tmp_path, *GOOD)
    expected = [Passage("a", "T", "Alpha is here.", None), Passage("b", "U", "Beta is here.", None)]
    assert rows(records, "passages") == expected
    questions = rows(records, "questions")
    assert [q.id for q in questions] == ["own/train:1", "own/train:2", "mine"], "the same question twice stays twice"
    assert questions[0] == Question("own/train:1", "who?", ["Alpha"], "string", None, None, None, None)
    unnamed = [SetMember("own", "train", f"own/train:{n}") for n in (1, 2)]
    assert rows(records, "question_sets") == [*unnamed, SetMember("s", "dev", "mine")]
    expected = [Context(f"own/train:{n}", "a", "positive", 0, None, None, None) for n in (1, 2)]
    assert rows(records, "contexts") == expected
    expected = [("own/train:1", "q.jsonl", 1), ("own/train:2", "q.jsonl", 2), ("mine", "q.jsonl", 3)]
    assert [o[:3] for o in rows(records, "origins")] == expected
    none = dict.fromkeys(
        ["without_answers", "without_positive", "with_gold", "positive", "negative", "hard_negative"], 0
    )
    dev = none | dict.fromkeys(["questions", "without_answers", "without_positive", "without_either"], 1)
    assert report["sets"] == {"own/train": none | {"questions": 2, "positive": 2}, "s/dev": dev}
    assert (report["passages"], report["questions"]) == (2, 3)
    assert json.loads((records / "report.json").read_text()) == report


@pytest.mark.parametrize(("line", "row", "message"), [
    (2600, "p7\tT\tAgain.", r"p\.tsv, line 2600: passage id 'p7' stands twice \(first in .*p\.tsv, line 9\)"),
    (2600, "new\t\t ", r"line 2600: text is empty, as is the title; .* that makes 1 of 3,001 passages left out"),
])  # fmt: skip
def test_a_bad_row_far_down_a_long_file_is_named(tmp_path, line, row, message):
    rows = ["id\ttitle\ttext", *(f"p{n}\tT\tText {n}." for n in range(3000))]
    rows.insert(line - 1, row)
    with pytest.raises(ValueError, match=message):
        build(tmp_path, {"question": "q"}, passages="\n".join(rows) + "\n")


def test_another_number_of_questions_than_expected_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"q\.jsonl holds 1 questions, expected rows: 2"):
        build(tmp_path, {"question": "q"}, file={"rows": 2})
    write(tmp_path / "p.tsv", "id\ttext\na\t\nb\tOne two. \n" + "c\t" + "Word. " * 30)
    file = {"kind": "questions", "path": "q.jsonl"}
    _, report = prepared(tmp_path, OF_PASSAGES | {"rows": 3}, file, odd_rows=0.5, split_words=20)
    assert report["passages"] == 3, "as many as the file has, though one is left out and one becomes two"


def test_odd_rows_are_left_out_counted_and_listed_up_to_a_share(tmp_path):
    passages = "id\ttitle\ttext\na\tT\tAlpha, Beta, Alpha.\nb\tOnly a title\t\nc\t\t \n"
    questions = [
        {"question": "q", "answers": ["\u200b", "Alpha", " "], "positives": ["a", "c"]},
        {"question": "p", "answers": ["Beta"], "positives": ["a", "a"], "answer_start": [6, 900]},
        {"question": " ", "answers": ["Alpha"], "positives": "a"},
        {"question": "o", "answers": ["Alpha", "Gamma"], "positives": ["a"], "answer_start": 3},
    ]
    records, report = build(tmp_path, *questions, passages=passages, odd_rows=0.5)
    assert [(p.id, p.text) for p in rows(records, "passages")] == [("a", "Alpha, Beta, Alpha."), ("b", "")]
    assert [q.answers for q in rows(records, "questions")] == [["Alpha"], ["Beta"], ["Alpha", "Gamma"]]
    assert [c.gold and [tuple(span) for span in c.gold] for c in rows(records, "contexts")] == [None, [(7, 11)], None]
    counts = {kind: (odd["count"], odd["of"], len(odd["first"])) for kind, odd in report["odd_rows"].items()}
    assert counts == {
        "passages left out": (1, 3, 1), "questions left out": (1, 4, 1), "answers left out": (2, 6, 2),
        "contexts left out": (1, 4, 1), "answer offsets mended": (2, 3, 2), "answer offsets left out": (1, 3, 1),
    }  # fmt: skip
    with pytest.raises(
        ValueError, match=r"1 of 3 passages left out, more than prepare\.odd_rows allows, a share of 0\.3"
    ):
        build(tmp_path, *questions, passages=passages, odd_rows=0.3)


def test_a_passage_that_is_the_question_is_its_own_document(tmp_path):
    """Texts match but for case and white space, ids unless they are numbers, which two files may count alike."""
    passages = "id\ttext\n7\tSeven.\nx1\tOther words.\nc\t Why  NOT? \nd\twhy not?\n"
    questions = [
        {"id": "7", "question": "What?"}, {"id": "x1", "question": "How?"},
        {"id": "y", "question": "why not?", "positives": "d"},
    ]  # fmt: skip
    records, report = build(tmp_path, *questions, passages=passages)
    own_documents = [("x1", "x1", "own"), ("y", "c", "own")]
    contexts = [(c.question_id, c.passage_id, c.role) for c in rows(records, "contexts")]
    assert contexts == [("y", "d", "positive"), *own_documents]
    assert report["own_documents"] == 2
    records, report = build(tmp_path, *questions, passages=passages, keep_own_documents=True)
    assert [c.role for c in rows(records, "contexts")] == ["positive"]


def test_where_answers_begin_in_the_positives_is_gold_evidence(tmp_path):
    """An offset for each positive, at which one of the answers begins, the longest counts; a question may have none."""
    where = [
        {"question": "who?", "answers": ["Be", "Beta", "Alpha"], "positives": ["a", "b"], "answer_start": [0, 0]},
        {"question": "who?", "answers": ["is here"], "positives": ["b", "a"], "answer_start": [5, 6]},
        {"question": "who?", "answers": ["here"], "positives": "a", "answer_start": 9},
        {"question": "what?", "answers": ["Alpha"], "positives": ["a"], "answer_start": ""},
        {"question": "why?", "answers": ["Alpha"], "positives": ["a"]},
    ]
    records, report = build(tmp_path, *where)
    contexts = [(c.passage_id, c.gold and [tuple(span) for span in c.gold]) for c in rows(records, "contexts")]
    assert contexts == [
        ("a", [(0, 5)]), ("b", [(0, 4)]), ("b", [(5, 12)]), ("a", [(6, 13)]), ("a", [(9, 13)]), ("a", None), ("a", None)
    ]  # fmt: skip
    assert report["sets"]["own/train"]["with_gold"] == 3


@pytest.mark.parametrize(("change", "message"), [
    ({"answers": ["Alp."], "answer_start": [1]}, r"q\.jsonl, line 1: answer_start 1 of passage a points at 'lpha'"),
    ({"answers": ["Alp."], "answer_start": [2**30]}, "answer_start 1073741824 of passage a points at ''"),
    ({"answer_start": [0, 3]}, r"line 1: answer_start is \[0, 3\], expected a list of 1 character offsets"),
    ({"answers": ["x", "Al", "pha"], "answer_start": [1]}, "points at 'lph', not at 'x' or 'Al' or 'pha'"),
])  # fmt: skip
def test_a_wrong_place_of_an_answer_is_named(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        build(tmp_path, {"question": "who?", "answers": ["Alpha"], "positives": ["a"], "answer_start": [0]} | change)


def test_a_positive_that_was_split_says_what_to_name(tmp_path):
    passages = "id\ttext\ndoc\t" + "word " * 90 + "\n"
    with pytest.raises(ValueError, match=r"passage id 'doc' is a document that was split .*doc#1, …; name the one"):
        build(tmp_path, {"question": "q", "positives": ["doc"]}, passages=passages, split_words=30)
    _, report = build(tmp_path, {"question": "q", "positives": ["doc#2"]}, passages=passages, split_words=30)
    assert report["passages"] == 3


def held_out(tmp_path: Path, questions: list[dict[str, Any]], share: float) -> dict[str, str]:
    passages = "id\ttitle\ttext\n" + "".join(f"p{i}\tTitle {i // 4}\tText {i}.\n" for i in range(400))
    records, _ = build(tmp_path, *questions, passages=passages, file={"test_share": share})
    texts = {q.id: q.question for q in rows(records, "questions")}
    return {texts[m.question_id]: m.split for m in rows(records, "question_sets")}


def test_whole_titles_are_held_out_and_a_new_question_moves_no_other(tmp_path):
    queries = [{"question": f"what {i}?", "positives": [f"p{i}"]} for i in range(400)]
    queries += [{"question": f"and {i}?"} for i in range(100)]
    splits = held_out(tmp_path, queries, 0.2)
    for title in range(100):
        assert len({splits[f"what {i}?"] for i in range(4 * title, 4 * title + 4)}) == 1
    assert 0.1 < list(splits.values()).count("test") / 500 < 0.3
    assert {splits[f"and {i}?"] for i in range(100)} == {"train", "test"}
    more = held_out(tmp_path, [{"question": "new?"}, *reversed(queries)], 0.2)
    assert {q: s for q, s in more.items() if q != "new?"} == splits
    dev = [{"question": f"said {i}?", "split": "dev"} for i in range(20)]
    assert set(held_out(tmp_path, queries + dev, 0.2).items()) - splits.items() == {(q["question"], "dev") for q in dev}


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.9])
def test_of_two_titles_or_more_each_split_has_one(tmp_path, share):
    """Titles of the lowest draws are tested on, whatever the order of the rows."""
    questions = [{"question": f"{text} {i}?", "positives": [f"p{i}"]} for i in (1, 5, 9) for text in ("what", "who")]
    for some in (questions[:4], questions[2:], questions):
        splits = held_out(tmp_path, some, share)
        assert splits == held_out(tmp_path, some[::-1], share)
        titles = {question["question"]: f"Title {int(question['positives'][0][1]) // 4}" for question in some}
        draws = sorted({digest(title) for title in titles.values()})
        tested = max(1, min(len(draws) - 1, sum(draw < share * 2**64 for draw in draws)))
        assert splits == {q: "test" if digest(titles[q]) in draws[:tested] else "train" for q in titles}
    with pytest.raises(ValueError, match=r"no question is left for [a-z]+: .* give questions about another title too"):
        held_out(tmp_path, questions[:2], share)
    assert held_out(tmp_path, [*questions[:2], {"question": "x?", "split": "train"}], share)["what 1?"] == "test"


@pytest.mark.parametrize(("fields", "message"), [
    ({"kind": "passages"}, "exactly one of path"),
    ({"kind": "passages", "path": ""}, "'' does not name a file below"),
    ({"kind": "passages", "path": "../x"}, "does not name a file below"),
    ({"kind": "passages", "url": "ftp://ann:secret@h/x"}, "url 'ftp://h/x' must begin with http:// or https://"),
    ({"kind": "passages", "url": "http://ann:secret@h/"}, "'http://h/' does not name a file below"),
    ({"kind": "passages", "path": "x", "set": "s", "split": "t"}, "passages have no set"),
    ({"kind": "training", "path": "x", "set": "s"}, "both set and split"),
    ({"kind": "gold", "path": "x", "set": "s", "split": "t", "answer_kind": "regex"}, "gold have no answer_kind"),
    ({"kind": "training", "path": "x", "set": "s", "split": "t", "test_share": 0.2}, "training have no test_share"),
    ({"kind": "training", "path": "x", "sha256": "abc"}, "sha256"),
    ({"kind": "paq", "path": "x", "set": "s", "split": "t"}, "paq have no set"),
])  # fmt: skip
def test_settings_of_a_file_are_checked(fields, message):
    with pytest.raises(ValueError, match=r"^params\.yaml: file") as raised:
        checked(File, fields, "file.")
    assert message in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(("format", "files", "message"), [
    ("own", [{"kind": "passages", "path": "x"}], "no file holds questions"),
    ("dpr", [{"kind": "questions", "path": "x"}], "needs set and split"),
    ("own", [{"kind": "questions", "path": "x"}, {"kind": "passages", "path": "x"}], "listed twice"),
    ("dpr", [{"kind": k, "path": k, "set": "s", "split": p} for k, p in (("training", "a"), ("gold", "b"))],
     "no file of kind training or questions has set s and split b"),
])  # fmt: skip
def test_settings_of_a_source_are_checked(format, files, message):
    with pytest.raises(ValidationError, match=message):
        Source.model_validate({"format": format, "files": files})
