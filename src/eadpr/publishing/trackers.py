"""Losses and validations in other programs while an arm trains (`train.report_to`), by accelerate's trackers."""

from pathlib import Path

from eadpr.runtime.files import read_json
from eadpr.training.loop import Report
from eadpr.training.state import TrainingState


def make_report(configs: Path, arm: str) -> Report | None:
    """Open a run in each tracker that the config files name for the arm; return a function that logs a step to them."""
    file = configs / "report_to.json"
    names = read_json(file).get(arm) if file.exists() else None
    if not names:
        return None
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS

    label = f"{configs.parent.name}/{arm}"
    options = {"tensorboard": {"logging_dir": f"runs/{label}"}, "wandb": {"name": label}, "mlflow": {"run_name": label}}
    options["dvclive"] = {"dir": f"dvclive/{label}", "dvcyaml": None, "save_dvc_exp": False}
    trackers = [LOGGER_TYPE_TO_CLASS[name]("eadpr", **options[name]) for name in names]
    for tracker in trackers:
        tracker.start()

    def report(state: TrainingState) -> None:
        values = {name: rows[-1][1] for name, rows in state.series.items() if rows[-1][0] == state.step}
        for tracker in trackers:
            tracker.log(values, step=state.step)

    return report
