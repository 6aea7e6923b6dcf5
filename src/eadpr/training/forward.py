"""From batches to vectors and scores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from eadpr import machine
from eadpr.training.batches import Batch
from eadpr.training.encoder import TextEncoder, pad

Stopped = Literal["none", "question", "passage"]
ROWS_ON_CPU = 32  # rows per forward pass; more do not fit the caches


class Encoders(NamedTuple):
    """The same object twice where the encoder is shared."""

    question: TextEncoder
    passage: TextEncoder


def vectors(encoder: TextEncoder, ids: Sequence[Sequence[int]], settings: machine.Machine) -> Tensor:
    """(len(ids), D) float32, in the order given; rows of like length share a pass, on a GPU all of them."""
    device = machine.device()
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    size = len(ids) if device == "cuda" else ROWS_ON_CPU
    parts = []
    for first in range(0, len(order), size):
        input_ids, mask = pad([ids[i] for i in order[first : first + size]], encoder.pad_id)
        with precision(settings):
            parts.append(encoder(input_ids.to(device), mask.to(device)))
    back = torch.empty(len(order), dtype=torch.int64)
    back[torch.tensor(order)] = torch.arange(len(order))
    return torch.cat(parts).index_select(0, back.to(device))


class Vectors(NamedTuple):
    """Of a batch: its questions (B, D), the distinct passages (N, D) and which of these each column is (P,)."""

    questions_QD: Tensor
    passages_ND: Tensor
    columns_P: Tensor

    def scores(self, stopped: Stopped = "none") -> Tensor:
        """scores_QP (B, P) float32: dot products of the questions with every column; no gradient reaches the vectors of
        the `stopped` side."""
        questions_QD = self.questions_QD.detach() if stopped == "question" else self.questions_QD
        passages_ND = self.passages_ND.detach() if stopped == "passage" else self.passages_ND
        return (questions_QD @ passages_ND.T).index_select(1, self.columns_P)


def encoded(encoders: Encoders, batch: Batch, settings: machine.Machine) -> Vectors:
    questions_QD = vectors(encoders.question, batch.questions, settings)
    passages_ND = vectors(encoders.passage, batch.passages, settings)
    return Vectors(questions_QD, passages_ND, batch.columns_P.to(questions_QD.device))


def precision(settings: machine.Machine) -> AbstractContextManager:
    return machine.autocast(settings)
