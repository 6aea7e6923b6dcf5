"""The training of any model: DPR's optimiser and schedule, step by step, from its last checkpoint.

All randomness of a step (what it learns from, dropout) is a function of seed and step. The log is in DVCLive's layout:
`plots/metrics/<name>.tsv` per series, `metrics.json` for the end. It is written here and not by dvclive, which fails in
a repository without commits. It holds no times, so that its bytes repeat.
"""

import math
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr.runtime import cache, files, machine, parallel
from eadpr.runtime.progress import progress
from eadpr.training import processes
from eadpr.training.optimiser import Optimiser, multiplier, warmup_steps
from eadpr.training.state import Checkpoints, TrainingState

AVERAGED = 100  # metrics.json has the mean of the last steps
Report = Callable[[TrainingState], None]  # called after every step
Values = dict[str, float | Tensor]


class Task(NamedTuple):
    """The parts of a training that do not change. `section` is the name of `settings` in params.yaml.

    `lesson` makes the examples of a step by its number, in another thread while the step before is taken. `backward`
    adds the gradients of a lesson, or none, and returns the values to log, which a card may still compute. `validate`
    is called after every `validate_every` steps (0: none), after the last, and with `validate_first` or 0 steps first.
    """

    section: str
    settings: Optimiser
    steps: int
    lesson: Callable[[int], Any]
    backward: Callable[[TrainingState, Any], Values]
    validate: Callable[[TrainingState], None] | None = None
    validate_every: int = 0
    validate_first: bool = False
    report: Report | None = None


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

    A killed training with the same `key` resumes from its last checkpoint, with the same result.
    """
    workspace = cache.workspace(task.section, key()) if processes.first() else nullcontext()
    with workspace as folder:
        run(state, task, Checkpoints(folder), label=f"{task.section} {out.name}")
        if processes.first():
            if state.best_step is not None:
                state.use_best()
            with files.new_folder(out) as temporary:
                save(temporary)
            with files.new_folder(logs) as temporary:
                _write_log(temporary, state, _summarise(state, task, counts()))
            files.discard(folder)
    return task.steps


def run(
    state: TrainingState, task: Task, checkpoints: Checkpoints, *, until: int | None = None, label: str | None = None
) -> None:
    """Train from the last checkpoint, or else from `state`, to the step `until`; None: to the last. Progress is shown
    behind the `label`, by default the task's section."""
    until = task.steps if until is None else until
    if (saved := checkpoints.load()) is not None:
        state.restore(saved)
    elif task.validate and (task.validate_first or not task.steps):
        task.validate(state)
    lessons = parallel.ahead(task.lesson, range(state.step, until), threads=1)
    quiet = nullcontext(lambda _: None)
    with progress(label or task.section, until, "steps", done=state.step) if processes.first() else quiet as advance:
        while state.step < until:
            take_step(state, task, next(lessons))
            interval = task.validate_every or task.steps
            if task.validate and (state.step % interval == 0 or state.step == task.steps):
                log_step(state, task)
                task.validate(state)
            if task.report:
                log_step(state, task)
                task.report(state)
            if checkpoints.due():
                log_step(state, task)
                checkpoints.save(state.as_dict())
            advance(1)
        log_step(state, task)


def take_step(state: TrainingState, task: Task, lesson: Any) -> None:
    settings = task.settings
    torch.manual_seed(step_seed(settings.seed, state.step) ^ processes.rank())  # each drops out units of its own rows
    warmup = warmup_steps(settings, task.steps)
    for group in state.optimizer.param_groups:
        group["lr"] = settings.learning_rate * multiplier(state.step, warmup=warmup, total=task.steps)
    for module in state.modules:
        module.train(any(p.requires_grad for p in module.parameters()))  # a frozen one drops nothing out
    values = task.backward(state, lesson)
    parameters = [p for group in state.optimizer.param_groups for p in group["params"]]
    processes.sum_gradients(parameters)
    values["gradient"] = torch.nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
    state.optimizer.step()
    state.optimizer.zero_grad()
    log_step(state, task)  # the step before, so that a card has work while its values are waited for
    state.step += 1
    state.unread = {name: v.to("cpu", non_blocking=True) if isinstance(v, Tensor) else v for name, v in values.items()}
    if machine.device() == "cuda":
        state.arrived = torch.cuda.current_stream().record_event()


def log_step(state: TrainingState, task: Task) -> None:
    """Log the values of the last step, unless they are. Raises ValueError where one is not finite."""
    if state.unread:
        if state.arrived is not None:
            state.arrived.synchronize()
        values = {name: v.item() if isinstance(v, Tensor) else v for name, v in state.unread.items()}
        state.unread = {}
        check_finite(values, state.step, section=task.section)
        state.log("train", values)


def check_finite(values: dict[str, float], step: int, *, section: str) -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise ValueError(f"step {step}: {name} is {value}; lower {section}.learning_rate, or use precision float32")


def step_seed(seed: int, step: int) -> int:
    return int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)[0])


def set_dropout(module: torch.nn.Module, *, hidden: float, attention: float) -> None:
    """Set every dropout; one inside an attention, by its name, acts on the attention's weights."""
    parts = dict(module.named_modules())
    for name, part in parts.items():
        if isinstance(part, torch.nn.Dropout):
            in_attention = re.search(r"(attention|attn|self)\.(attn_|attention_)?dropout$", name)
            # MPNet has a dropout of states next to the one of weights.
            on_states = name.replace("attention.dropout", "attention.attn.dropout") in parts.keys() - {name}
            part.p = attention if in_attention and not on_states else hidden
        elif isinstance(getattr(part, "attention_dropout", None), float):  # a number and no module, as in ModernBERT
            part.attention_dropout = attention


def _summarise(state: TrainingState, task: Task, counts: Mapping[str, object]) -> dict[str, object]:
    """Return the counts, the means of all other series over the last steps, and the validation of the saved weights."""
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
    for name, rows in ({"train/loss": []} | state.series).items():
        lines = [f"step\t{name.rpartition('/')[2]}", *(f"{step}\t{value:.7g}" for step, value in rows)]
        files.write_text(folder / "plots" / "metrics" / f"{name}.tsv", "\n".join(lines) + "\n")
    files.write_json(folder / "metrics.json", summary)
