"""DPR's files and their like: what is read, and what is refused."""

import bz2
import gzip
import io
import json
import tarfile
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.corpus.formats import dpr, file_rows, own
from eadpr.corpus.formats.columns import Columns
from eadpr.corpus.formats.gold import GoldPages
from eadpr.corpus.rows import GivenContext, check_passages
from eadpr.storage.questions import grades
from eadpr.storage.records import Span
from tests.corpus_toy import OF_PASSAGES, SHARED, real, rows, write
from tests.corpus_toy import prepared as prepared_files

pytestmark = pytest.mark.formats

prepared = partial(prepared_files, format="dpr")


def passages(path: Path) -> list[tuple[str, str, str]]:
    checked = check_passages(own.read_passages(path, Columns("passages", {})))
    return [(passage_id, title, text) for _, passage_id, title, text, _ in checked]


HEADER = "id\ttext\ttitle\n"


def test_passages_are_quoted_as_in_csv_and_kept_as_given(tmp_path):
    content = '1\t"He said ""no""."\tA\n2\tplain, with, commas\tB "b"\n3\t"two\rlines\u2028 "\tC\n'
    actual = passages(write(tmp_path / "p.tsv", HEADER + content))
    expected = [("1", "A", 'He said "no".'), ("2", 'B "b"', "plain, with, commas"), ("3", "C", "two\rlines\u2028 ")]
    assert actual == expected


def test_quotes_of_a_tsv_are_text_where_the_first_closes_on_no_line(tmp_path):
    content = '1\t"Never, he wrote.\tA\n2\tso\rit is\tB\n3\t"again"\t\n'
    expected = [("1", "A", '"Never, he wrote.'), ("2", "B", "so\rit is"), ("3", "", '"again"')]
    assert passages(write(tmp_path / "p.tsv", HEADER + content)) == expected


@pytest.mark.parametrize("text", ["sep=;\nid;text\n1;a, b\n", 'id, text,,\n1, "a, b",,\n'])
def test_csv_is_read_as_spreadsheets_write_it(tmp_path, text):
    assert passages(write(tmp_path / "p.csv", text)) == [("1", "", "a, b")]


@pytest.mark.parametrize("change", ["a stream", "its end", "a header", "a lost header"])
def test_what_follows_damage_in_an_archive_is_not_left_out(tmp_path, change):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in ("a", "b"):
            (tmp_path / name).write_text(f'{{"title": "{name}", "text": ["x"]}}\n')
            archive.add(tmp_path / name, name)
    data = packed.getvalue()  # header and content of a member take 512 bytes each
    streams = {
        "a stream": bz2.compress(data[:1024]) + bz2.compress(data[1024:]).replace(b"BZh", b"BZi", 1),
        "its end": bz2.compress(data[:1024]),
        "a header": bz2.compress(data[:1024] + b"?" + data[1025:]),
        "a lost header": bz2.compress(data[:1024] + bytes(512) + data[1536:]),
    }
    with pytest.raises(ValueError, match=r"p\.tar\.bz2 is truncated, damaged or encrypted"):
        list(file_rows.read_objects(write(tmp_path / "p.tar.bz2", streams[change])))
    path = write(tmp_path / "p.tar.bz2", bz2.compress(data[:1024]) + bz2.compress(data[1024:]))
    assert [row.fields["title"] for row in file_rows.read_objects(path)] == ["a", "b"]


@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_bom_crlf_and_gzip_make_no_difference(tmp_path, start, end, packed):
    data = (start + HEADER + "1\tSome text\tA\n").replace("\n", end).encode()
    path = write(tmp_path / "p.tsv", gzip.compress(data) if packed else data)
    assert passages(path) == [("1", "A", "Some text")]


def test_qa_csv_answers_are_literals_never_code(tmp_path):
    path = write(tmp_path / "q", 'who?\t[\'A\', "B\'s"]\nwhat "x" is?\t"[""Levi\'s"", \'C\']"\n')
    expected = [("who?", ["A", "B's"], 1), ('what "x" is?', ["Levi's", "C"], 2)]
    assert [(q.question, q.answers, q.row) for q in dpr.read_qa_csv(path)] == expected
    path = write(tmp_path / "json", 'who?\t"[""a\\/b"", ""\\ud83d\\ude00""]"\n')
    assert next(dpr.read_qa_csv(path)).answers == ["a/b", "\U0001f600"], "JSON where it is JSON"
    for cell in ("__import__('os').system('x')", "'A'", "[1]", "[", "[" * 5000, "['A' 'B']"):  # the last is numpy's
        with pytest.raises(ValueError, match="line 1: answers"):
            list(dpr.read_qa_csv(write(tmp_path / "bad", f"who?\t{cell}\n")))


