"""Paths: the beam against exhaustive search, ties, blank passages, the stages from model to metrics, metrics."""

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.runtime.files import write_json
from eadpr.runtime.section import Sets
from eadpr.search.config import Encode
from eadpr.search.encode import encode
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage, Question
from eadpr.training.encoder import load
from eadpr.training.padding import pad
from eadpr.two_hops.config import Beam, RankedPath
from eadpr.two_hops.evaluate import path_values
from eadpr.two_hops.hops import SETTINGS, hop_texts
from eadpr.two_hops.retrieve import find_paths, rank_passages, retrieve_paths
from tests import small_collection as small
from tests.multihop_toy import BEAM, TWO_HOP, write_all
from tests.training_toy import MACHINE

pytestmark = pytest.mark.two_hops
SETS = Sets(train=["toy/train"], evaluate=["toy/dev"], annotator=[])
ENCODE = Encode.model_validate(small.ENCODE)


def exhaustive(first, second, blank, names, count):
    """All ordered pairs of one question: scores first (P,) and second (P, P) by hop 1, as float32."""
    paths = []
    for a, b in permutations(range(len(first)), 2):
        first_score = np.float32(-np.inf if blank[a] else first[a])
        paths.append((-float(first_score + np.float32(second[a, b])), names[a], names[b], a, b))
    return [(a, b, -score) for score, _, _, a, b in sorted(paths)][:count]


def paths_of(values, questions, seconds, blank, names, folder, *, width, count):
    """Paths of questions (Q, D); `seconds` (Q, P, D) are hop 2's queries after each passage."""
    stored = small.write_vectors(folder, values)
    store = SimpleNamespace(
        ids=lambda rows: [names[i] for i in rows], texts=lambda rows: ["" if blank[i] else "text" for i in rows]
    )
    second, beam = lambda numbers, rows: seconds[numbers, rows], Beam(width=width, paths=count)
    rankings = find_paths(stored, store, questions, second, beam, lambda _: None)
    return [[(*rows, score) for rows, _, score in ranking] for ranking in rankings]


@given(data=st.data())
def test_a_beam_as_wide_as_the_corpus_is_exhaustive_search(data, tmp_path_factory):
    """Small integers, so that most scores tie and every product is exact; names in another order than rows."""
    rows, dim, many = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    draw = np.random.default_rng(data.draw(st.integers(0, 1_000)))
    values = draw.integers(-2, 3, (rows, dim))
    questions = draw.integers(-2, 3, (many, dim)).astype(np.float32)
    seconds = draw.integers(-2, 3, (many, rows, dim)).astype(np.float32)
    blank = draw.random(rows) < 0.2
    names = [f"p{i}" for i in draw.permutation(rows)]
    count = data.draw(st.integers(1, rows * rows))
    folder = tmp_path_factory.mktemp("v")
    width = rows + data.draw(st.integers(0, 2))
    paths = paths_of(values, questions, seconds, blank, names, folder, width=width, count=count)
    for q in range(many):
        assert paths[q] == exhaustive(values @ questions[q], seconds[q] @ values.T, blank, names, count)


def test_a_narrow_beam_by_hand(tmp_path):
    """Hop 1 scores 3 2 1 0, so that the beam of 2 holds a and b. Behind a they are 9 1 2 0, a itself left out; behind b
    0 0 0 5."""
    values = np.eye(4)
    questions = np.array([[3, 2, 1, 0]], np.float32)
    seconds = np.array([[[9, 1, 2, 0], [0, 0, 0, 5], [9, 9, 9, 9], [9, 9, 9, 9]]], np.float32)
    blank = np.zeros(4, bool)
    paths = paths_of(values, questions, seconds, blank, "abcd", tmp_path, width=2, count=9)
    assert paths == [[(1, 3, 7.0), (0, 2, 5.0), (0, 1, 4.0), (1, 0, 2.0)]]
    blank[1] = True
    paths = paths_of(values, questions, seconds, blank, "abcd", tmp_path, width=2, count=3)
    assert paths == [[(0, 2, 5.0), (0, 1, 4.0), (1, 0, -np.inf)]]


