"""The training of a dual encoder: DPR's optimiser and schedule around the losses of EADPR.

With `accumulation` A an optimiser step averages the gradients of A batches; negatives are shared inside a batch, not
between the A. All randomness of a step (batches, dropout) is a function of seed and step.
"""

from __future__ import annotations

import math
import re
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr import machine as machines
from eadpr import parallel
from eadpr.machine import Machine
from eadpr.progress import progress
from eadpr.training import log, processes
from eadpr.training.batches import Batch, Batcher
from eadpr.training.checkpoint import Checkpoints
from eadpr.training.config import Loss, Optimiser, Train
from eadpr.training.forward import Encoded, Encoders, Vectors
from eadpr.training.losses import Masks, Terms, flipped_loss, loss_terms
from eadpr.training.schedule import multiplier, warmup_steps
from eadpr.training.state import TrainingState
from eadpr.training.validation import Validator


class Task(NamedTuple):
    """All that stays the same while a training runs. `validate` is None where there are no questions for it."""

    batcher: Batcher
    validate: Validator | None
    loss: Loss
    train: Train
    machine: Machine
    steps: int


def run(state: TrainingState, task: Task, checkpoints: Checkpoints) -> None:
    """Train from the last checkpoint, or from the start, to the last step. Raises RuntimeError where a loss or gradient
    is not finite."""
    if (saved := checkpoints.load()) is not None:
        state.restore(saved)
    if not task.steps:
        validate(state, task)
    size, seed, many = task.train.batch_size, task.train.seed, task.train.accumulation
    numbers = range(state.step * many, task.steps * many)
    made = parallel.ahead(lambda number: task.batcher.sampled(number, size=size, seed=seed), numbers, threads=1)
    quiet = nullcontext(lambda _: None)
    with progress("train", task.steps, "steps", done=state.step) if processes.first() else quiet as advance:
        while state.step < task.steps:
            take_step(state, task, [next(made) for _ in range(many)])
            if state.step == task.steps or (task.train.validate_every and state.step % task.train.validate_every == 0):
                validate(state, task)
            if checkpoints.due():
                checkpoints.save(state.as_dict())
            advance(1)


def take_step(state: TrainingState, task: Task, batches: list[Batch]) -> None:
    torch.manual_seed(step_seed(task.train.seed, state.step) ^ processes.rank())  # each drops out units of its own rows
    set_rate(state.optimizer, task.train, state.step, total=task.steps)
    for module in state.modules:
        module.train(any(p.requires_grad for p in module.parameters()))  # a frozen one drops nothing out
    terms = [backward(state.encoders, batch, task, share=1 / len(batches)) for batch in batches]
    values = dict(zip(Terms._fields, torch.stack(terms).mean(0).tolist(), strict=True))
    parameters = [p for group in state.optimizer.param_groups for p in group["params"]]
    processes.sum_gradients(parameters)
    values["gradient"] = torch.nn.utils.clip_grad_norm_(parameters, task.train.max_grad_norm).item()
    check_finite(values, state.step + 1)
    state.optimizer.step()
    state.optimizer.zero_grad()
    state.step += 1
    note(state, task, values, batches)


def backward(encoders: Encoders, batch: Batch, task: Task, *, share: float) -> Tensor:
    """Add the gradient of `share` times the batch's loss; returns its terms, detached, in the order of `Terms`."""
    encoded = Encoded(encoders, batch, task.machine, task.train.gradient_cache)
    terms = objective(encoded.vectors, batch.masks.to(machines.device()), task.loss)
    encoded.backward(terms.total * share)
    return torch.stack(terms).detach()


def objective(vectors: Vectors, masks: Masks, loss: Loss) -> Terms:
    """The loss with gradients stopped as asked for (002, section 5.1, whose formula is lost; after Chen and He, 2020).

    `symmetric`: half the loss with passages stopped, half the flipped loss with questions stopped.
    """
    weights = {"form": loss.form, "lambda_": loss.lambda_, "weight": loss.dpr, "tau1": loss.tau1, "tau2": loss.tau2}
    if loss.stop_gradient != "symmetric":
        return loss_terms(vectors.scores(loss.stop_gradient), masks, **weights, anchor=loss.anchor)
    terms = loss_terms(vectors.scores("passage"), masks, **weights)
    flipped = flipped_loss(vectors.scores("question"), masks)
    return terms._replace(total=(terms.total + loss.dpr * flipped) / 2)


def validate(state: TrainingState, task: Task) -> None:
    if task.validate is None:
        return
    found = task.validate(state.encoders)
    log.append(state.series, state.step, {f"validation/{name}": value for name, value in found._asdict().items()})
    if task.train.keep == "best":
        state.keep_if_best(found.average_rank)


def note(state: TrainingState, task: Task, values: dict[str, float], batches: list[Batch]) -> None:
    shown = {"loss": values["total"], "gradient": values["gradient"], "masked": sum(b.masked for b in batches)}
    if task.loss.needs_distractors:
        shown |= {name: values[name] for name in ("dpr", "hn", "pp")}
        shown["without_distractor"] = sum(b.without_distractor for b in batches)
        shown["truncated"] = sum(b.truncated for b in batches)
    if task.loss.form == "reference":
        shown["plain"] = values["plain"]
    log.append(state.series, state.step, {f"train/{name}": value for name, value in shown.items()})


def check_finite(values: dict[str, float], step: int, *, section: str = "train") -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise RuntimeError(
                f"step {step}: {name} is {value}; lower {section}.learning_rate, or set machine.precision: float32"
            )


def set_rate(optimizer: torch.optim.Optimizer, settings: Optimiser, step: int, *, total: int) -> None:
    factor = multiplier(step, warmup=warmup_steps(settings, total), total=total)
    for group in optimizer.param_groups:
        group["lr"] = settings.learning_rate * factor


def step_seed(seed: int, step: int) -> int:
    return int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)[0])


def set_dropout(module: torch.nn.Module, *, hidden: float, attention: float) -> None:
    """Set every dropout of an encoder; those inside an attention, by their names, act on its weights."""
    for name, part in module.named_modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = attention if re.search(r"(attention|attn|self)\.(attn_)?dropout$", name) else hidden