json_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | json_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(json_texts, inner, max_size=3),
    max_leaves=6,
)


@given(
    items=st.lists(st.dictionaries(json_texts, json_values, max_size=4), max_size=5),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
    chunk=st.integers(1, 40),
)
def test_a_list_read_in_chunks_of_any_size_is_the_list(tmp_path_factory, items, indent, ascii_only, chunk):
    path = tmp_path_factory.mktemp("json") / "items.json"
    write(path, json.dumps(items, indent=indent, ensure_ascii=ascii_only))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_rows, "CHUNK", chunk)
        assert [row.fields for row in file_rows.read_objects(path)] == items


@pytest.mark.parametrize(("content", "message"), [
    ('[{"a": 1}, {"a": }]', "item 2: malformed JSON"),
    ('[{"a": 1},\n{"a": 1}\n{"a": 2}]', "item 3: malformed JSON"),
    ('[{"a": 1},\n{"a": "unfinished', "item 2: malformed JSON"),
    ('[{"a": 1},\n', "item 2: malformed JSON"),
    ('[{"a": 1}] x', "item 2: malformed JSON"),
    ('[{"a": ' + "[" * 9999, "item 1: malformed JSON"),
    ("[1]", "item 1: expected a JSON object, found int"),
    ('[{"a": 1}, ]', "item 2: malformed JSON"),
    ('{"a": 1}\n{"a": 2\n', "line 2: malformed JSON"),
    ('{"a": 1}\n[2]\n', "line 2: expected a JSON object, found list"),
    (b'[{"a": 1},\n{"a": "\xe9"}]', "item .: byte 0xe9 is not UTF-8"),
    (b'{"a": 1}\n{"a": "\xe9"}\n', "line 2: byte 0xe9 is not UTF-8"),
])  # fmt: skip
@pytest.mark.parametrize("chunk", [3, 1 << 20])
def test_bad_json_is_refused_with_file_and_row(tmp_path, content, message, chunk, monkeypatch):
    monkeypatch.setattr(file_rows, "CHUNK", chunk)
    with pytest.raises(ValueError, match=rf"x\.json, {message}"):
        list(file_rows.read_objects(write(tmp_path / "x.json", content)))


def test_a_long_list_is_never_held_whole(tmp_path):
    item = {"question": "who?", "text": "word " * 4000}
    path = write(tmp_path / "x.json", json.dumps([item] * 1000))  # 20 MB
    tracemalloc.start()
    assert sum(1 for _ in file_rows.read_objects(path)) == 1000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * file_rows.CHUNK


def context(passage_id: str, **more: Any) -> dict[str, Any]:
    fields = {"title": "T", "text": f"Text of {passage_id}.", "score": 1000, "title_score": 1, "passage_id": passage_id}
    return fields | more


ITEMS: list[dict[str, Any]] = [
    {
        "dataset": "set", "question": "who?", "answers": ["A", "B"],
        "positive_ctxs": [context("1"), context("1", score=13.394315), context("2", title_score=0.1)],
        "negative_ctxs": [],
        "hard_negative_ctxs": [context("3", score="82.1"), context("2", extra={"deep": [1.5, None]})],
    },
    {"answers": ["C"], "question": "what?", "positive_ctxs": [{"psg_id": "4", "title": "", "text": "Other."}]},
    {
        "question": "who?", "answers": [], "positive_ctxs": [{"title": "N", "text": "No id."}],
        "cf_negative_ctxs": [{"text": "x"}],
    },
    {"question": "where?", "answers": ["D"], "positive_ctxs": [context("1", text="Another text of 1.")], "id": 7},
    {"question": "when?", "answers": ["E"], "positive_ctxs": [{"passage_id": 2}], "hard_negative_ctxs": [context("5")]},
]  # fmt: skip
TRAIN = {"set": "s", "split": "train"}
FILE = {"kind": "training", "path": "x.json"} | TRAIN
OF_GOLD = {"kind": "gold", "path": "g.jsonl"} | TRAIN


