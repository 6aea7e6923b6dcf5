"""The shared part of all stages that train: they resume after a kill, and write model and log whole or not at all.

The log is in DVCLive's layout: `plots/metrics/<name>.tsv` per series, `metrics.json` for the end. It is written here
and not by dvclive, which fails in a repository without commits. It holds no times, so that its bytes repeat.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

from eadpr.runtime import cache, files
from eadpr.training import loop, processes
from eadpr.training.loop import Task
from eadpr.training.state import Checkpoints, TrainingState

AVERAGED = 100  # metrics.json has the mean of the last steps


def train(
    state: TrainingState,
    task: Task,
    out: Path,
    logs: Path,
    *,
    key: Callable[[], str],
    save: Callable[[Path], None],
    counts: Callable[[], dict[str, object]],
) -> int:
    """Train, `save` the model to the folder `out`, write the log to the folder `logs`; return the optimiser steps.

    A killed training with the same `key` resumes from its last checkpoint, with the same result. `counts` are added to
    the means of the log. Of several processes (`eadpr.training.processes`) the first writes.
    """
    workspace = cache.workspace(task.section, key()) if processes.first() else nullcontext()
    with workspace as folder:
        loop.run(state, task, Checkpoints(folder))
        if processes.first():
            if state.best_step is not None:
                state.use_best()
            with files.new_folder(out) as temporary:
                save(temporary)
            with files.new_folder(logs) as temporary:
                _write_log(temporary, state, _summarise(state, task, counts()))
            files.discard(folder)
    return task.steps


def _summarise(state: TrainingState, task: Task, counts: Mapping[str, object]) -> dict[str, object]:
    """Return the counts, the means of all other series over the last steps, and the validation of the saved weights;
    with `validate_first` the validation before the first step too."""
    means, validation_before, validation = {}, {}, {}
    for series, rows in state.series.items():
        kind, _, name = series.partition("/")
        if kind == "validation":
            validation_before[name] = rows[0][1]
            validation[name] = dict(rows)[rows[-1][0] if state.best_step is None else state.best_step]
        elif name not in counts:
            last = [value for _, value in rows[-AVERAGED:]]
            means[name] = sum(last) / len(last)
    summary = {"steps": task.steps, **counts, f"last_{AVERAGED}_steps": _round(means)}
    if task.validate_first:
        summary["validation_before"] = _round(validation_before)
    if task.validate:
        summary["validation"] = _round(validation)
    if state.best_step is not None:
        summary["kept_step"] = state.best_step
    return summary


def _round(values: Mapping[str, float]) -> dict[str, float]:
    """Round to 7 digits; values that are not finite are left out."""
    return {name: float(f"{value:.7g}") for name, value in values.items() if math.isfinite(value)}


def _write_log(folder: Path, state: TrainingState, summary: Mapping[str, object]) -> None:
    """Write each series with 7 digits, and the summary."""
    for name, rows in ({"train/loss": []} | state.series).items():
        lines = [f"step\t{name.rpartition('/')[2]}", *(f"{step}\t{value:.7g}" for step, value in rows)]
        files.write_text(folder / "plots" / "metrics" / f"{name}.tsv", "\n".join(lines) + "\n")
    files.write_json(folder / "metrics.json", summary)
