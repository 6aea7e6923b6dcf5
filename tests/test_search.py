"""Search: exact scores against a full sort, ties, FAISS against exact search, the stages encode and retrieve."""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import faiss
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eadpr.runtime import cache, machine
from eadpr.runtime.machine import Machine
from eadpr.runtime.section import Sets
from eadpr.search import exact, faiss_index
from eadpr.search.config import Faiss, Retrieve
from eadpr.search.retrieve import find, retrieve
from eadpr.search.vectors import Vectors, shard_name, shard_ranges
from eadpr.storage import tables
from eadpr.storage.records import Distractor, PairScore, Passage, Positive
from tests import small_collection as small
from tests.conftest import threads


def naive(values, questions, depth):
    """Every score, then a stable sort: float32 of the float64 product, ties by row."""
    scores = (questions.astype(np.float64) @ np.asarray(values, np.float16).astype(np.float64).T).astype(np.float32)
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    return rows, np.take_along_axis(scores, rows, 1)


def equal(hits, expected):
    rows, scores = expected
    np.testing.assert_array_equal(hits.rows, rows)
    np.testing.assert_array_equal(hits.scores, scores)


@pytest.fixture(params=["faiss", "torch"])
def engine(request, monkeypatch):
    """Finds the best of a block by FAISS, or by torch, which does so on GPUs."""
    if request.param == "torch":
        monkeypatch.setattr(exact, "_by_faiss", lambda questions: exact._by_torch(questions, "cpu"))


@pytest.mark.parametrize("readers", [0, 3])
@pytest.mark.parametrize("order", ["random", "rising", "falling"])
def test_equals_a_full_sort(order, readers, engine, tmp_path, monkeypatch):
    monkeypatch.setitem(exact.READERS, "cpu", readers)
    rng = np.random.default_rng(0)
    values, questions = rng.standard_normal((5_000, 24)), rng.standard_normal((37, 24)).astype(np.float32)
    if order != "random":  # rising: every block is better than all before it
        key = values @ questions[0]
        values = values[np.argsort(key if order == "rising" else -key)]
    vectors = small.write_vectors(tmp_path, values)
    monkeypatch.setattr(exact, "BLOCK_QUESTIONS", 5)
    for passages in (4_096, 300, 10):
        monkeypatch.setitem(exact.BLOCK_PASSAGES, "cpu", passages)
        for cards in (1, 2, 3):
            scanned, devices = [], ["cpu:0"] * cards  # named as a card is
            hits = exact.search(vectors, questions, 20, devices=devices, advance=scanned.append)
            equal(hits, naive(values, questions, 20))
            assert sum(scanned) == 5_000


def test_ties_at_the_cut_go_to_the_first_rows(engine, tmp_path, monkeypatch):
    """7 better passages among 3,000, and 23 of 51 copies of another, as many as `SPARE` leaves room for."""
    rng = np.random.default_rng(1)
    question = rng.standard_normal((1, 48)).astype(np.float32)
    values = rng.standard_normal((3_000, 48))
    values[values @ question[0] > 0] *= -1
    better, copies = [2_999, 17, 1_000, 5, 1_499, 2_000, 999], list(range(20, 2_570, 50))
    values[copies], values[better] = question, question * (1 + np.arange(1, 8)[:, None])
    vectors = small.write_vectors(tmp_path, values)
    for size in (4_096, 1_000, 333, 31, 8):
        monkeypatch.setitem(exact.BLOCK_PASSAGES, "cpu", size)
        for cards in (1, 2, 3):
            hits = exact.search(vectors, question, 30, devices=["cpu"] * cards)
            assert hits.rows[0].tolist() == better[::-1] + copies[:23]


@given(data=st.data())
def test_any_corpus_any_blocks(data, tmp_path_factory):
    """Small integers, so that most scores tie and every product is exact."""
    rows, dim = data.draw(st.integers(1, 150)), data.draw(st.integers(1, 3))
    draw = np.random.default_rng(data.draw(st.integers(0, 1_000)))
    values = draw.integers(-2, 3, (rows, dim))
    questions = draw.integers(-2, 3, (data.draw(st.integers(1, 6)), dim)).astype(np.float32)
    vectors = small.write_vectors(tmp_path_factory.mktemp("v"), values, shard_passages=data.draw(st.integers(1, rows)))
    depth, blocks = data.draw(st.integers(1, 12)), {"cpu": data.draw(st.integers(1, 70))}
    with mock.patch.object(exact, "BLOCK_PASSAGES", blocks):
        hits = exact.search(vectors, questions, depth, devices=["cpu"] * data.draw(st.integers(1, 4)))
    ranked = min(rows, depth)
    np.testing.assert_array_equal(hits.scores[:, :ranked], naive(values, questions, depth)[1])
    for question, row, score in zip(questions, hits.rows[:, :ranked], hits.scores[:, :ranked], strict=True):
        assert (values[row] @ question == score).all()
        assert len(set(row)) == ranked
        assert (np.lexsort((row, -score)) == np.arange(ranked)).all()
    assert (hits.rows[:, ranked:] == -1).all()
    assert (hits.scores[:, ranked:] == -np.inf).all()


