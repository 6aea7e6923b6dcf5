"""The training of a reader, of any kind.

A step averages the gradients of its questions, taken one by one, since no question's passages concern another: memory
is that of one. All randomness of a step (examples, dropout) is a function of seed and step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr import parallel
from eadpr.progress import progress
from eadpr.reading.config import Reader
from eadpr.training import log, loop
from eadpr.training.batches import batch_indices
from eadpr.training.checkpoint import Checkpoints
from eadpr.training.state import TrainingState


class Task(NamedTuple):
    """All that stays the same while a training runs. `example` takes the place of a question and an epoch; `terms` of
    an example are scalars, of which `loss` is trained."""

    questions: int
    example: Callable[[int, int], Any]
    terms: Callable[[Any], dict[str, Tensor]]
    settings: Reader
    steps: int


def steps_of(settings: Reader, questions: int) -> int:
    """`steps`, or as many as `epochs` passes over the questions give; what fills no batch is left out."""
    if settings.steps is not None:
        return settings.steps
    return settings.epochs * (questions // min(settings.batch_size, questions))


def run(state: TrainingState, task: Task, checkpoints: Checkpoints) -> None:
    """Train from the last checkpoint, or from the start, to the last step. Raises RuntimeError where a loss or gradient
    is not finite."""
    if (saved := checkpoints.load()) is not None:
        state.restore(saved)
    made = parallel.ahead(lambda number: _batch(task, number), range(state.step, task.steps), threads=1)
    with progress("reader", task.steps, "steps", done=state.step) as advance:
        while state.step < task.steps:
            take_step(state, task, next(made))
            if checkpoints.due():
                checkpoints.save(state.as_dict())
            advance(1)


def _batch(task: Task, number: int) -> list[Any]:
    once = np.ones(task.questions, np.int64)
    epoch, drawn = batch_indices(number, times=once, size=task.settings.batch_size, seed=task.settings.seed)
    return [task.example(i, epoch) for i, _ in drawn]


def take_step(state: TrainingState, task: Task, examples: Sequence[Any]) -> None:
    settings = task.settings
    torch.manual_seed(loop.step_seed(settings.seed, state.step))
    loop.set_rate(state.optimizer, settings, state.step, total=task.steps)
    for module in state.modules:
        module.train()
    totals: dict[str, Tensor] = {}
    for example in examples:
        terms = task.terms(example)
        (terms["loss"] / len(examples)).backward()
        totals = {name: totals.get(name, 0.0) + value.detach() for name, value in terms.items()}
    values = {name: total.item() / len(examples) for name, total in totals.items()}
    parameters = [p for group in state.optimizer.param_groups for p in group["params"]]
    values["gradient"] = torch.nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm).item()
    loop.check_finite(values, state.step + 1, section="reader")
    state.optimizer.step()
    state.optimizer.zero_grad()
    state.step += 1
    log.append(state.series, state.step, {f"train/{name}": value for name, value in values.items()})
