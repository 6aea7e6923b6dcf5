"""`eadpr.training.validation` for two hops: both queries of a question count alike."""

from __future__ import annotations

import torch

from eadpr.machine import Machine
from eadpr.multihop.hop_batches import HopBatcher
from eadpr.training.config import Train
from eadpr.training.example_set import PassageInputs
from eadpr.training.forward import Encoders, encoded, vectors
from eadpr.training.losses import dpr_loss
from eadpr.training.validation import ROWS, Validation, average_rank, pool_of, sample


class HopValidator:
    """In the average rank a question's other supporting passage counts like any passage of the pool."""

    def __init__(self, batcher: HopBatcher, inputs: PassageInputs, train: Train, machine: Machine) -> None:
        self._batcher = batcher
        self._inputs = inputs
        self._machine = machine
        self._train = train
        self._chosen = sample(len(batcher.examples.questions) // 2, train.validation_questions, train.seed)

    @torch.no_grad()
    def __call__(self, encoders: Encoders) -> Validation:
        for encoder in encoders:
            encoder.eval()
        tokens, total, queries, order = self._train.gradient_cache, 0.0, [], []
        for start in range(0, len(self._chosen), self._train.batch_size):
            part = self._chosen[start : start + self._train.batch_size]
            batch = self._batcher.first(part)
            found = encoded(encoders, batch, self._machine, tokens)
            scores_QP = found.scores()
            total += dpr_loss(scores_QP, batch.masks.to(scores_QP.device), 0.0).item() * len(batch.questions)
            queries.append(found.questions_QD)
            order += [2 * i + hop for hop in (0, 1) for i in part]
        pool, gold = pool_of(self._batcher.examples, order, self._train.validation_hard_negatives)
        parts = [pool[i : i + ROWS] for i in range(0, len(pool), ROWS)]
        passages_ND = torch.cat(
            [vectors(encoders.passage, self._inputs.ids(rows), self._machine, tokens) for rows in parts]
        )
        return Validation(total / len(gold), average_rank(torch.cat(queries), passages_ND, torch.tensor(gold)))