def test_the_same_bits_for_any_number_of_threads_and_questions(tmp_path):
    """Two thirds of the passages have a copy; a matrix product gives copies other bits at the edges of its tiles."""
    rng = np.random.default_rng(2)
    values = rng.standard_normal((2_001, 96))
    values[::3] = values[1::3]
    questions = rng.standard_normal((9, 96)).astype(np.float32)
    vectors = small.write_vectors(tmp_path, values)
    together = exact.search(vectors, questions, 50)
    with threads(1 if torch.get_num_threads() > 1 else 2):
        equal(exact.search(vectors, questions, 50), together)
    for i in range(9):
        alone = exact.search(vectors, questions[i : i + 1], 50)
        equal(alone, (together.rows[i : i + 1], together.scores[i : i + 1]))


MEMORY = """
import resource, sys
from pathlib import Path
import faiss
import numpy as np
from eadpr.search import exact
from eadpr.search.vectors import Vectors
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
questions = np.ones((4, 128), np.float32)
faiss.knn(questions, np.ones((200, 128), np.float32), 100)
before = peak()
hits = exact.search(Vectors(Path(sys.argv[1])), questions, 100)
assert len(set(hits.rows[0])) == 100, hits.rows[0]
print(peak() - before)
"""


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    """1,000,000 passages of 128 dimensions are 256 MB; a shard is 16 MB."""
    for number, (first, end) in enumerate(shard_ranges(1_000_000, 65_536)):
        shard = np.lib.format.open_memmap(tmp_path / shard_name(number), "w+", np.float16, (end - first, 128))
        del shard  # a sparse file of zeros
    (tmp_path / "vectors.json").write_text(json.dumps({"rows": 1_000_000, "dim": 128, "shard_passages": 65_536}))
    done = small.python("-c", MEMORY, tmp_path, cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 150  # MiB; the corpus has 244


class TestVectors:
    def test_take_and_blocks(self, tmp_path):
        vectors = small.write_vectors(tmp_path, np.arange(20).reshape(10, 2), shard_passages=4)
        assert vectors.take(np.array([9, 0, 4, 3, 9]))[:, 0].tolist() == [18, 0, 8, 6, 18]
        assert [(first, len(block)) for first, block in vectors.blocks(3)] == [(0, 3), (3, 1), (4, 3), (7, 1), (8, 2)]
        assert [(first, len(block)) for first, block in vectors.head(5).blocks(3)] == [(0, 3), (3, 1), (4, 1)]

    @pytest.mark.parametrize(("spoil", "error", "message"), [
        (lambda path: path.unlink(), FileNotFoundError, r"vectors-00001\.npy"),
        (lambda path: np.save(path, np.ones((3, 2), np.float16)), ValueError, r"expected float16 \(4, 2\)"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), ValueError, "not a readable"),
        (lambda path: np.save(path, np.array([{"a": 1}], object)), ValueError, "not a readable"),  # a pickle
        (lambda path: (path.parent / "vectors.json").unlink(), FileNotFoundError, r"vectors\.json"),
    ])  # fmt: skip
    def test_what_is_no_folder_of_vectors_is_refused(self, tmp_path, spoil, error, message):
        small.write_vectors(tmp_path, np.ones((10, 2)), shard_passages=4)
        spoil(tmp_path / shard_name(1))
        with pytest.raises(error, match=message):
            Vectors(tmp_path)


def retrieve_settings(index, **changes):
    return Retrieve(depth=10, candidates=20, sentences=0, index=index, faiss=Faiss(**small.FAISS | changes))


@pytest.fixture(scope="module")
def clustered(tmp_path_factory):
    """2,000 passages around 40 centres, lengths differing threefold, so that inner product is not distance."""
    rng = np.random.default_rng(4)
    centres = rng.standard_normal((40, 16))
    values = centres[rng.integers(0, 40, 2_000)] + 0.3 * rng.standard_normal((2_000, 16))
    values *= rng.uniform(0.5, 1.5, (2_000, 1))
    questions = (centres[:30] + 0.3 * rng.standard_normal((30, 16))).astype(np.float32)
    return small.write_vectors(tmp_path_factory.mktemp("vectors"), values, shard_passages=700), questions


