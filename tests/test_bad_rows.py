"""Rows that the reader of a format refuses: the error names file, line, field and value."""

import json

import pytest

from eadpr.corpus.formats import dpr, gold, hotpot, own, ramdocs
from eadpr.corpus.formats.columns import Columns
from eadpr.corpus.formats.entity_questions import read_entity_questions
from eadpr.corpus.formats.paq import Paq, sample_paq
from eadpr.corpus.formats.trex_facts import Facts, facts_reader
from eadpr.corpus.rows import check_passages
from eadpr.corpus.sources import File
from eadpr.writers.config import Given
from eadpr.writers.given import generate_from_files

FACTS, PAQ = Facts(unseen=[], questions=10, subset=1, seed=0), Paq(min_questions=1, passages=1, seed=0)
LOOK_ALIKES = File(kind="near_duplicates", path="alike.jsonl")
READERS = {
    "training.json": dpr.read_training,
    "contexts.jsonl": dpr.read_contexts,
    "gold.jsonl": gold.read_gold_offsets,
    "P19.jsonl": lambda path: facts_reader([path], FACTS)(path),
    "P19.dev.json": read_entity_questions,
    "paq.jsonl": lambda path: sample_paq(path, PAQ),
    "ramdocs.jsonl": ramdocs.read_ramdocs,
    "alike.jsonl": lambda path: [generate_from_files(Given(types=["noise"]), [(LOOK_ALIKES, path)])],
    "hotpot.json": hotpot.read_questions,
    "pages.jsonl": hotpot.read_passages,
    "questions.jsonl": lambda path: own.read_questions(path, Columns("questions", {})),
    "passages.jsonl": lambda path: check_passages(own.read_passages(path, Columns("passages", {}))),
}
SPAN, NOISE, PARAGRAPH = {"passage_id": 1, "text": "a"}, {"text": "x", "type": "noise"}, ["Ann", ["She is."]]
SOUND = {
    "training.json": {"question": "q", "answers": ["a"], "positive_ctxs": [{"text": "x"}]},
    "contexts.jsonl": {"question": "q", "answers": ["a"], "ctxs": [{"text": "x"}]},
    "gold.jsonl": {"question": "q", "passage_id": "1", "answer": "B", "answer_start": 2},
    "P19.jsonl": {"sub_label": "a", "obj_label": "b", "uuid": "u"},
    "P19.dev.json": {"question": "q", "answers": ["a"]},
    "paq.jsonl": {"question": "q", "answer": ["a"], "answers": [SPAN]},
    "ramdocs.jsonl": {"question": "q", "gold_answers": ["a"], "documents": [NOISE]},
    "alike.jsonl": {"question": "q", "text": "x", "type": "noise"},
    "hotpot.json": {"_id": "b", "question": "q", "answer": "a", "supporting_facts": [], "context": [PARAGRAPH]},
    "pages.jsonl": {"title": "A", "text": ["a", "b"]},
    "questions.jsonl": {"question": "q", "answers": "a"},
    "passages.jsonl": {"text": "x"},
}  # fmt: skip
PAIRS = "expected a list of pairs, each beginning with a title"
MISSING = [
    ("training.json", {"question"}),
    ("contexts.jsonl", {"question", "answers", "ctxs"}),
    *((name, set(SOUND[name])) for name in ("gold.jsonl", "P19.jsonl", "P19.dev.json", "paq.jsonl", "ramdocs.jsonl")),
    *((name, set(SOUND[name])) for name in ("hotpot.json", "pages.jsonl")),
]


def read(folder, name, row):
    (folder / name).write_text(json.dumps(row) + "\n")
    return list(READERS[name](folder / name))


@pytest.mark.parametrize("name", READERS)
def test_a_sound_row_is_read(tmp_path, name):
    assert len(read(tmp_path, name, SOUND[name])) == 1


@pytest.mark.parametrize(("name", "field"), [(name, field) for name, fields in MISSING for field in sorted(fields)])
def test_a_missing_field_is_named(tmp_path, name, field):
    rest = {key: value for key, value in SOUND[name].items() if key != field}
    said = rf"{name}, line 1: field '{field}' is missing \(it has {', '.join(rest) or 'none'}\)"
    with pytest.raises(ValueError, match=said):
        read(tmp_path, name, rest)


@pytest.mark.parametrize(("name", "changes", "said"), [
    ("training.json", {"question": "q\ud800"}, r"question holds U\+D800"),
    ("training.json", {"answers": "A"}, "answers is 'A', expected a list"),
    ("training.json", {"positive_ctxs": {}}, "positive_ctxs is {}, expected a list"),
    ("training.json", {"positive_ctxs": [1]}, r"positive_ctxs\[0\] is 1, expected a JSON object"),
    ("training.json", {"negative_ctxs": [{"title": "x"}]}, "has neither passage_id nor psg_id nor text"),
    ("gold.jsonl", {"answer_start": "2"}, "answer_start is '2', expected a character offset"),
    ("P19.jsonl", {"uuid": "u v"}, "uuid 'u v' holds white space"),
    ("paq.jsonl", {"answers": [{"text": "a"}]}, r"answers\[0\] is .*, expected an object with passage_id and text"),
    ("paq.jsonl", {"answer": 1}, r"answer\[0\] is 1, expected text"),
    ("ramdocs.jsonl", {"documents": [{"type": "noise"}]}, r"documents\[0\] is .*expected an object of text"),
    ("ramdocs.jsonl", {"documents": [NOISE | {"type": "y"}]}, r"documents\[0\] is .*expected an object of text"),
    ("alike.jsonl", {"question_id": "q"}, r"has the fields \['question', 'question_id', .*expected text, one"),
    ("hotpot.json", {"context": {"title": []}}, f"context is {{'title': .*, {PAIRS}"),
    ("hotpot.json", {"context": [["Ann Moor"]]}, f"context is .*, {PAIRS}"),
    ("hotpot.json", {"context": [["Ann Moor", "text"]]}, r"context\[0\]: sentences is 'text', expected a list"),
    ("hotpot.json", {"context": [["&nbsp;", []]]}, r"context\[0\]: title is empty"),
    ("hotpot.json", {"supporting_facts": [["A", -1]]}, r"supporting_facts\[0\]: sentence is -1, expected its"),
    ("pages.jsonl", {"text": "a b"}, "text is 'a b', expected a list of texts"),
    ("questions.jsonl", {"question": ""}, "question is empty"),
    ("questions.jsonl", {"answer_kind": "glob"}, "answer_kind is 'glob', expected one of string, regex, yes-no"),
    ("questions.jsonl", {"set": "My Set"}, "set is 'My Set', expected lower-case"),
    ("questions.jsonl", {"positives": "a b"}, r"positives\[0\] 'a b' holds white space"),
    ("passages.jsonl", {"title": 3}, "title is 3, expected text"),
])  # fmt: skip
def test_a_bad_value_is_named_with_file_line_and_field(tmp_path, name, changes, said):
    with pytest.raises(ValueError, match=rf"{name}, line 1.*{said}"):
        read(tmp_path, name, SOUND[name] | changes)
