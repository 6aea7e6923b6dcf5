"""Scores of pairs of a question and a passage, by vectors or by the sentences or tokens of late interaction.

Passages are encoded once each, and their tokens not stored. Q questions, F pairs.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch

from eadpr.runtime import machine
from eadpr.runtime.progress import progress
from eadpr.search.encode import embed
from eadpr.search.exact import Hits
from eadpr.training.encoder import Encoders, TextEncoder

AT_ONCE = 256  # texts whose tokens are in memory at a time; a passage of 256 tokens of 384 numbers takes 0.4 MB

Ids = Sequence[Sequence[int]]
ReadIds = Callable[[Sequence[int]], Ids]  # returns the token ids of passages


def score_pairs(encoders: Encoders, question_ids: Ids, question_of: Sequence[int], passages: Ids) -> np.ndarray:
    """Return the scores (F,) of pairs of a question's place and a passage's ids: dot products or `late_scores`."""
    places: dict[tuple[int, ...], int] = {}
    passage_of = np.array([places.setdefault(tuple(ids), len(places)) for ids in passages], np.int64)
    question_of, passage_ids = np.asarray(question_of, np.int64), list(places)
    if encoders.passage.token_dim:
        questions = embed_tokens(encoders.question, question_ids)
        return score_by_parts(questions, question_of, passage_of, partial(take, passage_ids), encoders.passage)
    questions_QD = embed(encoders.question, question_ids)
    passages_FD = embed(encoders.passage, passage_ids)[passage_of]
    return np.einsum("fd,fd->f", passages_FD, questions_QD[question_of], dtype=np.float64)


def take(ids: Ids, rows: Sequence[int]) -> Ids:
    return [ids[row] for row in rows]


def embed_tokens(encoder: TextEncoder, ids: Ids) -> torch.Tensor:
    """Return rows (Q, W * D) float32 of token vectors, W the tokens of the longest text."""
    width = max(map(len, ids), default=0) * encoder.token_dim
    rows = torch.empty(len(ids), width)
    for first in range(0, len(ids), AT_ONCE):
        part = embed(encoder, ids[first : first + AT_ONCE])
        rows[first : first + AT_ONCE] = torch.from_numpy(part[:, :width])
    return rows


def group_by_passage(passage_of: np.ndarray) -> Iterator[tuple[list[int], list[np.ndarray]]]:
    """Yield at most AT_ONCE distinct passages of pairs (F,), in order, and the places of the pairs of each."""
    order = np.argsort(passage_of, kind="stable")
    passages, starts = np.unique(passage_of[order], return_index=True)
    groups = np.split(order, starts[1:])
    for first in range(0, len(passages), AT_ONCE):
        yield passages[first : first + AT_ONCE].tolist(), groups[first : first + AT_ONCE]


@torch.inference_mode()
def score_by_parts(
    questions: torch.Tensor,
    question_of: np.ndarray,
    passage_of: np.ndarray,
    read_ids: ReadIds,
    encoder: TextEncoder,
    advance: Callable[[int], None] = lambda done: None,
) -> np.ndarray:
    """Return the late scores (F,) float32 of pairs of a row of `questions` and a passage, both (F,) int; `advance` gets
    the number of passages scored."""
    tokens = split_tokens(questions, encoder.token_dim)
    scores = np.empty(len(question_of), np.float32)
    for passages, groups in group_by_passage(passage_of):
        read = split_tokens(embed_tokens(encoder, read_ids(passages)), encoder.token_dim)
        for pairs, passage in zip(groups, read, strict=True):
            scores[pairs] = score_passage([tokens[i] for i in question_of[pairs]], passage).numpy()
        advance(len(passages))
    return scores


def split_tokens(rows: torch.Tensor, dim: int) -> Sequence[torch.Tensor]:
    """Return the tokens (T, D) of each row (W * D), without the zeros behind them."""
    tokens_BWD = rows.unflatten(1, (-1, dim))
    present_BW = tokens_BWD.any(-1)
    return tokens_BWD[present_BW].split(present_BW.sum(1).tolist())


def score_passage(questions: Sequence[torch.Tensor], passage: torch.Tensor) -> torch.Tensor:
    """Return the scores (Q,) of a passage's tokens (T, D) by `late_scores`, in one product, which needs no padding."""
    tokens = torch.cat(list(questions))
    with torch.autocast(machine.device(), enabled=False):
        best = (tokens @ passage.T).amax(1) if len(passage) else tokens.new_full((len(tokens),), -1.0)
    lengths = torch.tensor([len(question) for question in questions])
    return torch.segment_reduce(best, "sum", lengths=lengths) / lengths.clamp(min=1)


def rescore(hits: Hits, encoders: Encoders, question_ids: Ids, read_ids: ReadIds, *, depth: int, label: str) -> Hits:
    """Return the best `depth` of each question's candidates by their parts; equal ones keep their order."""
    question, place = np.nonzero(hits.rows >= 0)
    scores = np.full(hits.rows.shape, -np.inf, np.float32)
    rows = hits.rows[question, place]
    with progress(label, len(np.unique(rows)), "passages") as advance:
        questions = embed_tokens(encoders.question, question_ids)
        scores[question, place] = score_by_parts(questions, question, rows, read_ids, encoders.passage, advance)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    return Hits(*(np.take_along_axis(values, best, axis=1) for values in (hits.rows, scores)))
