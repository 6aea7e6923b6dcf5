"""From batches to vectors and scores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from eadpr import machine, parallel
from eadpr.training.batches import Batch
from eadpr.training.encoder import TextEncoder, batches, pad

Stopped = Literal["none", "question", "passage"]
# Of a piece, padded, by device. CPU: few enough for the caches and for several threads to have one; GPU: enough to fill
# it, and few enough that a piece's rows are of like length.
TOKENS = {"cpu": 2_048, "cuda": 16_384}


class Encoders(NamedTuple):
    """The same object twice where the encoder is shared."""

    question: TextEncoder
    passage: TextEncoder


class Piece(NamedTuple):
    """Rows of like length that share a forward pass, by their places among all rows of `encoder`."""

    encoder: TextEncoder
    rows: list[int]
    ids: list[Sequence[int]]


def pieces(encoder: TextEncoder, ids: Sequence[Sequence[int]]) -> list[Piece]:
    """Longest rows first."""
    cut = batches([len(row) for row in ids], TOKENS[machine.device()])
    return [Piece(encoder, rows.tolist(), [ids[i] for i in rows]) for rows in cut]


def forward(cut: Sequence[Piece], settings: machine.Machine) -> list[Tensor]:
    """The vectors (rows, D) float32 of each piece."""

    def encode(piece: Piece) -> Tensor:
        input_ids, mask = pad(piece.ids, piece.encoder.pad_id)
        with precision(settings):
            return piece.encoder(input_ids.to(machine.device()), mask.to(machine.device()))

    return list(parallel.spread(encode, cut, together=not _draw(cut)))


def joined(cut: Sequence[Piece], vectors: Sequence[Tensor]) -> Tensor:
    """(N, D): the vectors of all pieces of an encoder, in the order of its rows."""
    order = torch.tensor([row for piece in cut for row in piece.rows])
    return torch.cat(list(vectors)).index_select(0, order.argsort().to(vectors[0].device))


def vectors(encoder: TextEncoder, ids: Sequence[Sequence[int]], settings: machine.Machine) -> Tensor:
    """(len(ids), D) float32, in the order given."""
    cut = pieces(encoder, ids)
    return joined(cut, forward(cut, settings))


def _draw(cut: Sequence[Piece]) -> bool:
    return any(encoder.training and parallel.draws(encoder) for encoder in {piece.encoder for piece in cut})


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


class Encoded:
    """The vectors of a batch, and the way back from a loss of them to the gradients of the encoders.

    The loss sees leaves in place of the pieces' vectors; each piece's gradient then is taken on its own, so that pieces
    run side by side both ways.
    """

    def __init__(self, encoders: Encoders, batch: Batch, settings: machine.Machine) -> None:
        sides = pieces(encoders.question, batch.questions), pieces(encoders.passage, batch.passages)
        self._pieces = [*sides[1], *sides[0]]
        self._found = forward(self._pieces, settings)
        self._leaves = [found.detach().requires_grad_(found.requires_grad) for found in self._found]
        self._parameters = [p for encoder in dict.fromkeys(encoders) for p in encoder.parameters() if p.requires_grad]
        cut = len(sides[1])
        questions_QD, passages_ND = joined(sides[0], self._leaves[cut:]), joined(sides[1], self._leaves[:cut])
        self.vectors = Vectors(questions_QD, passages_ND, batch.columns_P.to(questions_QD.device))

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of `loss`, a scalar made of `vectors`, to the encoders' parameters."""
        learning = [i for i, leaf in enumerate(self._leaves) if leaf.requires_grad]
        gradients = torch.autograd.grad(loss, [self._leaves[i] for i in learning], allow_unused=True)
        reached = [(self._found[i], g) for i, g in zip(learning, gradients, strict=True) if g is not None]

        def of(piece: tuple[Tensor, Tensor]) -> Sequence[Tensor | None]:
            found, gradient = piece
            return torch.autograd.grad(found, self._parameters, gradient, allow_unused=True)

        parallel.add_gradients(self._parameters, of, reached, together=not _draw(self._pieces))


def precision(settings: machine.Machine) -> AbstractContextManager:
    return machine.autocast(settings)
