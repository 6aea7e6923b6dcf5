"""A few of the faults of `make faults`, and whether one that is planted is counted as what it is."""

from random import Random

import pytest

from benchmarks.faults import disk, kills, toy
from benchmarks.faults.toy import Ended

pytestmark = [pytest.mark.pipeline, pytest.mark.nightly]
TABLE = "data/atlas/positives/positives.parquet"


@pytest.fixture(scope="module")
def bench(built, tmp_path_factory):
    return toy.Bench(built, tmp_path_factory.mktemp("faults") / "bench")


@pytest.fixture
def stages(bench):
    """Stages by name; what they wrote is as it was built, before and after the test."""
    yield {stage.name: stage for stage in toy.stages(bench.project)}
    bench.take(toy.Project(bench.built), [*toy.ALL, ".cache"])


def test_a_stage_that_is_killed_or_stopped_at_a_call_ends_as_undisturbed(bench, stages, built):
    stage = stages["positives"]
    undisturbed = kills.undisturbed(bench, stage, built)
    assert f"replace {TABLE}" not in "".join(undisturbed.calls), "it is written whole, with its folder"
    assert any(call.startswith("fsync") for call in undisturbed.calls)
    ways = ["kill -9 at a call"] * 3 + ["stopped beside a rerun"]
    for number, way in enumerate(ways):
        bench.clear(stage, old=built)
        assert kills.disturbed(bench, stage, way, undisturbed, Random(number))[0] == "right"


@pytest.mark.parametrize(("planted", "message"), [
    (lambda folder: (folder / "data/atlas/.positives.1.tmp").touch(), "left behind: data/atlas/.positives.1.tmp"),
    (lambda folder: (folder / TABLE).write_bytes(b""), "the rerun made other bytes"),
])  # fmt: skip
def test_what_a_rerun_does_wrong_is_noticed(bench, stages, built, planted, message):
    undisturbed = kills.Undisturbed(bench.outs(["data/atlas/positives"]), bench.names(), [], 0.0)

    def again():
        planted(bench.folder)
        return Ended(0, "")

    ending = kills.judged(bench, "", Ended(-9, ""), again, undisturbed, dict(undisturbed.outs), "")
    assert (ending[0], message in ending[1]) == ("wrong", True)
    toy.files.discard(bench.folder / "data/atlas/.positives.1.tmp")


def test_a_full_disk_is_said_and_room_brings_the_same_bytes(bench, stages, tmp_path):
    if not disk.can_mount(tmp_path):
        pytest.skip("no mounts for this user")
    outcome, message = disk.no_room(bench, "size", stages["positives"], Random(1))
    assert outcome == "clear", message
