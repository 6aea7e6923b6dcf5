"""The benchmark of a GPU runs on a CPU at toy size, and counts the operations that torch counts."""

import os
import re
import subprocess
import sys

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertModel, T5Config, T5ForConditionalGeneration

from benchmarks import data, flops, gpu
from tests.repository import ROOT

pytestmark = pytest.mark.nightly

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
    monkeypatch.setattr(gpu, "settled", lambda: gpu_machine())
    row = gpu.PATHS[path](gpu.QUICK, tmp_path)
    assert (len(row.seconds), row.units > 0, row.seconds[0] > 0) == (1, True, True)
    assert (row.flops is None) == (path == "search")


def gpu_machine():
    """Without settling it: other tests of this process have their own."""
    from eadpr.runtime.machine import Machine

    return Machine(**data.section("machine", threads=1, deterministic=False))


def test_it_is_a_command_whose_sizes_are_options(tmp_path):
    arguments = ["encoding", "--quick", "--passages", "20", "--repeats", "2", "--folder", str(tmp_path)]
    command = [sys.executable, "-m", "benchmarks.gpu", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("| encoding |")]
    cells = r"\| encoding \| 20 passages of \d+ tokens \| \S+ \(\S+ – \S+\) \| \S+ passages \| \S+ \| \S+% \|"
    assert re.match(cells, line)
    assert list(tmp_path.iterdir()) == []
