"""From batches to vectors and scores, and from their loss back to the gradients of the encoders."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from eadpr.runtime import machine, parallel
from eadpr.training import processes
from eadpr.training.batches import Batch
from eadpr.training.encoder import Encoders, TextEncoder
from eadpr.training.late import part_scores, score
from eadpr.training.padding import TOKENS, batches, pad

Stopped = Literal["none", "question", "passage"]


class Piece(NamedTuple):
    """Rows of similar length that share a forward pass, by their positions among all rows of `encoder`."""

    encoder: TextEncoder
    rows: list[int]
    ids: list[Sequence[int]]


def cut_pieces(encoder: TextEncoder, ids: Sequence[Sequence[int]], tokens: int | None = None) -> list[Piece]:
    """Cut this process's rows, longest first, into pieces of at most `tokens` with padding; None: by the device."""
    share = np.arange(len(ids))[processes.share()]
    lengths = [len(ids[row]) for row in share]
    cuts = [share[positions].tolist() for positions in batches(lengths, tokens or TOKENS[machine.device()])]
    return [Piece(encoder, rows, [ids[i] for i in rows]) for rows in cuts]


def encode_piece(piece: Piece, settings: machine.Machine) -> Tensor:
    """Return the vectors (rows, D) float32 of a piece."""
    input_ids, mask = pad(piece.ids, piece.encoder.pad_id)
    with machine.autocast(settings):
        return piece.encoder(machine.send(input_ids), machine.send(mask))


def join_pieces(encoder: TextEncoder, count: int, pieces: Sequence[Piece], vectors: Sequence[Tensor]) -> Tensor:
    """Return (count, D): the vectors of all rows of an encoder in their order, with the rows of other processes."""
    joined_ND = torch.zeros(count, encoder.dim, device=machine.device())
    if pieces:
        rows = [row for piece in pieces for row in piece.rows]
        joined_ND = joined_ND.index_copy(0, machine.send(torch.tensor(rows)), torch.cat(list(vectors)))
    return processes.summed(joined_ND)


def encode(
    encoder: TextEncoder, ids: Sequence[Sequence[int]], settings: machine.Machine, tokens: int | None = None
) -> Tensor:
    """Return (len(ids), D) float32, in the order of `ids`; `tokens` as in `cut_pieces`."""
    pieces = cut_pieces(encoder, ids, tokens)
    together = not _uses_dropout([encoder])
    vectors = list(parallel.spread(lambda piece: encode_piece(piece, settings), pieces, together=together))
    return join_pieces(encoder, len(ids), pieces, vectors)


def _uses_dropout(encoders: Iterable[TextEncoder]) -> bool:
    return any(encoder.training and parallel.uses_dropout(encoder) for encoder in encoders)


class EncodedBatch:
    """The vectors of a batch, and the way back from their loss to the gradients of the encoders.

    The loss sees leaves instead of the encoders' vectors; the gradient of each piece is then taken by itself, so that
    pieces run side by side both ways. With `tokens`, of a piece, no graph of a piece is kept in between, but built
    again for its gradient (gradient cache, Gao et al., 2021): memory grows with the batch by its vectors alone.
    """

    def __init__(self, encoders: Encoders, batch: Batch, settings: machine.Machine, tokens: int | None = None) -> None:
        distinct = dict.fromkeys(encoders)
        self._parameters = [p for encoder in distinct for p in encoder.parameters() if p.requires_grad]
        self._together = not _uses_dropout(distinct)

        def forward(piece: Piece) -> Tensor:
            if tokens is None:
                return encode_piece(piece, settings)
            return checkpoint(encode_piece, piece, settings, use_reentrant=False, preserve_rng_state=not self._together)

        passage_pieces = cut_pieces(encoders.passage, batch.passages, tokens)
        question_pieces = cut_pieces(encoders.question, batch.questions, tokens)
        first = len(passage_pieces)
        graphs = list(parallel.spread(forward, passage_pieces + question_pieces, together=self._together))
        vectors = [graph.detach() for graph in graphs]
        self.passages_ND = join_pieces(encoders.passage, len(batch.passages), passage_pieces, vectors[:first])
        self.questions_QD = join_pieces(encoders.question, len(batch.questions), question_pieces, vectors[first:])
        self.passages_ND.requires_grad_(_learns(encoders.passage))
        self.questions_QD.requires_grad_(_learns(encoders.question))
        self._sides = (
            (self.passages_ND, passage_pieces, graphs[:first]),
            (self.questions_QD, question_pieces, graphs[first:]),
        )
        self.columns_P = machine.send(batch.columns_P)
        self._parts_Q2T = None if batch.parts_Q2T is None else machine.send(batch.parts_Q2T)
        self._scale, self._token_dim = encoders.passage.settings.loss_scale, encoders.passage.token_dim

    def scores(self, stopped: Stopped = "none") -> Tensor:
        """Return scores_QP (B, P) float32; no gradient reaches the vectors of the `stopped` side."""
        scores_QN = score(*self._stop(stopped), self._token_dim)
        return (scores_QN * self._scale).index_select(1, self.columns_P)

    def part_scores(self, stopped: Stopped = "none") -> Tensor | None:
        """Return (B, 2) float32: each question's scores with evidence and rest of its positive, if parts are known."""
        if self._parts_Q2T is None:
            return None
        questions_QD, passages_ND = self._stop(stopped)
        positives_QD = passages_ND.index_select(0, self.columns_P[: len(questions_QD)])
        return part_scores(questions_QD, positives_QD, self._parts_Q2T, self._token_dim) * self._scale

    def _stop(self, stopped: Stopped) -> tuple[Tensor, Tensor]:
        questions_QD = self.questions_QD.detach() if stopped == "question" else self.questions_QD
        return questions_QD, self.passages_ND.detach() if stopped == "passage" else self.passages_ND

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of `loss`, a scalar made of the scores, to the encoders' parameters."""
        loss.backward(inputs=[leaf for leaf, _, _ in self._sides if leaf.requires_grad])
        reached = [
            (graph, leaf.grad.index_select(0, machine.send(torch.tensor(piece.rows))))
            for leaf, pieces, graphs in self._sides
            if leaf.grad is not None
            for piece, graph in zip(pieces, graphs, strict=True)
        ]

        def gradients(piece: tuple[Tensor, Tensor]) -> Sequence[Tensor | None]:
            vectors, gradient = piece
            return torch.autograd.grad(vectors, self._parameters, gradient, allow_unused=True)

        parallel.add_gradients(self._parameters, gradients, reached, together=self._together)


def _learns(encoder: TextEncoder) -> bool:
    return torch.is_grad_enabled() and any(parameter.requires_grad for parameter in encoder.parameters())
