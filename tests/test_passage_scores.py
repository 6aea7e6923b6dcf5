"""Scores of ranked passages for denoising: their scale, which reader gives them, what is mined in the end."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eadpr.readers import extractive, kinds
from eadpr.readers.denoise import PassageScore
from eadpr.readers.passage_scores import ScoringInputs, make_scorer, relative_scores, score_passages
from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Fold, Passage, Positive, Question
from tests.killed import die_in_second_shard, made_shards
from tests.reading_toy import READER, train, write_reading
from tests.toy_records import write_ranking
from tests.training_toy import MACHINE, NAMES

pytestmark = [pytest.mark.readers, pytest.mark.usefixtures("one_thread")]

EVERYONE = range(len(NAMES))
LEARNT = [i for i in EVERYONE if i % 4 != 3]


def half_of(i: int) -> int:
    return i // 4 % 2


def ranked(i: int) -> list[str]:
    """A passage that is no answer, one that is an answer no one knows, and, unless i is 0, the positive."""
    return [f"n{i}", f"f{i}", f"p{i}"] if i else ["n0", "f0"]


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """Of the questions that readers do not learn from one is for validation, the others of the annotator. `wider`
    ranks passages that no reader has seen, too."""
    folder = write_reading(tmp_path_factory.mktemp("toy"))
    roles = {3: "validation"} | dict.fromkeys(LEARNT, "train")
    folds = [Fold(f"q{i}", roles.get(i, "annotator"), half_of(i)) for i in EVERYONE]
    tables.write(folder / "positives" / "folds.parquet", Fold, folds)
    path = folder / "records" / "passages.parquet"
    known = list(tables.rows(path, Passage))
    text = "{0} was born in Zork. The birthplace of {0} is often asked about. {0} liked long walks."
    unknown = [Passage(f"f{i}", name, text.format(name), None) for i, name in enumerate(NAMES)]
    tables.write(path, Passage, [*known, *unknown])
    write_ranking(folder / "wider", train={f"q{i}": ranked(i) for i in EVERYONE})
    return folder


@pytest.fixture(scope="module")
def readers(toy, tmp_path_factory):
    """Of half 0 and of half 1."""
    out = tmp_path_factory.mktemp("readers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EADPR_CACHE", str(out / "cache"))
        for half in (0, 1):
            train(toy, out / f"of{half}", READER, half=half, steps=60)
    return out / "of0" / "reader", out / "of1" / "reader"


def score(toy: Path, readers: tuple[Path, Path], out: Path, ranking: str = "wider") -> dict[tuple[str, str], float]:
    inputs = ScoringInputs(toy / "records", toy / "positives", toy / ranking, readers)
    count = score_passages(inputs, out, hardware=MACHINE)
    rows = list(tables.rows(out, PassageScore))
    assert len(rows) == count
    return {(row.question_id, row.passage_id): row.score for row in rows}


def test_a_score_by_hand():
    odds = np.array([2.0, 2.0 + math.log(9), 2.0 - math.log(9), 1e5, -1e5], np.float32)
    np.testing.assert_allclose(relative_scores(odds, 2.0), [0.5, 0.9, 0.1, 1.0, 0.0], rtol=1e-6)


LOGIT = st.floats(-50, 50, width=32)


@given(st.lists(LOGIT, min_size=1, max_size=5), LOGIT, st.integers(-100, 100))
def test_a_score_is_a_softmax_of_two_and_has_no_zero(logits, best, more):
    found = relative_scores(np.array(logits), best)
    naive = [torch.tensor([logit, best], dtype=torch.float64).softmax(0)[0].item() for logit in logits]
    np.testing.assert_allclose(found, naive, rtol=1e-9)
    np.testing.assert_allclose(relative_scores(np.array(logits) + more, best + more), found, rtol=1e-9)


def test_scores_equal_those_of_passages_read_one_by_one(toy, readers, tmp_path):
    """q0's positive is not ranked."""
    found = score(toy, readers, tmp_path / "scores.parquet")
    asked = [i for i in EVERYONE if i in LEARNT or i == 3]
    assert list(found) == [(f"q{i}", passage_id) for i in asked for passage_id in ranked(i)]
    questions = {row.id: row.question for row in tables.rows(toy / "records/questions.parquet", Question)}
    loaded = [kinds.load(folder) for folder in readers]
    for i in asked:
        reader = loaded[half_of(i)]

        def logit(passage_id: str, reader=reader, i=i) -> float:
            store = PassageStore(toy / "records/passages.parquet")
            path = tuple(store.rows([passage_id]).tolist())
            (alone,) = reader.inputs(questions[f"q{i}"], [path], reader.load_passages(store))
            with torch.no_grad():
                return extractive.compute_logits(reader, [alone], MACHINE)[0].paths.item()

        for passage_id in ranked(i):
            naive = 1 / (1 + math.exp(logit(f"p{i}") - logit(passage_id)))
            assert found[f"q{i}", passage_id] == pytest.approx(naive, abs=1e-4)
        assert found.get((f"q{i}", f"p{i}"), 0.5) == 0.5


def test_the_best_of_several_positives_is_what_others_are_compared_with(toy, readers, tmp_path):
    rows = [Positive(f"q{i}", passage_id, "given", None) for i in EVERYONE for passage_id in (f"n{i}", f"p{i}")]
    positives = tmp_path / "positives"
    tables.write(positives / "positives.parquet", Positive, rows)
    tables.write(positives / "folds.parquet", Fold, tables.rows(toy / "positives" / "folds.parquet", Fold))
    inputs = ScoringInputs(toy / "records", positives, toy / "wider", readers)
    score_passages(inputs, tmp_path / "two.parquet", hardware=MACHINE)
    score(toy, readers, tmp_path / "one.parquet")
    assert files.sha256(tmp_path / "two.parquet") == files.sha256(tmp_path / "one.parquet")


def test_each_half_is_scored_by_its_reader(toy, readers, tmp_path):
    """The reader named first scores half 0."""
    first, second = readers
    crossed = score(toy, (second, first), tmp_path / "crossed.parquet")
    alone = [score(toy, (one, one), tmp_path / f"{one.parent.name}.parquet") for one in (second, first)]
    for key, value in crossed.items():
        assert value == alone[half_of(int(key[0][1:]))][key]
    assert alone[0] != alone[1]


def test_several_passes_over_the_passages_of_a_question(toy, readers, monkeypatch):
    store = PassageStore(toy / "records/passages.parquet")
    logits = make_scorer(kinds.load(readers[0]), store, MACHINE)
    asked = next(tables.rows(toy / "records/questions.parquet", Question))
    rows = list(range(len(store)))
    whole = logits(asked, rows)
    for tokens, threads in ((100, 1), (100, 2)):
        monkeypatch.setitem(extractive.TOKENS, "cpu", tokens)
        torch.set_num_threads(threads)
        np.testing.assert_allclose(logits(asked, rows), whole, atol=1e-5)


def test_other_readers_do_not_go_on_where_some_were_killed(toy, readers, tmp_path, monkeypatch):
    out = tmp_path / "scores.parquet"
    die_in_second_shard(lambda: score(toy, readers, out), monkeypatch)
    assert made_shards(lambda: score(toy, readers[::-1], out), monkeypatch)[0] == "000000.parquet"
    assert made_shards(lambda: score(toy, readers, out), monkeypatch)[0] == "000001.parquet"
