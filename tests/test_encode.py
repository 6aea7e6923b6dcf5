"""Encoding: batches, shards, what is kept between runs, and what a kill leaves behind."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.runtime import cache, files, jobs, machine
from eadpr.search import encode as encoding
from eadpr.search.config import Encode
from eadpr.search.vectors import Vectors
from eadpr.settings.resolve import load
from eadpr.storage import tables
from eadpr.storage.records import Passage
from eadpr.training import encoder as text_encoder
from eadpr.training.padding import batches
from tests import small_collection as small
from tests.repository import ROOT
from tests.training_toy import MACHINE

SETTINGS = Encode(**small.ENCODE)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return small.write_model(tmp_path_factory.mktemp("models") / "arm")


@pytest.fixture
def passages(tmp_path):
    path = tmp_path / "records" / "passages.parquet"
    tables.write(path, Passage, small.passages())
    return path


def run(passages, model, out, settings=SETTINGS):
    encoding.encode(passages, model, out, settings=settings, hardware=MACHINE)
    return small.files_of(out)


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 120))
def test_batches_hold_every_text_once_within_the_budget(lengths, budget):
    grouped = [list(batch) for batch in batches(lengths, budget)]
    assert sorted(i for batch in grouped for i in batch) == list(range(len(lengths)))
    for batch in grouped:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget
    assert [lengths[i] for batch in grouped for i in batch] == sorted(lengths, reverse=True)


def test_every_row_is_its_passage_encoded_alone(passages, model, tmp_path):
    run(passages, model, tmp_path / "vectors")
    stored = Vectors(tmp_path / "vectors")
    encoder = text_encoder.load(model, "passage")
    rows = small.passages()
    assert (stored.rows, stored.dim) == (37, 16)
    for i, passage in enumerate(rows):
        alone = encoding.embed(encoder, encoder.passage_ids([passage.title], [passage.text]))[0]
        np.testing.assert_allclose(stored.take(np.array([i]))[0], alone, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(("cards", "workers"), [(1, 3), (2, 1), (3, 2)])
def test_any_number_of_cards_and_workers_gives_the_bytes_of_one(cards, workers, passages, model, tmp_path, monkeypatch):
    alone = run(passages, model, tmp_path / "one")
    files.discard(cache.root())
    monkeypatch.setattr(machine, "devices", lambda: ["cpu"] * cards)
    monkeypatch.setitem(jobs.WORKERS, "cpu", workers)
    assert run(passages, model, tmp_path / "several") == alone


def test_an_arm_with_the_same_passage_encoder_encodes_nothing(passages, model, tmp_path, monkeypatch):
    first = run(passages, model, tmp_path / "one")
    twin = tmp_path / "twin"
    shutil.copytree(model, twin)
    shutil.rmtree(twin / "question_encoder")
    monkeypatch.setattr(text_encoder, "load", lambda *a: pytest.fail("loaded an encoder"))
    assert run(passages, twin, tmp_path / "two") == first
    shard = "vectors-00000.npy"
    assert (tmp_path / "one" / shard).stat().st_ino == (tmp_path / "two" / shard).stat().st_ino


@pytest.mark.parametrize("change", ["model", "passages", "settings"])
def test_anything_that_decides_bytes_makes_new_vectors_and_leaves_the_old(change, passages, model, tmp_path):
    old_files = run(passages, model, tmp_path / "vectors")
    old_cache = small.files_of(cache.root())
    settings = SETTINGS
    if change == "model":
        model = small.write_model(tmp_path / "other", seed=1)
    elif change == "passages":
        tables.write(passages, Passage, reversed(small.passages()))
    else:
        settings = SETTINGS.model_copy(update={"token_budget": 32})
    assert run(passages, model, tmp_path / "vectors", settings)["vectors.json"] != old_files["vectors.json"]
    now = small.files_of(cache.root())
    assert {name: now[name] for name in old_cache} == old_cache  # nothing was written through a link
    assert len(now) > len(old_cache)


def test_a_run_goes_on_with_what_a_killed_one_left(passages, model, tmp_path):
    """The first of three shards is whole, the second half written under a name of its own, the third cut off."""
    undisturbed = run(passages, model, tmp_path / "one")
    first, second, third = sorted(cache.root().rglob("vectors-*.npy"))
    content, first_time = third.read_bytes(), first.stat().st_mtime_ns
    third.unlink()
    third.write_bytes(content[: len(content) // 2])
    ended = subprocess.Popen(["true"])
    ended.wait()
    second.rename(second.with_name(f".{second.name}.{ended.pid}.tmp"))
    assert run(passages, model, tmp_path / "two") == undisturbed
    assert first.stat().st_mtime_ns == first_time
    assert not list(cache.root().rglob("*.tmp"))


@pytest.mark.parametrize("value", [65_520.0, -1e9, float("nan"), float("inf")])
def test_what_float16_cannot_hold_is_refused_by_passage(value):
    vectors = np.ones((3, 4), np.float32)
    vectors[1, 2] = value
    with pytest.raises(ValueError, match="passage 'b' has a component"):
        encoding.to_float16(vectors, ["a", "b", "c"])


def test_auto_is_what_suits_the_device_and_stands_in_the_manifest(passages, model, tmp_path):
    default = encoding.resolve_auto(Encode(**load(ROOT / "params.yaml")["encode"]))
    assert default == Encode(shard_passages=32_768, window_passages=4_096, token_budget=2_048)
    auto = Encode(shard_passages=10, window_passages="auto", token_budget="auto")
    auto_files = run(passages, model, tmp_path / "auto", auto)
    numbers = Encode(shard_passages=10, window_passages=10, token_budget=2_048)
    assert auto_files == run(passages, model, tmp_path / "numbers", numbers)
    assert json.loads(auto_files["vectors.json"])["encode"] == numbers.model_dump()
    assert encoding.resolve_auto(auto.model_copy(update={"shard_passages": 10_000})).window_passages == 4_096


@pytest.mark.parametrize(
    ("gib", "tokens"), [(8, 16_384), (15.8, 32_768), (23.6, 65_536), (79.1, 262_144), (200, 262_144)]
)
def test_tokens_of_a_card_grow_with_its_memory(gib, tokens):
    assert encoding.card_tokens(int(gib * 2**30)) == tokens
