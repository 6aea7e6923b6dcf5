"""Every benchmark compares equal results, notices unequal ones, and can be run; speed is not asserted anywhere."""

import importlib
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import benchmarks
from benchmarks import __main__ as command
from benchmarks import exact_search, has_answer, runner
from benchmarks.exact_search import Hits
from benchmarks.runner import Comparison, Different, Goal, Row, Side, Worker, check, equal, fastest, measure, within
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


def test_the_training_of_the_peer_runs(tmp_path):
    pytest.importorskip("accelerate")
    from benchmarks import training

    made = training.comparisons(training.QUICK, tmp_path)
    row = measure(next(made), 1)
    assert row.units == training.QUICK.batch * training.QUICK.steps


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


def test_ratios_are_per_unit_and_as_the_goal_says(monkeypatch):
    """Ours: 2 s for 4 units, 0.5 each. Theirs: 3 s for 2 units, 1.5 each: 3 times as fast, or a third of the time."""
    ours, theirs = Side(lambda _: 1, units=4), Side(lambda _: 1, units=2)
    monkeypatch.setattr(runner, "timed", lambda side: 2.0 if side.units == 4 else 3.0)
    speed = measure(comparison(Goal("speed", 3), ours, theirs), 2)
    time = measure(comparison(Goal("time", 0.3), ours, theirs), 2)
    assert (speed.ratios, speed.met) == ([3.0, 3.0], True)
    assert (time.ratios, time.met) == ([pytest.approx(1 / 3)] * 2, False)
    assert (speed.our_seconds, speed.peer_seconds, speed.units) == (2.0, 3.0, 4)


def test_repeats_take_turns_and_nothing_is_timed_before_the_results_agree():
    calls = []
    sides = [Side(lambda _, name=name: calls.append(name)) for name in ("ours", "theirs")]
    measure(comparison(Goal("speed", 1), *sides), 3)
    assert calls == ["ours", "theirs", "ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_what_makes_ready_is_not_timed(monkeypatch):
    now = iter(range(100))
    monkeypatch.setattr(runner.time, "perf_counter", lambda: next(now))
    assert runner.timed(Side(lambda given: given, ready=lambda: [next(now), next(now)])) == 1


def test_the_fastest_option_is_found(monkeypatch):
    monkeypatch.setattr(runner, "timed", lambda side: side.run(None))
    assert fastest([8, 2, 5], lambda option: option) == 2


def test_arrays_within_a_tolerance():
    same = within(0.1)
    assert same([1.0, 2.0], [1.0, 2.05]) == "results differ by at most 5e-02"
    for ours, theirs in ([[1.0], [1.2]], [[1.0], [1.0, 2.0]], [[], []], [[float("nan")], [1.0]]):
        with pytest.raises(Different):
            same(ours, theirs)


ROWS, SCORES = np.array([[4, 7, 2]]), np.array([[3.0, 2.0, 1.0]], np.float32)


@pytest.mark.parametrize(("rows", "scores"), [
    ([[4, 7, 9]], [[3.0, 2.0, 1.0]]),  # another passage, as good as the last
    ([[7, 4, 2]], [[2.000001, 2.0, 1.0]]),
])  # fmt: skip
def test_only_ties_may_stand_in_each_others_place(rows, scores):
    scores = np.array(scores, np.float32)
    assert exact_search.same_hits(Hits(np.array(rows), scores), Hits(ROWS, scores))


@pytest.mark.parametrize(("rows", "scores"), [
    ([[7, 4, 2]], [[3.0, 2.0, 1.0]]),  # no tie
    ([[9, 7, 2]], [[3.0, 2.0, 1.0]]),  # a passage that the peer has not among its best
    ([[4, 4, 2]], [[3.0, 2.0, 1.0]]),
    ([[4, 7, 2]], [[3.0, 2.1, 1.0]]),
    ([[4, 7]], [[3.0, 2.0]]),
])  # fmt: skip
def test_other_hits_are_noticed(rows, scores):
    with pytest.raises(Different):
        exact_search.same_hits(Hits(np.array(rows), np.array(scores, np.float32)), Hits(ROWS, SCORES))


def test_plain_python_has_the_same_rules():
    """Tokens side by side, without regard to case; not part of a token; letters with marks in either form."""
    assert has_answer.holds(["New York"], "in NEW  York.")
    assert not has_answer.holds(["York New", "ew York"], "in New York")
    assert has_answer.holds(["Zoe\u0308"], "Zo\u00eb was here")


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


@pytest.mark.parametrize("package", ["src", "stages"])
def test_the_product_needs_no_benchmark(package):
    pattern = re.compile(r"^\s*(import|from) benchmarks\b", re.MULTILINE)
    paths = (ROOT / package).rglob("*.py")
    assert [path for path in paths if pattern.search(path.read_text(encoding="utf-8"))] == []
