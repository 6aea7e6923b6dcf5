"""HotpotQA's files: items of the official form with answers that can be seen, archives, the order of hops."""

import bz2
import gzip
import io
import json
import re
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eadpr.corpus.formats import hotpot
from eadpr.corpus.formats.hotpot import Paragraph, order_hops, plain_title
from eadpr.corpus.rows import Row
from eadpr.storage.records import Passage, Question, Span
from tests.corpus_toy import SHARED, lines, real, rows, write
from tests.corpus_toy import prepared as prepared_files

pytestmark = pytest.mark.formats

HOTPOT = {"kind": "questions", "set": "hotpot", "split": "train"}


MOOR = ["Ann Moor", ["Ann Moor writes.", " She was born in Leeds.", " She sings."]]
ROAD = ["Dune Road (novel)", ["Dune\u00a0Road is a novel by Ann Moor.", " It sold well."]]
HILL = ["Bob &amp; Hill", ["Bob & Hill sang.", " ", "They were born in York."]]
PARK = ["Leeds Park", [" Leeds Park lies in Leeds."]]
BRIDGE = {
    "_id": "b1", "answer": "Leeds", "question": "Where was the author of Dune Road born?",
    "supporting_facts": [["Ann Moor", 1], ["Dune Road (novel)", 0]], "context": [PARK, MOOR, HILL, ROAD],
    "type": "bridge", "level": "easy",
}  # fmt: skip
YES = {
    "_id": "c1", "answer": "yes", "question": "Are Ann Moor and Bob & Hill both singers?",
    "supporting_facts": [["Bob &amp; Hill", 0], ["Ann Moor", 2], ["Bob &amp; Hill", 2]], "context": [MOOR, HILL],
    "type": "comparison", "level": "hard",
}  # fmt: skip


def prepared(tmp_path: Path, *items: dict[str, Any], pages: bytes | None = None, name: str = "pages.jsonl", **changes):
    """The records folder and the report of a collection of `items` and, where given, a file of pages."""
    write(tmp_path / "q.json", list(items))
    files = [HOTPOT | {"path": "q.json"}]
    if pages is not None:
        write(tmp_path / name, pages)
        files.append({"kind": "passages", "path": name})
    return prepared_files(tmp_path, *files, format="hotpot", **{"add_context_passages": True} | changes)


def test_questions_bring_their_paragraphs_hops_and_gold_sentences(tmp_path):
    records, report = prepared(tmp_path, BRIDGE, YES)
    passages = {p.id: p for p in rows(records, "passages")}
    assert list(passages) == ["Dune_Road_(novel)", "Ann_Moor", "Leeds_Park", "Bob_&_Hill"]
    assert passages["Ann_Moor"] == Passage(
        "Ann_Moor", "Ann Moor", "Ann Moor writes. She was born in Leeds. She sings.", [(0, 16), (16, 39), (39, 50)]
    )
    assert passages["Bob_&_Hill"].title == "Bob & Hill"
    bridge, yes = rows(records, "questions")
    hops = ["Dune_Road_(novel)", "Ann_Moor"]
    assert bridge == Question("b1", BRIDGE["question"], ["Leeds"], "string", None, None, "bridge", hops)
    assert (yes.answers, yes.answer_kind, yes.type) == (["yes"], "yes-no", "comparison")
    assert yes.hops == ["Bob_&_Hill", "Ann_Moor"]
    assert [(*c[:4], c.gold, c.title) for c in rows(records, "contexts")] == [
        ("b1", "Dune_Road_(novel)", "positive", 0, [(0, 33)], None),
        ("b1", "Ann_Moor", "positive", 1, [(16, 39)], None),
        ("b1", "Leeds_Park", "hard_negative", 0, None, None),
        ("b1", "Bob_&_Hill", "hard_negative", 1, None, "Bob &amp; Hill"),
        ("c1", "Bob_&_Hill", "positive", 0, [(0, 16), (17, 40)], "Bob &amp; Hill"),
        ("c1", "Ann_Moor", "positive", 1, [(39, 50)], None),
    ]
    facts = [list(map(list, origin.facts)) for origin in rows(records, "origins")]
    assert facts == [item["supporting_facts"] for item in (BRIDGE, YES)]
    counts = report["sets"]["hotpot/train"]
    assert (counts["questions"], counts["with_gold"], counts["positive"], counts["hard_negative"]) == (2, 2, 4, 2)
    assert (report["passages_from_contexts"], report["gold_sentences_missing"]) == (4, 0)