def test_the_ranking_of_paths_has_each_passage_once_at_its_first_place():
    paths = [
        RankedPath("q", 1, ["b", "a"], [2.0, 1.0], 3.0), RankedPath("q", 2, ["b", "c"], [2.0, 0.5], 2.5),
        RankedPath("q", 3, ["c", "a"], [1.0, 0.5], 1.5), RankedPath("q", 4, ["d", "b"], [0.0, 0.5], 0.5),
    ]  # fmt: skip
    rows = [(row.passage_id, row.rank, row.score) for row in rank_passages(paths)]
    assert rows == [("b", 1, 3.0), ("a", 2, 3.0), ("c", 3, 2.5), ("d", 4, 0.5)]
    assert list(rank_passages([])) == []


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A toy with `model`, as `base` but for two hops, and its `vectors`."""
    folder = write_all(tmp_path_factory.mktemp("toy"))
    (folder / "base").rename(folder / "model")
    write_json(folder / "model" / SETTINGS, {"query_tokens": TWO_HOP.query_tokens})
    encode(folder / "records/passages.parquet", folder / "model", folder / "vectors", settings=ENCODE, hardware=MACHINE)
    return folder


def cut_to(toy, folder, query_tokens):
    """The same, but trained with hop 2's queries cut to so many tokens."""
    (folder / "model").mkdir(parents=True)
    for name in ("records", "vectors", *(f"model/{p.name}" for p in (toy / "model").iterdir())):
        if not name.endswith(SETTINGS):
            (folder / name).symlink_to(toy / name)
    write_json(folder / "model" / SETTINGS, {"query_tokens": query_tokens})
    return folder


def retrieve(toy, out, beam=BEAM) -> int:
    paths = (toy / name for name in ("records", "model", "vectors"))
    return retrieve_paths(*paths, out / "ranking", beam=beam, sets=SETS)


@pytest.mark.parametrize("query_tokens", [TWO_HOP.query_tokens, 12])
def test_paths_are_those_of_the_encoder_asked_pair_by_pair(toy, tmp_path, query_tokens):
    """Exhaustive search with vectors of float32, one query at a time, is within float16's rounding of the stage's."""
    toy = cut_to(toy, tmp_path / "own", query_tokens)
    passages = list(tables.rows(toy / "records/passages.parquet", Passage))
    questions = {q.id: q for q in tables.rows(toy / "records/questions.parquet", Question)}
    assert retrieve(toy, tmp_path, BEAM.model_copy(update={"width": len(passages), "paths": 5})) == len(questions)
    paths = list(tables.rows(tmp_path / "ranking/paths/evaluate.parquet", RankedPath))
    assert [(p.question_id, p.rank) for p in paths] == [(f"q{i}", r) for i in range(3, 20, 4) for r in range(1, 6)] + [
        ("c3", r) for r in range(1, 6)
    ]
    encoder = load(toy / "model", "question")
    tokens = encoder.tokenizer

    def vector(*texts, cut=None):
        ids = tokens(*texts, truncation="longest_first" if cut else False, max_length=cut)["input_ids"]
        return encoder(*pad([ids], 0)).detach().numpy()[0]

    matrix = np.stack([vector(*([p.title, p.text] if p.title else [p.text])) for p in passages])
    row = {p.id: i for i, p in enumerate(passages)}
    for question_id in ("q3", "c3"):
        question = questions[question_id].question.rstrip("?")
        first = matrix @ vector(question)
        first[row["blank"]] = -np.inf
        second = np.stack([matrix @ vector(question, p.text or p.title, cut=query_tokens) for p in passages])
        total = first[:, None] + second
        np.fill_diagonal(total, -np.inf)
        best = np.sort(total.ravel())[::-1]
        for path in (p for p in paths if p.question_id == question_id):
            a, b = (row[i] for i in path.passage_ids)
            assert path.hop_scores == pytest.approx([first[a], second[a, b]], rel=2e-3)
            assert path.score == pytest.approx(sum(path.hop_scores))
            assert path.score == pytest.approx(best[path.rank - 1], rel=2e-3)