def found_by(index, clustered, **changes):
    return find(*clustered, settings=retrieve_settings(index, **changes), threads=1, label="test")


def recall(clustered, index, **changes):
    """The share of the exact 10 that are found; their scores must be the exact ones."""
    hits, true = found_by(index, clustered, **changes), found_by("exact", clustered)
    for rows, scores, *expected in zip(*hits, *true, strict=True):
        exact_scores = dict(zip(*expected, strict=True))
        assert all(exact_scores.get(row, score) == score for row, score in zip(rows, scores, strict=True))
    assert (np.diff(hits.scores, axis=1) <= 0).all()
    return np.mean([np.isin(a, b).mean() for a, b in zip(true.rows, hits.rows, strict=True)])


@pytest.mark.parametrize(("index", "search", "least"), [
    ("Flat", "", 1),
    ("IVF16,PQ8x6np", "nprobe=8", 0.95),
    ("HNSW16", "efSearch=80", 0.98),
    ("OPQ8,IVF16,PQ8x4fs", "nprobe=8", 0.9),
    ("IVF16,SQ8", "nprobe=16", 0.99),
])  # fmt: skip
def test_approximate_indexes_find_most_and_score_exactly(index, search, least, clustered):
    assert recall(clustered, index, search=search) >= least


def test_settings_of_the_search_reach_it_and_build_no_other_index(clustered):
    """One cluster of 16 looked at finds less than all of them."""
    assert recall(clustered, "IVF16,Flat", search="nprobe=1") < recall(clustered, "IVF16,Flat", search="nprobe=16") == 1
    assert len(list(cache.root().rglob("index.faiss"))) == 1


@pytest.mark.parametrize("index", ["Flat", "IVF16,PQ8x6", "HNSW16", "RaBitQ"])
def test_a_kept_index_is_used_again(index, clustered, monkeypatch):
    first = found_by(index, clustered)
    monkeypatch.setattr(faiss_index, "build", lambda *a: pytest.fail("built again"))
    equal(found_by(index, clustered), first)


@pytest.mark.parametrize("index", ["OPQ8,IVF16,PQ8x4fs", "HNSW16", "IVF16,RaBitQ", "IVF16_HNSW8,SQ8"])
def test_an_index_that_is_built_again_has_the_same_bytes(index, clustered):
    vectors, _ = clustered
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(8)
    try:
        first, second = (faiss.serialize_index(faiss_index.build(vectors, retrieve_settings(index))) for _ in range(2))
        assert faiss.omp_get_max_threads() == 8
    finally:
        faiss.omp_set_num_threads(threads)
    np.testing.assert_array_equal(first, second)


def test_fewer_passages_than_asked_for(tmp_path):
    values = np.eye(3)
    settings, questions = retrieve_settings("HNSW16"), np.eye(3, dtype=np.float32)
    hits = find(small.write_vectors(tmp_path, values), questions, settings=settings, threads=1, label="t")
    assert hits.rows[:, :3].tolist() == [[0, 1, 2], [1, 0, 2], [2, 0, 1]]
    assert (hits.rows[:, 3:] == -1).all()


@pytest.mark.parametrize(("changes", "message"), [
    ({"index": "Exact"}, r"index: FAISS refuses 'Exact': .*could not parse index"),
    ({"index": "IVF1600,Flat"}, r"index: .* Number of training points \(1500\) should be at lea"),
    ({"index": "HNSW16,PQ8"}, r"index: FAISS refuses 'HNSW16,PQ8': it does not search by inner product"),
    ({"index": "IVF16,Flat", "search": "nprobe=0"}, r"faiss\.search: FAISS refuses 'nprobe=0': .*cur_nprobe > 0"),
])  # fmt: skip
def test_what_faiss_refuses_is_told_by_setting_and_value(changes, message, clustered):
    with pytest.raises(ValueError, match=rf"(?s)^retrieve\.{message}"):
        found_by(clustered=clustered, **{"index": "IVF16,Flat"} | changes)
    assert not list(cache.root().rglob("index.faiss")) or changes.get("search") == "nprobe=0"


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """The folder of a collection, and the lines that the commands encode, retrieve, probe and export said."""
    folder = tmp_path_factory.mktemp("collection")
    rows = small.passages()
    questions = [small.question(f"q{i}", f"where was w{i} born", [rows[i].text.split()[0]]) for i in range(9)]
    small.write_records(folder / "records", rows, questions, train=5)
    small.write_model(folder / "model")
    small.write_positives(
        folder / "positives",
        [Positive(q.id, rows[i].id, "given", None) for i, q in enumerate(questions)],
        [Distractor("q8", "p8", "pseudo", 0, "cut", "w1 w2", [])],
    )
    sections = {"encode": {"encode": small.ENCODE}, "retrieve": {"retrieve": small.RETRIEVE, "sets": small.SETS}}
    sections["probe"] = {
        "probe": {"annotated": False, "strategy": "pseudo", "also": [], "placebos": []},
        "sets": small.SETS,
    }
    for name, values in sections.items():
        small.write_config(folder / f"{name}.json", machine=small.MACHINE, **values)
    positives = {"positives": "positives", "distractors": "positives"}
    options = {
        "encode": {"config": "encode.json", "model": "model", "out": "vectors"},
        "retrieve": {"config": "retrieve.json", "model": "model", "vectors": "vectors", "out": "rankings"},
        "probe": {"config": "probe.json", "model": "model", "out": "pairs.parquet"} | positives,
        "export": {"ranking": "rankings/evaluate.parquet", "positives": "positives", "out": "exports"},
    }
    commands = [
        (stage, {f"--{n}": folder / path for n, path in (paths | {"records": "records"}).items()}, folder / "cache")
        for stage, paths in options.items()
    ]
    done = small.stages(*commands)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout.replace(str(folder), "").splitlines()


