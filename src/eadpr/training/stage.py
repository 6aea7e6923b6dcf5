"""What stages that train share: they go on where a killed one was, and write model and log whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

from eadpr import cache, files
from eadpr.training import log, loop, processes
from eadpr.training.checkpoint import Checkpoints
from eadpr.training.loop import Task
from eadpr.training.state import TrainingState

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
            log.write(logs, {"train/loss": []} | state.series, _final(state, task, counts()))
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
            means[name] = log.tail_mean(rows, AVERAGED)
    final = {"steps": task.steps, **counts, f"last_{AVERAGED}_steps": log.rounded(means)}
    if task.validate_first:
        final["validation_before"] = log.rounded(before)
    if task.validate:
        final["validation"] = log.rounded(kept)
    if state.best_step is not None:
        final["kept_step"] = state.best_step
    return final