def test_a_supporting_sentence_that_is_not_there_is_counted(tmp_path):
    facts = [["Ann Moor", 1], ["Ann Moor", 9], ["Dune Road (novel)", 7]]
    records, report = prepared(tmp_path, BRIDGE | {"supporting_facts": facts})
    assert report["gold_sentences_missing"] == 2
    gold = {c.passage_id: c.gold for c in rows(records, "contexts") if c.role == "positive"}
    assert gold == {"Ann_Moor": [Span(16, 39)], "Dune_Road_(novel)": None}


def test_a_page_with_another_text_keeps_its_first_one(tmp_path):
    edited = [ROAD[0], ["Dune Road is a novel.", " It sold well."]]
    again = BRIDGE | {"_id": "b2", "context": [MOOR, edited]}
    records, report = prepared(tmp_path, BRIDGE, again)
    assert (report["passages"], report["contexts_with_other_text"], report["gold_lost_to_other_text"]) == (4, 1, 1)
    gold = {c.question_id: c.gold for c in rows(records, "contexts") if c.passage_id == "Dune_Road_(novel)"}
    assert gold == {"b1": [Span(0, 33)], "b2": None}


def test_pages_that_differ_in_spaces_and_entities_are_the_same(tmp_path):
    """The question has `&amp;` and a no-break space, the corpus has neither; gold evidence and the title stay."""
    page = pages(MOOR, PARK, ["Bob & Hill", HILL[1]], [ROAD[0], [s.replace("\u00a0", " ") for s in ROAD[1]]])
    records, report = prepared(tmp_path, BRIDGE, YES, pages=page, add_context_passages=False)
    assert (report["contexts_with_other_text"], report["sets"]["hotpot/train"]["with_gold"]) == (0, 2)
    assert {c.title for c in rows(records, "contexts") if c.passage_id == "Bob_&_Hill"} == {"Bob &amp; Hill"}


def paragraph(title: str, text: str) -> Paragraph:
    return Paragraph(title, text, [Span(0, len(text))], title)


A, B = "Ann Moor (writer)", "Dune Road"


@pytest.mark.parametrize(("text_a", "text_b", "question", "answer", "kind", "last"), [
    ("Born in Leeds.", "By Ann Moor.", "Who?", "Leeds", "string", A),  # one holds the answer
    ("She wrote.", "Set in Leeds.", "Who?", "Leeds", "string", B),
    ("Born in Leeds.", "Set in Leeds, by Ann Moor.", "Who?", "Leeds", "string", A),  # both; B mentions A
    ("She wrote Dune Road.", "A novel.", "Is it?", "no", "yes-no", B),  # no answer to seek; A mentions B
    ("Yes, she wrote.", "A novel by Ann Moor.", "Is it?", "yes", "yes-no", A),  # the word yes is no answer
    ("She wrote.", "A novel.", "Who wrote dune road?", "X", "string", A),  # the question begins at B
    ("Wrote Dune Road.", "By Ann Moor.", "Where did Ann Moor live?", "X", "string", B),  # both mention the other
    ("She wrote.", "A novel.", "Who?", "X", "string", B),  # nothing tells: the order of the file
])  # fmt: skip
def test_order_of_two_hops(text_a, text_b, question, answer, kind, last):
    ordered = order_hops(question, answer, kind, [paragraph(A, text_a), paragraph(B, text_b)])
    assert [p.title for p in ordered] == ([B, A] if last == A else [A, B])


def test_titles_become_ids():
    page = Row("here", 1, {"title": "Willie &quot;Two-Knife&quot; Altieri", "text": []})
    parsed = hotpot.read_paragraph(page, "text")
    assert (parsed.title, parsed.id) == ('Willie "Two-Knife" Altieri', 'Willie_"Two-Knife"_Altieri')
    assert plain_title("AT&T  Park\u00a0") == plain_title("AT&amp;T Park") == "AT&T Park"
    assert plain_title("Cafe\u0301") == "Café"


def pages(*paragraphs: list) -> bytes:
    """Lines of the corpus; fields that are not read stand in them too."""
    return lines(*({"id": "1", "title": title, "text": text, "url": "u"} for title, text in paragraphs)).encode()


