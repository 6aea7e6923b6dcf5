"""Every benchmark compares equal results, notices unequal ones, and can be run; speed is not asserted anywhere."""

import importlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import benchmarks
from benchmarks import __main__ as command
from benchmarks import runner
from benchmarks.exact_search import Hits
from benchmarks.runner import Comparison, Different, Row, Side, Worker, check, equal, measure
from tests.repository import ROOT

pytestmark = pytest.mark.nightly


def first_changed(scores):
    return np.concatenate([scores[:1] + 0.01, scores[1:]])


def gradient_changed(found):
    loss, gradients = found
    name = max(gradients, key=lambda name: float(gradients[name].norm()))
    return loss, gradients | {name: gradients[name] * 1.01}


# What each benchmark's results look like with one thing wrong.
WRONG = {
    "evidence_scoring": first_changed, "training": gradient_changed, "passage_encoding": first_changed,
    "exact_search": lambda hits: Hits(hits.rows[:, ::-1], hits.scores),
    "bm25_ranking": lambda rankings: [rankings[0][1:], *rankings[1:]],
    "has_answer": lambda verdicts: [[not verdicts[0][0], *verdicts[0][1:]], *verdicts[1:]],
    "preparation": lambda count: count - 1, "noop_repro": lambda found: (["prepare"], found[1]),
    "help_time": lambda shown: "",
}  # fmt: skip


def test_every_benchmark_is_tested():
    assert sorted(WRONG) == sorted(benchmarks.NAMES)


@pytest.mark.parametrize("name", WRONG)
def test_results_are_equal_and_a_wrong_one_is_noticed(name, tmp_path):
    if name in ("training", "passage_encoding"):
        pytest.importorskip("sentence_transformers")
    module = importlib.import_module(f"benchmarks.{name}")
    count = 0
    for comparison in module.comparisons(module.QUICK, tmp_path):
        assert check(comparison)
        found = runner._result(comparison.ours)
        wrong = Side(comparison.ours.run, result=lambda found=found: WRONG[name](found))
        with pytest.raises(Different):
            check(comparison._replace(ours=wrong))
        with pytest.raises(Different):
            measure(comparison._replace(ours=wrong), 1)
        count += 1
    assert count


def test_a_benchmark_is_a_command(tmp_path):
    path = tmp_path / "rows.json"
    arguments = [sys.executable, "-m", "benchmarks", "has_answer", "--quick", "--repeats", "2", "--rows", str(path)]
    done = subprocess.run(arguments, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [row] = [Row(**row) for row in json.loads(path.read_text())]
    assert (row.kind, row.bound, row.alike, len(row.ratios)) == ("speed", 20, "same verdicts", 2)


def comparison(goal, ours, theirs):
    """The times of the sides are what they say they are."""
    return Comparison("path", "peer", goal, "items", ours, theirs, equal("results"))


ROWS, SCORES = np.array([[4, 7, 2]]), np.array([[3.0, 2.0, 1.0]], np.float32)


def allocate(most, mib):
    """Work that holds so much memory while it runs, in a process that may take `most` more."""
    runner.limit_memory(most * 2**20)
    return lambda: len(np.ones(mib * 2**17))


def test_a_worker_keeps_its_memory_limit(capfd):
    with Worker(__name__, "allocate", most=64, mib=8) as worker:
        assert [worker(), worker()] == [2**20] * 2
        assert worker.resident > 8 * 2**20
    with Worker(__name__, "allocate", most=64, mib=512) as worker, pytest.raises(MemoryError, match="ended with 1"):
        worker()
    assert "Unable to allocate 512. MiB" in capfd.readouterr().err


def test_the_table_is_put_into_the_document():
    row = Row("path", "peer", "speed", 2.0, "items", 1_000, 1.0, 3.0, [3.0, 2.5, 4.0], "same")
    [line] = [line for line in runner.table([row]).splitlines() if line.startswith("| path | peer | 1,000")]
    assert line.split(" | ")[2:8] == ["1,000 items", "1 s", "3 s", "3.00 (2.50 – 4.00) × as fast", "≥ 2", "yes"]
    once = command.rewritten(command.HEADER + "## Tried\n", runner.table([row]))
    twice = command.rewritten(once, runner.table([row._replace(path="other")]))
    assert "| other | peer |" in twice
    assert "| path | peer | 1,000" not in twice
    assert twice.startswith("# Benchmarks")
    assert twice.endswith("## Tried\n")
