"""Benchmarks compare equal results, notice unequal ones, count as torch does and run."""

import importlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertModel, T5Config, T5ForConditionalGeneration

import benchmarks
from benchmarks import data, flops, gpu, runner, scale
from benchmarks.exact_search import Hits
from benchmarks.runner import Different, Row, Side, check, measure
from benchmarks.scale import Cost
from eadpr.runtime.machine import Machine
from tests import forked_python
from tests.repository import ROOT

pytestmark = pytest.mark.benchmarks


def first_changed(scores):
    return np.concatenate([scores[:1] + 1, scores[1:]])


def gradient_changed(result):
    loss, gradients = result
    name = max(gradients, key=lambda name: float(gradients[name].norm()))
    return loss, gradients | {name: gradients[name] * 1.01}


# What each benchmark's results look like with one thing wrong.
WRONG = {
    "evidence_scoring": first_changed, "training": gradient_changed, "passage_encoding": first_changed,
    "exact_search": lambda hits: Hits(hits.rows[:, ::-1], hits.scores),
    "bm25_ranking": lambda rankings: [rankings[0][1:], *rankings[1:]],
    "late_interaction": lambda scores: np.asarray(scores) + 0.01,
}  # fmt: skip


@pytest.mark.parametrize("name", benchmarks.NAMES)
def test_results_are_equal_and_a_wrong_one_is_noticed(name, tmp_path):
    if name in ("training", "passage_encoding", "late_interaction"):
        pytest.importorskip("sentence_transformers")
    module = importlib.import_module(f"benchmarks.{name}")
    count = 0
    for comparison in module.comparisons(module.QUICK, tmp_path):
        assert check(comparison)
        result = runner._result(comparison.ours)
        wrong = Side(comparison.ours.run, result=lambda result=result: WRONG[name](result))
        with pytest.raises(Different):
            check(comparison._replace(ours=wrong))
        with pytest.raises(Different):
            measure(comparison._replace(ours=wrong), 1)
        count += 1
    assert count


def test_a_benchmark_is_a_command(tmp_path):
    path = tmp_path / "rows.json"
    arguments = [sys.executable, "-m", "benchmarks", "bm25_ranking", "--quick", "--repeats", "2", "--rows", str(path)]
    done = subprocess.run(arguments, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [row] = [Row(**row) for row in json.loads(path.read_text())]
    assert (row.kind, row.bound, row.alike, len(row.ratios)) == ("time", 1.15, "same rankings with scores", 2)


BERT = BertConfig(
    vocab_size=50, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=48,
    attn_implementation="eager",
)  # fmt: skip
T5 = T5Config(
    vocab_size=70, d_model=32, d_kv=6, d_ff=40, num_layers=2, num_decoder_layers=2, num_heads=4,
    decoder_start_token_id=0, attn_implementation="eager",
)  # fmt: skip


def counted(run) -> int:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        run()
    return counter.get_total_flops()


def ids(length):
    return torch.ones((1, length), dtype=torch.int64)


def test_operations_of_bert_are_those_that_torch_counts():
    model = BertModel(BERT, add_pooling_layer=False).eval()
    assert flops.encoded(flops.bert(BERT), [7]) == counted(lambda: model(input_ids=ids(7)))
    expected = [counted(lambda n=n: model(input_ids=ids(n))) for n in (7, 20)]
    assert flops.encoded(flops.bert(BERT), [7, 20]) == sum(expected)


def test_operations_of_t5_are_those_that_torch_counts():
    model = T5ForConditionalGeneration(T5).eval()
    for source, target in ((9, 1), (12, 5)):
        expected = counted(lambda s=source, t=target: model(input_ids=ids(s), decoder_input_ids=ids(t)))
        assert flops.scored(flops.t5(T5), 70, [(source, target)]) == expected


@pytest.mark.parametrize("path", gpu.PATHS)
def test_every_path_runs_and_does_its_work(path, tmp_path, monkeypatch):
    monkeypatch.setenv("EADPR_CHECKPOINT_SECONDS", "1e9")  # what it sets goes with the test
    machine = Machine(**data.section("machine", threads=1, deterministic=False))
    monkeypatch.setattr(gpu, "settled", lambda: machine)  # not settled: other tests of this process have their own
    row = gpu.PATHS[path](gpu.QUICK, tmp_path)
    assert (len(row.seconds), row.units > 0, row.seconds[0] > 0) == (1, True, True)
    assert (row.flops is None) == (path == "search")


MIB = 2**20


def test_growth_by_hand():
    """2 s of starting at 100 passages; then 10 ms and 11 ms a passage; memory grows by 1 MiB for 900 passages more."""
    costs = [
        Cost("encode", 100, 2.0, 50 * MIB), Cost("other", 100, 1.0, MIB), Cost("encode", 200, 3.0, 60 * MIB),
        Cost("encode", 1_100, 13.0, 61 * MIB),
    ]  # fmt: skip
    growth = scale.growth(costs, "encode")
    assert (growth.sizes, growth.per_passage) == ([200, 1_100], pytest.approx([10_000, 11_000]))
    assert growth.resident == [60 * MIB, 61 * MIB]
    more = (scale.WIKIPEDIA - 1_100) / 900
    assert growth.seconds_of_wikipedia == pytest.approx(13 + 10 * more)
    assert growth.resident_of_wikipedia == pytest.approx((61 + more) * MIB)
    [row] = scale.table([cost for cost in costs if cost.stage == "encode"]).splitlines()[2:]
    assert row == f"| encode | 10,000 | 11,000 | 1.10 | 60 | 61 | {(13 + 10 * more) / 3600:,.1f} | 22.8 |"


def test_every_stage_runs_at_toy_size(tmp_path, monkeypatch):
    """The client of `forked_python` is measured here."""
    monkeypatch.setattr(sys, "executable", str(forked_python.folder() / "python"))
    costs = scale.measure_stages(scale.STAGES, 1_050, tmp_path, questions=5)
    assert [(cost.stage, cost.passages) for cost in costs] == [(stage.name, 1_050) for stage in scale.STAGES]
    assert all(cost.seconds > 0 and cost.resident > MIB for cost in costs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["annotator", "base"]
