"""The training steps of a dual encoder on batches of questions and passages by the losses of EADPR, and validation on
held-out questions by DPR's two measures (Karpukhin et al., 2020)."""

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr.runtime.machine import Machine
from eadpr.training.batches import Batch, Batcher
from eadpr.training.config import EncoderSettings, Loss, Train
from eadpr.training.encoder import Encoders
from eadpr.training.example_set import ExampleSet
from eadpr.training.forward import EncodedBatch, encode
from eadpr.training.late import score
from eadpr.training.loop import Task, Values
from eadpr.training.losses import Masks, Terms, dpr_loss, flipped_loss, loss_terms
from eadpr.training.state import TrainingState

ROWS = 4096  # passages of validation tokenised and encoded at once
TOKEN_ROWS = 256  # the same where tokens are the unit
QUESTIONS = 256  # of validation scored at once


class ArmSettings(NamedTuple):
    loss: Loss
    train: Train
    encoder: EncoderSettings
    machine: Machine


def task(batcher: Batcher, validation: Batcher, settings: ArmSettings, steps: int) -> Task:
    """Raise ValueError if the best weights are to be kept and there is no question to validate on."""
    train = settings.train
    chosen = sample(len(validation), train.validation_questions, train.seed)
    if train.keep == "best" and not chosen:
        raise ValueError("train.keep: best needs validation questions, and there are none; set it to last")

    def validate_state(state: TrainingState) -> None:
        if chosen:
            measures = validate(state.encoders, validation, chosen, settings)
            state.log("validation", measures._asdict())
            if train.keep == "best":
                state.keep_if_best(measures.average_rank, measures.nll)

    return Task(
        "train", train, steps, batcher.sampled, partial(backward, settings=settings), validate=validate_state,
        validate_every=train.validate_every, validate_first=train.keep == "best",
    )  # fmt: skip


def backward(state: TrainingState, batch: Batch, *, settings: ArmSettings) -> Values:
    """Add the gradient of the batch's loss; return the values to log: its terms that have a part in it, and counts."""
    loss, terms = settings.loss, add_gradient(state.encoders, batch, settings)
    logged = {"dpr": loss.needs_distractors or loss.rest, "hn": loss.needs_distractors, "pp": loss.needs_distractors}
    logged |= {"plain": loss.form == "reference", "placebo": loss.placebo, "rest": loss.rest}
    values = dict(zip(Terms._fields, terms.unbind(), strict=True))
    return {"loss": values["total"]} | {name: values[name] for name in logged if logged[name]} | batch.counts


def add_gradient(encoders: Encoders, batch: Batch, settings: ArmSettings) -> Tensor:
    """Add the gradient of the batch's loss; return its terms, detached, in the order of `Terms`."""
    encoded = EncodedBatch(encoders, batch, settings.machine, settings.train.gradient_cache)
    terms = objective(encoded, batch.masks.to(encoded.columns_P.device), settings.loss)
    encoded.backward(terms.total)
    return torch.stack(terms).detach()


def objective(vectors: EncodedBatch, masks: Masks, loss: Loss) -> Terms:
    """Return the loss with gradients stopped as the settings ask (002, section 5.1; after Chen and He, 2020):
    `symmetric` is half the loss with passages stopped, and half the flipped loss with questions stopped."""
    weights = {"form": loss.form, "lambda_": loss.lambda_, "weight": loss.dpr, "tau1": loss.tau1, "tau2": loss.tau2}
    weights |= {"balance": loss.balances, "pp_negatives": loss.pp_negatives, "placebo": loss.placebo}
    stopped = "passage" if loss.stop_gradient == "symmetric" else loss.stop_gradient
    parts_Q2 = vectors.part_scores(stopped)
    terms = loss_terms(vectors.scores(stopped), masks, **weights, anchor=loss.anchor, rest=loss.rest, parts_Q2=parts_Q2)
    if loss.stop_gradient != "symmetric":
        return terms
    flipped = flipped_loss(vectors.scores("question"), masks)
    return terms._replace(total=(terms.total + loss.dpr * flipped) / 2)