def test_a_passage_without_text_stands_for_its_title_in_a_query_and_begins_no_good_path(toy, tmp_path):
    store = PassageStore(toy / "records/passages.parquet")
    assert hop_texts(store, store.rows(["blank", "n0"])) == ["Ardco", "Alman wrote letters."]
    count = len(store)
    retrieve(toy, tmp_path, BEAM.model_copy(update={"width": count, "paths": count * (count - 1)}))
    scores = {}
    for path in tables.rows(tmp_path / "ranking/paths/evaluate.parquet", RankedPath):
        scores.setdefault(path.passage_ids[0] == "blank", []).append(path.score)
    assert set(scores[True]) == {-np.inf}
    assert np.isfinite(scores[False]).all()


def test_bad_inputs_are_refused(toy, tmp_path):
    folder = tmp_path / "own"
    (folder / "records").mkdir(parents=True)
    for name in ("model", "vectors"):
        (folder / name).symlink_to(toy / name)
    rows = list(tables.rows(toy / "records/passages.parquet", Passage))
    tables.write(folder / "records/passages.parquet", Passage, rows[1:])
    with pytest.raises(ValueError, match=r"vectors holds vectors of other passages than .*; run `dvc repro`"):
        retrieve(folder, tmp_path)
    assert not (tmp_path / "ranking").exists()


def question(question_id: str, hops: str | None, kind: str | None = "bridge") -> Question:
    hop_ids = None if hops is None else hops.split()
    return Question(question_id, "who?", ["x"], "string", None, None, kind, hop_ids)


def test_a_question_without_paths_counts_as_wrong_and_one_without_hops_not_at_all():
    questions = [question("none", None), question("q", "a b"), question("left", "a b")]
    paths = [RankedPath(question_id, 1, ["a", "b"], [1.0, 1.0], 2.0) for question_id in ("none", "q")]
    for values in path_values(paths, questions, [2]).values():
        assert (values.rows.tolist(), values.values.tolist()) == ([1, 2], [1.0, 0.0])


PASSAGES = "abcde"
Pairs = st.lists(st.permutations(PASSAGES).map(lambda p: tuple(p[:2])), max_size=6, unique=True)


@given(st.lists(st.tuples(st.sets(st.sampled_from(PASSAGES), min_size=1, max_size=3), Pairs), min_size=1, max_size=5))
def test_against_naive_loops(cases):
    questions = [question(f"q{i}", " ".join(sorted(hops))) for i, (hops, _) in enumerate(cases)]
    rows = [
        RankedPath(f"q{i}", rank, list(pair), [0.0, 0.0], 0.0)
        for i, (_, pairs) in enumerate(cases)
        for rank, pair in enumerate(pairs, start=1)
    ]
    values = path_values(rows, questions, [2, 6, 10])
    for k in (2, 6, 10):
        for i, (hops, pairs) in enumerate(cases):
            best = pairs[: k // 2]
            passages = {passage for pair in best for passage in pair}
            assert values[f"all{k}"].values[i] == (hops <= passages)


@pytest.mark.parametrize(("hops", "all_at", "message"), [
    ("a b", [2, 5], "evaluate.all_at: 5 is odd"),
    (None, [2], r"no question of sets\.evaluate has hops"),
])  # fmt: skip
def test_what_cannot_be_measured_is_refused(hops, all_at, message):
    with pytest.raises(ValueError, match=message):
        path_values([], [question("q", hops)], all_at)