@pytest.mark.parametrize("lines", [False, True])
def test_training_json_is_questions_with_contexts_by_role(tmp_path, lines):
    write(tmp_path / "x.json", "\n".join(map(json.dumps, ITEMS)) if lines else ITEMS)
    records, report = prepared(tmp_path, FILE, add_context_passages=True)
    assert [(q.question, q.answers) for q in rows(records, "questions")] == [
        (item["question"], item["answers"]) for item in ITEMS
    ]
    assert report["contexts_with_other_text"] == 1
    assert report["passages"] == report["passages_from_contexts"] == 6
    first = [c[1:4] for c in rows(records, "contexts") if c.question_id == "s/train:1"]
    positives = [("1", "positive", 0), ("1", "positive", 1), ("2", "positive", 2)]
    assert first == [*positives, ("3", "hard_negative", 0), ("2", "hard_negative", 1)]
    assert {(c.grade, c.title) for c in rows(records, "contexts")} == {(None, None)}, "a search engine's score is none"


GOLD = {"question": "who?", "passage_id": "1", "answer": "B", "answer_start": 2}


def gold_of(tmp_path: Path, gold: list[dict[str, Any]], text: str = "A B A", answers: tuple[str, ...] = ("B",)) -> Any:
    write(tmp_path / "x.json", [{"question": "who?", "answers": answers, "positive_ctxs": [context("1", text=text)]}])
    write(tmp_path / "g.jsonl", "\n".join(map(json.dumps, gold)))
    records, _ = prepared(tmp_path, FILE, OF_GOLD, add_context_passages=True)
    return rows(records, "contexts")[0].gold


def test_gold_offsets_become_spans_of_the_positive(tmp_path):
    assert gold_of(tmp_path, [GOLD]) == [Span(2, 3)]
    first = {**GOLD, "answer": "A", "answer_start": 4}
    assert gold_of(tmp_path, [first, GOLD], answers=("A", "B")) == [Span(2, 3), Span(4, 5)]
    assert gold_of(tmp_path, [first, GOLD], answers=("A",)) == [Span(4, 5)], "of a doubled question its own row"


def test_gold_pages_choose_the_occurrence_with_the_same_words_around(tmp_path):
    page = {
        "question": "when?", "question_tokens": "when ?", "title": "the PAGE", "short_answers": ["1901"],
        "context": "Prizes began later . The first prize was given in 1901 to Wilhelm Röntgen .",
    }  # fmt: skip
    write(tmp_path / "info.json", json.dumps({"data": [page]}))
    text = "In 1901 he left. The first prize was given in 1901 to Wilhelm Röntgen, and 1901 was cold."
    gold = GoldPages(tmp_path / "info.json")

    def spans(title: str, text: str) -> list[Span]:
        context = GivenContext("positive", 0, None, title, text)
        return gold.evidence("when?", context)

    assert (spans("The page", text), text[46:50]) == ([Span(46, 50)], "1901")
    assert (spans("The page", "It was 1901."), spans("The page", "No year.")) == ([Span(7, 11)], [])
    assert spans("Another page", text) == []


def test_questions_without_passages_get_the_one_that_was_cut_from_their_gold_page(tmp_path):
    """The answer stands in b and c, among the words of the gold page in c; the second question's page is not there."""
    pages = [
        {"question": "when?", "title": "The page", "short_answers": ["1901"], "context": "a prize was given in 1901"},
        {"question": "who?", "title": "Elsewhere", "short_answers": ["Ada"], "context": "Ada was"},
        {"question": "how?", "title": "Straße", "short_answers": ["slow"], "context": "it was slow there"},
    ]
    write(tmp_path / "info.json", json.dumps({"data": pages}))
    texts = [
        "No year.",
        "The year 1901 began.",
        "The first prize was given in 1901 to him.",
        "In 1901.",
        "It was slow.",
    ]
    titles = ["The page", "the Page", "THE PAGE", "Another", "straße"]
    rows_of = [f"{i}\t{text}\t{title}\n" for i, text, title in zip("abcde", texts, titles, strict=True)]
    write(tmp_path / "p.tsv", HEADER + "".join(rows_of))
    write(tmp_path / "q.qa.csv", "when?\t['1901']\nwho?\t['Ada']\nwhat?\t['x']\nhow?\t['slow']\n")
    nq_test = {"set": "nq", "split": "test"}
    files = [OF_PASSAGES, {"kind": "questions", "path": "q.qa.csv", **nq_test}]
    records, report = prepared(tmp_path, *files, {"kind": "gold_info", "path": "info.json", **nq_test}, format="dpr")
    assert [(row.question_id, row.passage_id, row.role, row.gold) for row in rows(records, "contexts")] == [
        ("nq/test:1", "c", "positive", [Span(29, 33)]), ("nq/test:4", "e", "positive", [Span(7, 11)]),
    ]  # fmt: skip
    assert (report["sets"]["nq/test"]["without_positive"], report["sets"]["nq/test"]["with_gold"]) == (2, 2)