class Validation(NamedTuple):
    """`nll`: mean in-batch loss, hard negatives included. `average_rank`: passages of the pool that score no lower than
    the question's positive, mean over the questions; the pool is all their positives and some negatives of each."""

    nll: float
    average_rank: float


@torch.no_grad()
def validate(encoders: Encoders, batcher: Batcher, chosen: Sequence[int], settings: ArmSettings) -> Validation:
    for encoder in encoders:
        encoder.eval()
    size, machine, tokens = settings.train.batch_size, settings.machine, settings.train.gradient_cache
    total, questions, examples = 0.0, [], []
    for first in range(0, len(chosen), size):
        part = chosen[first : first + size]
        batch = batcher.first(part)
        vectors = EncodedBatch(encoders, batch, machine, tokens)
        scores_QP = vectors.scores()
        total += dpr_loss(scores_QP, batch.masks.to(scores_QP.device), 0.0).item() * len(batch.questions)
        questions.append(vectors.questions_QD)
        examples += batcher.examples_of(part)
    pool, gold = make_pool(batcher.examples, examples, settings.train.validation_hard_negatives)
    token_dim, questions_QD = encoders.passage.token_dim, torch.cat(questions)
    rows = TOKEN_ROWS if token_dim else ROWS
    parts = (
        encode(encoders.passage, batcher.inputs.ids(pool[i : i + rows]), machine, tokens)
        for i in range(0, len(pool), rows)
    )
    if token_dim:
        scores_QN = torch.cat([score(questions_QD, part, token_dim) for part in parts], 1)
        rank = count_above(scores_QN, torch.tensor(gold, device=scores_QN.device)) / len(gold)
    else:
        rank = average_rank(questions_QD, torch.cat(list(parts)), torch.tensor(gold))
    return Validation(total / len(gold), rank)


def count_validation(validation: Batcher, train: Train) -> dict[str, object]:
    """Count the questions and passages of the average rank, and hash them: ranks of one hash can be compared."""
    if not (chosen := sample(len(validation), train.validation_questions, train.seed)):
        return {}
    rows = validation.examples_of(chosen)
    pool, gold = make_pool(validation.examples, rows, train.validation_hard_negatives)
    ranked = [[validation.examples.question_ids[i] for i in rows], pool, gold]
    digest = hashlib.sha256(json.dumps(ranked).encode()).hexdigest()[:16]
    return {"validation_questions": len(gold), "validation_passages": len(pool), "validation_pool": digest}


def sample(count: int, most: int, seed: int) -> list[int]:
    """Return the positions of at most `most` of `count` examples, always the same ones, in order."""
    return sorted(np.random.default_rng([seed, count]).permutation(count)[:most].tolist())


def make_pool(examples: ExampleSet, chosen: list[int], hard_negatives: int) -> tuple[list[int], list[int]]:
    """Return the rows of the pool's distinct passages, and the position in it of each question's positive."""
    rows: dict[int, None] = {}
    for i in chosen:
        rows[int(examples.positives[i])] = None
        rows |= dict.fromkeys(examples.negatives[i].as_py()[:hard_negatives])
    position = {row: number for number, row in enumerate(rows)}
    return list(rows), [position[int(examples.positives[i])] for i in chosen]


def average_rank(questions_QD: Tensor, passages_ND: Tensor, gold_Q: Tensor) -> float:
    """Return the mean rank of each question's gold passage by dot product, counted from 0, ties against it."""
    parts = zip(questions_QD.split(QUESTIONS), gold_Q.to(questions_QD.device).split(QUESTIONS), strict=True)
    return sum(count_above(part_D @ passages_ND.T, gold) for part_D, gold in parts) / len(gold_Q)


def count_above(scores_QN: Tensor, gold_Q: Tensor) -> int:
    """Count the passages that score no lower than the gold passage of their question."""
    return int((scores_QN >= scores_QN.gather(1, gold_Q[:, None])).sum().item() - len(gold_Q))
