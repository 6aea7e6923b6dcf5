"""How a model in training does on held-out questions: DPR's two measures (Karpukhin et al., 2020)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr.machine import Machine
from eadpr.training.batches import Batcher
from eadpr.training.config import Train
from eadpr.training.example_set import ExampleSet
from eadpr.training.forward import Encoders, encoded, vectors
from eadpr.training.losses import dpr_loss

ROWS = 4096  # passages tokenised and encoded at once
QUESTIONS = 256  # scored at once


class Validation(NamedTuple):
    """`nll`: mean in-batch loss, hard negatives included. `average_rank`: passages of the pool that score no lower than
    the question's positive, mean over the questions; the pool is all their positives and some negatives of each."""

    nll: float
    average_rank: float


class Validator:
    def __init__(self, batcher: Batcher, train: Train, machine: Machine) -> None:
        self._batcher = batcher
        self._machine = machine
        self._train = train
        self._chosen = sample(len(batcher), train.validation_questions, train.seed)

    @torch.no_grad()
    def __call__(self, encoders: Encoders) -> Validation:
        for encoder in encoders:
            encoder.eval()
        tokens, total, questions, asked = self._train.gradient_cache, 0.0, [], []
        for first in range(0, len(self._chosen), self._train.batch_size):
            part = self._chosen[first : first + self._train.batch_size]
            batch = self._batcher.first(part)
            found = encoded(encoders, batch, self._machine, tokens)
            scores_QP = found.scores()
            total += dpr_loss(scores_QP, batch.masks.to(scores_QP.device), 0.0).item() * len(batch.questions)
            questions.append(found.questions_QD)
            asked += self._batcher.asked(part)
        pool, gold = pool_of(self._batcher.examples, asked, self._train.validation_hard_negatives)
        parts = [pool[i : i + ROWS] for i in range(0, len(pool), ROWS)]
        passages_ND = torch.cat(
            [vectors(encoders.passage, self._batcher.inputs.ids(rows), self._machine, tokens) for rows in parts]
        )
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
