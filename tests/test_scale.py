"""What the measurement of growing work makes of times and memory, and that it runs on small collections."""

import os
import subprocess
import sys

import pytest

from benchmarks import scale
from benchmarks.scale import Cost
from tests import forked_python
from tests.repository import ROOT, stage_paths, stages

pytestmark = pytest.mark.nightly

MIB = 2**20


def test_growth_by_hand():
    """2 s of starting at 100 passages; then 10 ms and 11 ms a passage; memory grows by 1 MiB for 900 passages more."""
    costs = [
        Cost("encode", 100, 2.0, 50 * MIB), Cost("other", 100, 1.0, MIB), Cost("encode", 200, 3.0, 60 * MIB),
        Cost("encode", 1_100, 13.0, 61 * MIB),
    ]  # fmt: skip
    found = scale.growth(costs, "encode")
    assert (found.sizes, found.per_passage) == ([200, 1_100], pytest.approx([10_000, 11_000]))
    assert found.resident == [60 * MIB, 61 * MIB]
    more = (scale.WIKIPEDIA - 1_100) / 900
    assert found.seconds_of_wikipedia == pytest.approx(13 + 10 * more)
    assert found.resident_of_wikipedia == pytest.approx((61 + more) * MIB)
    [row] = scale.table([cost for cost in costs if cost.stage == "encode"]).splitlines()[2:]
    assert row == f"| encode | 10,000 | 11,000 | 1.10 | 60 | 61 | {(13 + 10 * more) / 3600:,.1f} | 22.8 |"


def test_every_measured_stage_is_one_of_the_pipeline_with_its_options():
    pipeline = stages()
    for stage in (*scale.STAGES, scale.ANNOTATOR, scale.BASE):
        assert set(stage_paths(pipeline[stage.name]["cmd"])) == {"config", *stage.options}


def test_every_stage_runs_at_toy_size(tmp_path, monkeypatch):
    """What is measured here is the client of `forked_python`; memory of commands is the subject above and below."""
    monkeypatch.setattr(sys, "executable", str(forked_python.folder() / "python"))
    costs = scale.measured(scale.STAGES, 1_050, tmp_path, questions=5)
    assert [(cost.stage, cost.passages) for cost in costs] == [(stage.name, 1_050) for stage in scale.STAGES]
    assert all(cost.seconds > 0.1 and cost.resident > MIB for cost in costs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["annotator", "base"]


def test_the_command_writes_a_document_with_its_plot(tmp_path):
    document = tmp_path / "scale.md"
    sizes = ["--start", "60", "--passages", "120", "--passages", "210"]
    options = ["--without", "bm25", "--without", "encode", "--out", str(document), "--folder", str(tmp_path)]
    command = [sys.executable, "-m", "benchmarks.scale", *sizes, *options]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [row] = [line.split(" | ") for line in document.read_text().splitlines() if line.startswith("| ")][1:]
    assert row[0] == "| prepare"
    assert all(float(mib) > 10 for mib in row[4:6])
    assert document.with_suffix(".svg").read_text().count("<svg") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scale.md", "scale.svg"]