def test_stages_say_what_they_did(staged):
    folder, lines = staged
    assert lines == [
        "encode: 37 passages", "retrieve: ranked passages for 9 questions", "probe: scored the pairs of 4 questions",
        "export: 40 lines in /exports/run.trec", "export: 4 lines in /exports/qrels-ids.trec",
        "export: 19 lines in /exports/qrels-answers.trec",
    ]  # fmt: skip
    pairs = [(p.question_id, p.variant) for p in tables.rows(folder / "pairs.parquet", PairScore)]
    assert [question for question, variant in pairs if variant == "positive"] == ["q5", "q6", "q7", "q8"]
    assert [question for question, variant in pairs if variant == "distractor"] == ["q8"]


@pytest.mark.parametrize(("file", "text", "refused"), [
    ("passage_encoder/model.safetensors", "of another training", True), ("encoder.json", '{"title": "none", ', True),
    ("question_encoder/model.safetensors", "of another training", False), ("encoder.json", '{"scale": 3.0, ', False),
])  # fmt: skip
def test_vectors_of_an_earlier_passage_encoder_are_refused(staged, tmp_path, file, text, refused):
    """Between `train` and `encode` of a `dvc repro`, the folder of vectors is of the model before."""
    folder, _ = staged
    model = Path(shutil.copytree(folder / "model", tmp_path / "model"))
    settings = (model / "encoder.json").read_text().removeprefix("{")
    (model / file).write_text(text + settings if file == "encoder.json" else text)
    refusal = pytest.raises(ValueError, match=r"vectors was not made by the passage encoder of .*; run `dvc repro`")
    with refusal if refused else nullcontext():
        Vectors(folder / "vectors", folder / "records" / "passages.parquet", model)
    tables.write(tmp_path / "passages.parquet", Passage, small.passages()[::-1])
    with pytest.raises(ValueError, match=r"holds vectors of other passages than .*passages\.parquet has now; run"):
        Vectors(folder / "vectors", tmp_path / "passages.parquet")


def test_every_card_and_questions_in_parts_by_memory_make_the_bytes_of_one(staged, tmp_path, monkeypatch):
    """Memory for two questions makes the 5 for training three parts, and the 4 for evaluation two."""
    folder, _ = staged
    scanned, scan = [], exact._by_faiss
    monkeypatch.setattr(exact, "_by_faiss", lambda questions: scanned.append(len(questions)) or scan(questions))
    monkeypatch.setitem(exact.BLOCK_PASSAGES, "cpu", 5)
    options = {"settings": Retrieve(**small.RETRIEVE), "sets": Sets(**small.SETS), "hardware": Machine(**small.MACHINE)}
    for cards, memory in ((1, exact.RUNNING), (3, 2 * 24 * (small.RETRIEVE["depth"] + exact.SPARE))):
        monkeypatch.setattr(machine, "devices", lambda cards=cards: ["cpu"] * cards)
        monkeypatch.setattr(exact, "RUNNING", memory)
        retrieve(folder / "records", folder / "model", folder / "vectors", tmp_path / str(cards), **options)
    assert small.files_of(tmp_path / "3") == small.files_of(tmp_path / "1")
    assert scanned == [5, 4, *np.repeat([2, 2, 1, 2, 2], 3)]
