"""What stages that train share: they go on where a killed one was, and write model and log whole.

The log is in DVCLive's layout: `plots/metrics/<name>.tsv` per series, `metrics.json` for the end. It is written here
and not by dvclive, whose `Live` fails in a repository without commits. No times, so that bytes repeat.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

from eadpr.runtime import cache, files
from eadpr.training import loop, processes
from eadpr.training.loop import Task
from eadpr.training.state import Checkpoints, TrainingState

AVERAGED = 100  # last steps whose mean stands in metrics.json


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
    """Train, `save` the model to the folder `out`, write the log to the folder `logs`; returns the optimiser steps.

    A killed training goes on where it was last saved, with the same result, if it had the same `key`. `counts` go
    beside the means of the log. Of several processes (`eadpr.training.processes`) the first writes.
    """
    kept = cache.workspace(task.section, key()) if processes.first() else nullcontext()
    with kept as folder:
        loop.run(state, task, Checkpoints(folder))
        if processes.first():
            if state.best_step is not None:
                state.use_best()
            with files.new_folder(out) as temporary:
                save(temporary)
            with files.new_folder(logs) as temporary:
                _write_log(temporary, state, _final(state, task, counts()))
            files.discard(folder)
    return task.steps


def _final(state: TrainingState, task: Task, counts: Mapping[str, object]) -> dict[str, object]:
    """Counts, means over the last steps of what is not counted, validation: before the first step where there is that,
    and of the weights kept."""
    means, before, kept = {}, {}, {}
    for series, rows in state.series.items():
        kind, _, name = series.partition("/")
        if kind == "validation":
            before[name] = rows[0][1]
            kept[name] = dict(rows)[rows[-1][0] if state.best_step is None else state.best_step]
        elif name not in counts:
            last = [value for _, value in rows[-AVERAGED:]]
            means[name] = sum(last) / len(last)
    final = {"steps": task.steps, **counts, f"last_{AVERAGED}_steps": _rounded(means)}
    if task.validate_first:
        final["validation_before"] = _rounded(before)
    if task.validate:
        final["validation"] = _rounded(kept)
    if state.best_step is not None:
        final["kept_step"] = state.best_step
    return final


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    """To 7 digits; what is not finite is left out."""
    return {name: float(f"{value:.7g}") for name, value in values.items() if math.isfinite(value)}


def _write_log(folder: Path, state: TrainingState, final: Mapping[str, object]) -> None:
    """Values have 7 digits."""
    for name, rows in ({"train/loss": []} | state.series).items():
        lines = [f"step\t{name.rpartition('/')[2]}", *(f"{step}\t{value:.7g}" for step, value in rows)]
        files.write_text(folder / "plots" / "metrics" / f"{name}.tsv", "\n".join(lines) + "\n")
    files.write_json(folder / "metrics.json", final)
