"""What a dual encoder learns from, batches of questions and passages by the losses of EADPR, and how it then does on
held-out questions, by DPR's two measures (Karpukhin et al., 2020).

With `accumulation` A an optimiser step averages the gradients of A batches; negatives are shared inside a batch, not
between the A.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from eadpr.runtime.machine import Machine
from eadpr.training.batches import Batch, Batcher
from eadpr.training.config import Loss, Train
from eadpr.training.example_set import ExampleSet
from eadpr.training.forward import BatchVectors, Encoded, Encoders, encoded, vectors
from eadpr.training.loop import Task
from eadpr.training.losses import Masks, Terms, dpr_loss, flipped_loss, loss_terms
from eadpr.training.state import TrainingState

ROWS = 4096  # passages of validation tokenised and encoded at once
QUESTIONS = 256  # of validation scored at once


class ContrastiveSettings(Protocol):
    loss: Loss
    train: Train
    machine: Machine


def task(batcher: Batcher, held_out: Batcher | None, settings: ContrastiveSettings, steps: int) -> Task:
    """Validates with some of the questions of `held_out`, if there are any."""
    train = settings.train
    chosen = [] if held_out is None else sample(len(held_out), train.validation_questions, train.seed)

    def lesson(step: int) -> list[Batch]:
        first = step * train.accumulation
        return [batcher.sampled(first + i, size=train.batch_size, seed=train.seed) for i in range(train.accumulation)]

    def validate(state: TrainingState) -> None:
        if chosen:
            found = validation(state.encoders, held_out, chosen, settings)
            state.log("validation", found._asdict())
            if train.keep == "best":
                state.keep_if_best(found.average_rank)

    return Task(
        "train",
        train,
        steps,
        lesson,
        partial(backward, settings=settings),
        validate=validate,
        validate_every=train.validate_every,
    )


def backward(state: TrainingState, batches: list[Batch], *, settings: ContrastiveSettings) -> dict[str, float]:
    """Add the gradient of the mean loss of the batches; returns what is logged."""
    loss, share = settings.loss, 1 / len(batches)
    terms = [add_gradient(state.encoders, batch, settings, share=share) for batch in batches]
    values = dict(zip(Terms._fields, torch.stack(terms).mean(0).tolist(), strict=True))
    shown = {"loss": values["total"], "masked": sum(batch.masked for batch in batches)}
    if loss.needs_distractors:
        shown |= {name: values[name] for name in ("dpr", "hn", "pp")}
        shown["without_distractor"] = sum(batch.without_distractor for batch in batches)
        shown["truncated"] = sum(batch.truncated for batch in batches)
    if loss.needs_placebos:
        shown["without_placebo"] = sum(batch.without_placebo for batch in batches)
    if loss.placebo:
        shown["placebo"] = values["placebo"]
    if loss.form == "reference":
        shown["plain"] = values["plain"]
    return shown


def add_gradient(encoders: Encoders, batch: Batch, settings: ContrastiveSettings, *, share: float) -> Tensor:
    """Add the gradient of `share` times the batch's loss; returns its terms, detached, in the order of `Terms`."""
    encoded = Encoded(encoders, batch, settings.machine, settings.train.gradient_cache)
    masks = batch.masks.to(encoded.vectors.columns_P.device)
    terms = objective(encoded.vectors, masks, settings.loss)
    encoded.backward(terms.total * share)
    return torch.stack(terms).detach()


def objective(vectors: BatchVectors, masks: Masks, loss: Loss) -> Terms:
    """The loss with gradients stopped as asked for (002, section 5.1, whose formula is lost; after Chen and He, 2020).

    `symmetric`: half the loss with passages stopped, half the flipped loss with questions stopped.
    """
    weights = {"form": loss.form, "lambda_": loss.lambda_, "weight": loss.dpr, "tau1": loss.tau1, "tau2": loss.tau2}
    weights |= {"balance": loss.balances, "placebo": loss.placebo}
    if loss.stop_gradient != "symmetric":
        return loss_terms(vectors.scores(loss.stop_gradient), masks, **weights, anchor=loss.anchor)
    terms = loss_terms(vectors.scores("passage"), masks, **weights)
    flipped = flipped_loss(vectors.scores("question"), masks)
    return terms._replace(total=(terms.total + loss.dpr * flipped) / 2)


class Validation(NamedTuple):
    """`nll`: mean in-batch loss, hard negatives included. `average_rank`: passages of the pool that score no lower than
    the question's positive, mean over the questions; the pool is all their positives and some negatives of each."""

    nll: float
    average_rank: float


@torch.no_grad()
def validation(
    encoders: Encoders, batcher: Batcher, chosen: Sequence[int], settings: ContrastiveSettings
) -> Validation:
    """Of the `chosen` questions of a batcher, by their positions."""
    for encoder in encoders:
        encoder.eval()
    size, machine, tokens = settings.train.batch_size, settings.machine, settings.train.gradient_cache
    total, questions, asked = 0.0, [], []
    for first in range(0, len(chosen), size):
        part = chosen[first : first + size]
        batch = batcher.first(part)
        found = encoded(encoders, batch, machine, tokens)
        scores_QP = found.scores()
        total += dpr_loss(scores_QP, batch.masks.to(scores_QP.device), 0.0).item() * len(batch.questions)
        questions.append(found.questions_QD)
        asked += batcher.examples_of(part)
    pool, gold = pool_of(batcher.examples, asked, settings.train.validation_hard_negatives)
    parts = [pool[i : i + ROWS] for i in range(0, len(pool), ROWS)]
    passages_ND = torch.cat([vectors(encoders.passage, batcher.inputs.ids(rows), machine, tokens) for rows in parts])
    return Validation(total / len(gold), average_rank(torch.cat(questions), passages_ND, torch.tensor(gold)))


def sample(count: int, most: int, seed: int) -> list[int]:
    """Positions of at most `most` examples, always the same ones, in order."""
    return sorted(np.random.default_rng([seed, count]).permutation(count)[:most].tolist())


def pool_of(examples: ExampleSet, chosen: list[int], hard_negatives: int) -> tuple[list[int], list[int]]:
    """Rows of the distinct passages of the pool, and the place in it of each question's positive."""
    rows: dict[int, None] = {}
    for i in chosen:
        rows[int(examples.positives[i])] = None
        rows |= dict.fromkeys(examples.negatives[i][:hard_negatives].tolist())
    place = {row: number for number, row in enumerate(rows)}
    return list(rows), [place[int(examples.positives[i])] for i in chosen]


def average_rank(questions_QD: Tensor, passages_ND: Tensor, gold_Q: Tensor) -> float:
    """Mean rank of each question's gold passage counted from 0, ties against it; holds scores of QUESTIONS at once."""
    above = 0
    for part_D, gold in zip(
        questions_QD.split(QUESTIONS), gold_Q.to(questions_QD.device).split(QUESTIONS), strict=True
    ):
        scores = part_D @ passages_ND.T
        above += (scores >= scores.gather(1, gold[:, None])).sum().item() - len(gold)
    return above / len(gold_Q)
