"""What a dual encoder learns from: batches of questions and passages, by the losses of EADPR.

With `accumulation` A an optimiser step averages the gradients of A batches; negatives are shared inside a batch, not
between the A.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from eadpr.machine import Machine
from eadpr.training import log
from eadpr.training.batches import Batch, Batcher
from eadpr.training.config import Loss, Train
from eadpr.training.forward import BatchVectors, Encoded, Encoders
from eadpr.training.loop import Task
from eadpr.training.losses import Masks, Terms, flipped_loss, loss_terms
from eadpr.training.state import TrainingState
from eadpr.training.validation import Validator

Columns = Callable[
    [BatchVectors, Batch], tuple[BatchVectors, Masks]
]  # what the questions of a batch are scored against


class ContrastiveSettings(Protocol):
    loss: Loss
    train: Train
    machine: Machine


def batch_alone(vectors: BatchVectors, batch: Batch) -> tuple[BatchVectors, Masks]:
    return vectors, batch.masks.to(vectors.columns_P.device)


def task(batcher: Batcher, validator: Validator | None, settings: ContrastiveSettings, steps: int) -> Task:
    """`validator` is None where there are no questions to validate with."""
    train = settings.train

    def lesson(step: int) -> list[Batch]:
        first = step * train.accumulation
        return [batcher.sampled(first + i, size=train.batch_size, seed=train.seed) for i in range(train.accumulation)]

    return Task(
        "train",
        train,
        steps,
        lesson,
        partial(backward, settings=settings),
        validate=partial(validate, validator=validator, keep=train.keep),
        validate_every=train.validate_every,
    )


def backward(
    state: TrainingState, batches: list[Batch], *, settings: ContrastiveSettings, columns: Columns = batch_alone
) -> dict[str, float]:
    """Add the gradient of the mean loss of the batches; returns what is logged."""
    loss, share = settings.loss, 1 / len(batches)
    terms = [add_gradient(state.encoders, batch, settings, share=share, columns=columns) for batch in batches]
    values = dict(zip(Terms._fields, torch.stack(terms).mean(0).tolist(), strict=True))
    shown = {"loss": values["total"], "masked": sum(batch.masked for batch in batches)}
    if loss.needs_distractors:
        shown |= {name: values[name] for name in ("dpr", "hn", "pp")}
        shown["without_distractor"] = sum(batch.without_distractor for batch in batches)
        shown["truncated"] = sum(batch.truncated for batch in batches)
    if loss.form == "reference":
        shown["plain"] = values["plain"]
    return shown


def add_gradient(
    encoders: Encoders, batch: Batch, settings: ContrastiveSettings, *, share: float, columns: Columns = batch_alone
) -> Tensor:
    """Add the gradient of `share` times the batch's loss; returns its terms, detached, in the order of `Terms`."""
    encoded = Encoded(encoders, batch, settings.machine, settings.train.gradient_cache)
    terms = objective(*columns(encoded.vectors, batch), settings.loss)
    encoded.backward(terms.total * share)
    return torch.stack(terms).detach()


def objective(vectors: BatchVectors, masks: Masks, loss: Loss) -> Terms:
    """The loss with gradients stopped as asked for (002, section 5.1, whose formula is lost; after Chen and He, 2020).

    `symmetric`: half the loss with passages stopped, half the flipped loss with questions stopped.
    """
    weights = {"form": loss.form, "lambda_": loss.lambda_, "weight": loss.dpr, "tau1": loss.tau1, "tau2": loss.tau2}
    if loss.stop_gradient != "symmetric":
        return loss_terms(vectors.scores(loss.stop_gradient), masks, **weights, anchor=loss.anchor)
    terms = loss_terms(vectors.scores("passage"), masks, **weights)
    flipped = flipped_loss(vectors.scores("question"), masks)
    return terms._replace(total=(terms.total + loss.dpr * flipped) / 2)


def validate(state: TrainingState, *, validator: Validator | None, keep: str) -> None:
    if validator is None:
        return
    found = validator(state.encoders)
    log.append(state.series, state.step, {f"validation/{name}": value for name, value in found._asdict().items()})
    if keep == "best":
        state.keep_if_best(found.average_rank)