@pytest.mark.parametrize("limit", [0.7, 0.75])
def test_contexts_without_a_passage_are_left_out_and_counted_up_to_a_limit(tmp_path, limit):
    """DPR's corpus lacks some passages that its training files name."""
    write(tmp_path / "p.tsv", HEADER + "1\tA B\tT\n")
    negatives = [context("8", text="C"), context("9", text="D")]
    positives = [context("1", text="A B"), context("9", text="D B")]
    item = {"question": "who?", "answers": ["B"], "positive_ctxs": positives, "hard_negative_ctxs": negatives}
    write(tmp_path / "x.json", [item])
    write(tmp_path / "g.jsonl", json.dumps({**GOLD, "passage_id": "9"}))  # of a passage that is left out
    if limit < 0.75:
        error = r"x\.json, item 1: positive 1: passage id '9' is not .* prepare.add_context_.* 3 of 4 contexts left out"
        with pytest.raises(ValueError, match=error):
            prepared(tmp_path, OF_PASSAGES, FILE, odd_rows=limit)
        return
    records, report = prepared(tmp_path, OF_PASSAGES, FILE, OF_GOLD, odd_rows=limit)
    assert grades(records) == {}, "scores of DPR's files are no grades"
    assert [(row.passage_id, row.role) for row in rows(records, "contexts")] == [("1", "positive")]
    odd = report["odd_rows"]["contexts left out"]
    assert (odd["count"], odd["of"], ["'9'" in odd["first"][0], "'8'" in odd["first"][1]]) == (3, 4, [True, True])


def test_a_negative_that_is_the_question_itself_is_its_own_document(tmp_path):
    write(tmp_path / "p.tsv", HEADER + "1\tA B\tT\n2\tWho  is B\tT\n")
    contexts = {"positive_ctxs": [context("1", text="A B")], "hard_negative_ctxs": [context("2", text="Who  is B")]}
    write(tmp_path / "x.json", [{"question": "who is b", "answers": ["B"], **contexts}])
    records, report = prepared(tmp_path, OF_PASSAGES, FILE)
    assert [(c.passage_id, c.role) for c in rows(records, "contexts")] == [("1", "positive"), ("2", "own")]
    assert report["own_documents"] == 1


@real
class TestRealFiles:
    def test_dpr_sample(self, tmp_path):
        file = {"kind": "training", "path": "nq-dev-5.json.gz", "set": "nq", "split": "dev", "rows": 5}
        records, report = prepared(tmp_path, file, sources=SHARED / "dpr-sample", add_context_passages=True)
        assert (report["passages"], report["contexts_with_other_text"]) == (751, 0)
        items = json.loads(gzip.decompress((SHARED / "dpr-sample" / "nq-dev-5.json.gz").read_bytes()))
        lists = [(item[f"{role}_ctxs"], role) for item in items for role in ("positive", "negative", "hard_negative")]
        expected = [(passage["passage_id"], role, n) for of_role, role in lists for n, passage in enumerate(of_role)]
        assert [(c.passage_id, c.role, c.order) for c in rows(records, "contexts")] == expected

    def test_squad_open(self, tmp_path):
        files: list[dict[str, Any]] = [{"kind": "passages", "path": "psgs.tsv.gz", "rows": 4496}]
        for split, count in (("train", 11_877), ("dev", 4_961)):
            question_set = {"set": "squad", "split": split}
            files.append({"kind": "training", "path": f"squad-{split}.json.gz", "rows": count, **question_set})
            files.append({"kind": "gold", "path": f"squad-{split}.gold.jsonl.gz", **question_set})
        records, report = prepared(tmp_path, *files, sources=SHARED / "squad-open")
        assert report["sets"]["squad/train"]["with_gold"] == 11_877
        assert report["sets"]["squad/dev"]["with_gold"] == 4_961
        texts = {p.id: p.text for p in rows(records, "passages")}
        answers = {q.id: q.answers for q in rows(records, "questions")}
        for row in rows(records, "contexts"):
            for span in row.gold:
                assert texts[row.passage_id][span.start : span.end] in answers[row.question_id]
