"""Trackers get what an arm's training logs while it trains, and change none of its bytes."""

from importlib.util import find_spec

import pytest
from accelerate.tracking import LOGGER_TYPE_TO_CLASS

from eadpr.publishing.trackers import make_report
from eadpr.runtime import files
from eadpr.training.arm import ArmInputs, ArmSettings, train_arm
from tests.training_toy import EADPR, MACHINE, SETTINGS, TRAIN, series

pytestmark = pytest.mark.usefixtures("one_thread")


class StandIn:
    """A tracker whose package is not installed."""

    __init__ = start = log = lambda *_, **__: None


def train(toy, out, *trackers):
    files.write_json(out / "atlas" / "configs" / "report_to.json", {"mine": trackers, "other": ["aim"]})
    report = make_report(out / "atlas" / "configs", "mine")
    inputs = ArmInputs(toy / "records", toy / "examples", toy / "base")
    train_arm(inputs, out / "model", out / "log", ArmSettings(EADPR, TRAIN, SETTINGS, MACHINE), report)
    return files.tree_sha256(out / "model")


@pytest.mark.parametrize("tracker", ["tensorboard", "wandb", "mlflow", "dvclive"])
def test_a_tracker_gets_every_step_while_an_arm_trains_and_changes_no_byte(toy, tmp_path, monkeypatch, tracker):
    """The package's own tracker logs where it is installed, without a network."""
    logged = []

    class Shown(LOGGER_TYPE_TO_CLASS[tracker] if find_spec(tracker) else StandIn):
        def log(self, values, step):
            assert not (tmp_path / "model").exists()
            logged.append((step, values["train/loss"], "validation/average_rank" in values))
            super().log(values, step)

    monkeypatch.setitem(LOGGER_TYPE_TO_CLASS, tracker, Shown)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.chdir(tmp_path)
    assert train(toy, tmp_path, tracker) == train(toy, tmp_path / "quiet")
    assert [(step, validated) for step, _, validated in logged] == [(n, n in (3, 6)) for n in range(1, 7)]
    assert [loss for _, loss, _ in logged] == pytest.approx(series(tmp_path, "train/loss"))
    written = {path.name for path in tmp_path.iterdir()} - {"atlas", "model", "log", "quiet"}
    assert bool(written) == bool(find_spec(tracker))
