"""From batches to vectors and scores, and from their loss back to the gradients of the encoders."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr.runtime import machine, parallel
from eadpr.training import processes
from eadpr.training.batches import Batch
from eadpr.training.encoder import Encoders, TextEncoder
from eadpr.training.padding import TOKENS, batches, pad

Stopped = Literal["none", "question", "passage"]


class Piece(NamedTuple):
    """Rows of like length that share a forward pass, by their places among all rows of `encoder`."""

    encoder: TextEncoder
    rows: list[int]
    ids: list[Sequence[int]]


def pieces(encoder: TextEncoder, ids: Sequence[Sequence[int]], tokens: int | None = None) -> list[Piece]:
    """Of this process's rows, longest first, of at most `tokens`, padding included; None: what suits the device."""
    lengths = np.array([len(row) for row in ids], dtype=np.int64)
    own = processes.share(np.argsort(-lengths, kind="stable"))
    cut = [own[places].tolist() for places in batches(lengths[own], tokens or TOKENS[machine.device()])]
    return [Piece(encoder, rows, [ids[i] for i in rows]) for rows in cut]


def encode(piece: Piece, settings: machine.Machine) -> Tensor:
    """The vectors (rows, D) float32 of a piece."""
    input_ids, mask = pad(piece.ids, piece.encoder.pad_id)
    with machine.autocast(settings):
        return piece.encoder(input_ids.to(machine.device()), mask.to(machine.device()))


def joined(encoder: TextEncoder, count: int, cut: Sequence[Piece], vectors: Sequence[Tensor]) -> Tensor:
    """(count, D): the vectors of all rows of an encoder in their order, those of other processes too."""
    every_ND = torch.zeros(count, encoder.dim, device=machine.device())
    if cut:
        rows = torch.tensor([row for piece in cut for row in piece.rows], device=every_ND.device)
        every_ND = every_ND.index_copy(0, rows, torch.cat(list(vectors)))
    return processes.summed(every_ND)


def vectors(
    encoder: TextEncoder, ids: Sequence[Sequence[int]], settings: machine.Machine, tokens: int | None = None
) -> Tensor:
    """(len(ids), D) float32, in the order given; `tokens` as in `pieces`."""
    cut = pieces(encoder, ids, tokens)
    found = list(parallel.spread(lambda piece: encode(piece, settings), cut, together=not _draw(cut)))
    return joined(encoder, len(ids), cut, found)


def _draw(cut: Sequence[Piece]) -> bool:
    return any(encoder.training and parallel.uses_dropout(encoder) for encoder in {piece.encoder for piece in cut})


class BatchVectors(NamedTuple):
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


def encoded(encoders: Encoders, batch: Batch, settings: machine.Machine, tokens: int | None = None) -> BatchVectors:
    questions_QD = vectors(encoders.question, batch.questions, settings, tokens)
    passages_ND = vectors(encoders.passage, batch.passages, settings, tokens)
    return BatchVectors(questions_QD, passages_ND, batch.columns_P.to(questions_QD.device))


class Encoded:
    """The vectors of a batch, and the way back from a loss of them to the gradients of the encoders.

    The loss sees leaves in place of the encoders' vectors; each piece's gradient then is taken on its own, so that
    pieces run side by side both ways. With `tokens`, of a piece, no graph of a piece is held meanwhile, but made again
    for its gradient (gradient cache, Gao et al., 2021): memory grows with the batch by its vectors alone.
    """

    def __init__(self, encoders: Encoders, batch: Batch, settings: machine.Machine, tokens: int | None = None) -> None:
        cut = [pieces(encoders.passage, batch.passages, tokens), pieces(encoders.question, batch.questions, tokens)]
        every, first = [*cut[0], *cut[1]], len(cut[0])
        self._draws = _draw(every)
        self._parameters = [p for encoder in dict.fromkeys(encoders) for p in encoder.parameters() if p.requires_grad]

        def passed(piece: Piece) -> tuple[Tensor, Callable[[], Tensor]]:
            """The vectors of a piece, and a function that gives them with their graph."""
            if tokens is None:
                found = encode(piece, settings)
                return found.detach(), lambda: found
            drawn = _random_state() if self._draws else []
            with torch.no_grad():
                found = encode(piece, settings)

            def again() -> Tensor:
                _set_random_state(drawn)  # drops the same units out
                return encode(piece, settings)

            return found, again

        results = list(parallel.spread(passed, every, together=not self._draws))
        found, graphs = [found for found, _ in results], [graph for _, graph in results]
        passages_ND = joined(encoders.passage, len(batch.passages), cut[0], found[:first])
        questions_QD = joined(encoders.question, len(batch.questions), cut[1], found[first:])
        passages_ND.requires_grad_(_learns(encoders.passage))
        questions_QD.requires_grad_(_learns(encoders.question))
        self._sides = ((passages_ND, cut[0], graphs[:first]), (questions_QD, cut[1], graphs[first:]))
        self.vectors = BatchVectors(questions_QD, passages_ND, batch.columns_P.to(questions_QD.device))

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of `loss`, a scalar made of `vectors`, to the encoders' parameters."""
        loss.backward(inputs=[leaf for leaf, _, _ in self._sides if leaf.requires_grad])
        reached = [
            (graph, leaf.grad[piece.rows])
            for leaf, cut, graphs in self._sides
            if leaf.grad is not None
            for piece, graph in zip(cut, graphs, strict=True)
        ]

        def of(piece: tuple[Callable[[], Tensor], Tensor]) -> Sequence[Tensor | None]:
            graph, gradient = piece
            return torch.autograd.grad(graph(), self._parameters, gradient, allow_unused=True)

        devices = [torch.cuda.current_device()] if machine.device() == "cuda" else []
        with torch.random.fork_rng(devices, enabled=self._draws):
            parallel.add_gradients(self._parameters, of, reached, together=not self._draws)


def _learns(encoder: TextEncoder) -> bool:
    return any(parameter.requires_grad for parameter in encoder.parameters())


def _random_state() -> list[Tensor]:
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if machine.device() == "cuda" else [])]


def _set_random_state(state: list[Tensor]) -> None:
    for restore, saved in zip((torch.set_rng_state, torch.cuda.set_rng_state), state, strict=False):
        restore(saved)
