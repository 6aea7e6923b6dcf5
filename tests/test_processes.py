"""Several processes take the steps of one: two over gloo on loopback, started as users start them."""

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from eadpr.runtime import cache, files
from eadpr.training import contrastive, forward, loop, processes
from eadpr.training.arm import ArmSettings
from eadpr.training.config import EncoderSettings
from eadpr.training.encoder import load_pair
from eadpr.training.state import TrainingState
from tests import forked_python
from tests.trained_together import CASES, train
from tests.training_toy import EADPR, MACHINE, SETTINGS, TRAIN, batcher_of

pytestmark = pytest.mark.usefixtures("one_thread")

LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def two(toy, tmp_path_factory):
    """The folder of two processes' trainings."""
    out = tmp_path_factory.mktemp("two")
    env = LOOPBACK | {"EADPR_CACHE": str(tmp_path_factory.mktemp("cache")), "WORLD_SIZE": "2", processes.STARTED: "x"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}  # as torchrun tells it

    def process(rank: int) -> subprocess.CompletedProcess:
        return forked_python.python("-m", "tests.trained_together", toy, out, **env, RANK=str(rank))

    forked_python.folder()
    with ThreadPoolExecutor(2) as both:
        for done in both.map(process, range(2)):
            assert done.returncode == 0, done.stderr
    return out


def weights(model: Path) -> dict[str, torch.Tensor]:
    state = {}
    for side in ("question", "passage"):
        tensors = load_file(model / f"{side}_encoder" / "model.safetensors")
        state |= {f"{side} {name}": tensor for name, tensor in tensors.items()}
    return state


def columns(out: Path) -> dict[str, np.ndarray]:
    """The logged values by series."""
    paths = sorted((out / "log" / "plots" / "metrics").rglob("*.tsv"))
    return {path.relative_to(out).as_posix(): np.loadtxt(path, skiprows=1) for path in paths}


def assert_same_training(reference: Path, out: Path) -> None:
    expected, actual = weights(reference / "model"), weights(out / "model")
    for name in expected | actual:
        torch.testing.assert_close(actual[name], expected[name], atol=1e-5, rtol=0)
    expected, actual = columns(reference), columns(out)
    assert list(expected) == list(actual)
    for name, values in expected.items():
        np.testing.assert_allclose(actual[name], values, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_two_processes_end_with_the_weights_of_one(toy, two, tmp_path, case):
    train(toy, tmp_path, case)
    assert_same_training(tmp_path, two / case)
    base, after = weights(toy / "base"), weights(tmp_path / "model")
    assert max((after[name] - base[name]).abs().max().item() for name in base) > 1e-3


def test_two_processes_repeat_themselves_and_go_on_where_they_died(two):
    assert files.tree_sha256(two / "again") == files.tree_sha256(two / "eadpr")
    assert files.tree_sha256(two / "dropout") == files.tree_sha256(two / "dropout again")
    assert files.tree_sha256(two / "dropout") != files.tree_sha256(two / "eadpr")


def test_a_stage_by_two_processes_writes_once_what_one_writes(toy, tmp_path):
    changes = {"dropout": 0.0, "attention_dropout": 0.0, "adam_eps": 1e-3}
    for number in (1, 2):
        train = TRAIN.model_copy(update=changes | {"processes": number})
        encoder = EncoderSettings(**SETTINGS.model_dump(include=EncoderSettings.model_fields.keys()))
        sections = {"loss": EADPR, "train": train, "encoder": encoder, "machine": MACHINE}
        config, out = tmp_path / f"{number}.json", tmp_path / str(number)
        files.write_json(config, {name: section.model_dump() for name, section in sections.items()})
        paths = {"config": config, "records": toy / "records", "examples": toy / "examples", "init": toy / "base"}
        paths |= {"out": out / "model", "log": out / "log"}
        options = [word for name, path in paths.items() for word in (f"--{name}", path)]
        done = forked_python.python("-m", "stages.train", *options, **LOOPBACK)
        assert (done.returncode, done.stdout) == (0, "train: 6 steps\n"), done.stderr
        assert done.stderr.count("train model: 6 of 6 steps") == 1
    assert_same_training(tmp_path / "1", tmp_path / "2")
    assert not list((cache.root() / "train").glob("*/*"))  # no checkpoint left


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 4), st.integers(1, 100))
def test_each_row_is_one_process_s(lengths, count, tokens):
    ids, rows = [[0] * n for n in lengths], []
    for rank in range(count):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(processes, "rank", lambda rank=rank: rank)
            patch.setattr(processes, "count", lambda: count)
            pieces = forward.cut_pieces(None, ids, tokens)
        assert all(piece.ids == [ids[row] for row in piece.rows] for piece in pieces)
        rows += [row for piece in pieces for row in piece.rows]
    assert sorted(rows) == list(range(len(lengths)))


def test_processes_drop_other_units_out_and_the_first_those_of_one_alone(toy, monkeypatch):
    seeds = []
    for rank in range(3):
        encoders = load_pair(toy / "base", SETTINGS)
        batcher = batcher_of(toy)
        task = contrastive.task(batcher, batcher, ArmSettings(EADPR, TRAIN, SETTINGS, MACHINE), 4)
        with monkeypatch.context() as patch:
            patch.setattr(processes, "rank", lambda rank=rank: rank)
            patch.setattr(torch, "manual_seed", lambda seed, inner=torch.manual_seed: seeds.append(seed) or inner(seed))
            loop.take_step(TrainingState(encoders, TRAIN), task, batcher.sampled(0))
    assert (seeds[0], len(set(seeds))) == (loop.step_seed(TRAIN.seed, 0), 3)


@pytest.mark.parametrize(("number", "cards"), [(3, 0), ("auto", 3)])
def test_several_are_launched_with_the_same_options(number, cards, monkeypatch):
    commands = []
    monkeypatch.setattr(os, "execv", lambda path, command: commands.append((path, command[1:])))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    monkeypatch.setattr(sys, "argv", ["stages/train.py", "--out", "a b"])
    processes.launch("stages.train", 1)
    monkeypatch.setenv(processes.STARTED, "x")  # as torchrun does
    processes.launch("stages.train", number)
    assert commands == []
    monkeypatch.delenv(processes.STARTED)
    monkeypatch.setenv("WORLD_SIZE", "3")  # left over
    with processes.group():
        assert processes.count() == 1
    processes.launch("stages.train", number)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3"]
    assert commands == [(sys.executable, [*torchrun, "-m", "--", "stages.train", "--out", "a b"])]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match=r"^train\.processes is 2, but there are 1 GPUs; set it to auto or at most 1$"):
        processes.launch("stages.train", 2)