def archive(*members: bytes) -> bytes:
    """The corpus as it is given out: bzip2 files in folders of a bzip2 archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:bz2") as tar:
        folder = tarfile.TarInfo("abstracts/AA")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for n, member in enumerate(members):
            info = tarfile.TarInfo(f"abstracts/AA/wiki_{n:02}.bz2")
            info.size = len(member)
            tar.addfile(info, io.BytesIO(member))
    return packed.getvalue()


ALL = pages(PARK, MOOR, HILL, ROAD, ["Empty", []])


@pytest.mark.parametrize(("name", "packed"), [
    ("pages.tar.bz2", archive(bz2.compress(pages(PARK, MOOR)), bz2.compress(pages(HILL, ROAD, ["Empty", []])))),
    ("wiki_00.bz2", bz2.compress(ALL)),
    ("pages.jsonl.gz", gzip.compress(ALL, mtime=0)),
    ("pages.jsonl", ALL),
])  # fmt: skip
def test_the_corpus_packed_or_not(tmp_path, name, packed):
    records, report = prepared(tmp_path, BRIDGE, pages=packed, name=name, add_context_passages=False)
    passages = rows(records, "passages")
    assert [p.id for p in passages] == ["Leeds_Park", "Ann_Moor", "Bob_&_Hill", "Dune_Road_(novel)", "Empty"]
    assert passages[1].sentences == [(0, 16), (16, 39), (39, 50)]
    assert passages[4] == Passage("Empty", "Empty", "", [])
    assert (report["contexts_with_other_text"], report["passages_from_contexts"]) == (0, 0)


def test_a_supporting_page_that_only_the_corpus_has(tmp_path):
    """The full-wiki file for development has retrieved paragraphs; only the question tells the hops."""
    item = BRIDGE | {"context": [PARK, HILL]}
    records, _ = prepared(tmp_path, item, pages=ALL)
    (question,) = rows(records, "questions")
    assert question.hops == ["Dune_Road_(novel)", "Ann_Moor"]
    positives = [c for c in rows(records, "contexts") if c.role == "positive"]
    expected = [("Dune_Road_(novel)", None), ("Ann_Moor", None)]
    assert [(c.passage_id, c.gold) for c in positives] == expected
    with pytest.raises(ValueError, match=r"q\.json, item 1: positive 0: passage id 'Dune_Road_\(novel\)' is not in"):
        prepared(tmp_path, item)


@pytest.mark.parametrize(("name", "packed", "message"), [
    ("p.tar.bz2", archive(bz2.compress(ALL))[:-20], r"p\.tar\.bz2 is truncated, damaged"),
    ("p.tar.bz2", archive(bz2.compress(ALL)[:-20]), r"wiki_00\.bz2 is truncated, damaged"),
    ("p.bz2", bz2.compress(ALL)[:40] + b"x" * 99, r"p\.bz2 is truncated, damaged"),
    ("p.tar", ALL, r"p\.tar is truncated, damaged"),
    ("p.tar.bz2", archive(bz2.compress(ALL + b"{")), r"AA/wiki_00\.bz2, line 6: malformed JSON"),
    ("p.jsonl", pages(MOOR, MOOR), r"line 2: passage id 'Ann_Moor' stands twice \(first in .*line 1\)"),
])  # fmt: skip
def test_a_bad_corpus_is_refused(tmp_path, name, packed, message):
    with pytest.raises(ValueError, match=message):
        prepared(tmp_path, BRIDGE, pages=packed, name=name)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """Records of the real questions, and the report."""
    paths = {split: {"path": f"hotpot_{split}_distractor.json.gz", "split": split} for split in ("train", "dev")}
    files = [HOTPOT | {"rows": 300} | file for file in paths.values()]
    options = {"format": "hotpot", "sources": SHARED / "hotpot-sample", "add_context_passages": True}
    return prepared_files(tmp_path_factory.mktemp("hotpot"), *files, **options)


@real
class TestRealFiles:
    def test_counts(self, sample):
        records, report = sample
        assert report["passages"] == report["passages_from_contexts"] == 5912
        assert (report["gold_sentences_missing"], report["contexts_with_other_text"]) == (0, 0)
        questions = rows(records, "questions")
        assert Counter(q.type for q in questions) == {"bridge": 468, "comparison": 132}
        assert Counter(q.answer_kind for q in questions) == {"string": 565, "yes-no": 35}

    def test_the_gold_evidence_is_every_supporting_sentence(self, sample):
        records, _ = sample
        files = [SHARED / f"hotpot-sample/hotpot_{split}_distractor.json.gz" for split in ("train", "dev")]
        items = [item for file in files for item in json.loads(gzip.decompress(file.read_bytes()))]
        passages = {p.id: p for p in rows(records, "passages")}
        contexts = [c for c in rows(records, "contexts") if c.gold]
        assert all(set(c.gold) <= set(passages[c.passage_id].sentences) for c in contexts)
        texts = Counter(passages[c.passage_id].text[start:end] for c in contexts for start, end in c.gold)
        sentences = (dict(item["context"])[title][i] for item in items for title, i in item["supporting_facts"])
        assert texts == Counter(re.sub(r"\s", " ", sentence) for sentence in sentences)
