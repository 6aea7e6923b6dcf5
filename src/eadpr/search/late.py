"""Late interaction at search: candidates are ranked again by their tokens, encoded once each and not stored.

Q questions, F pairs of a question and a passage.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from eadpr.runtime import machine
from eadpr.search.encode import embed
from eadpr.search.exact import Hits
from eadpr.training.encoder import TextEncoder

AT_ONCE = 256  # texts whose tokens are in memory at a time; a passage of 256 tokens of 384 numbers takes 0.4 MB

Ids = Sequence[Sequence[int]]


def embed_tokens(encoder: TextEncoder, ids: Ids) -> torch.Tensor:
    """Return rows (Q, W * D) float32 of token vectors, W the tokens of the longest text."""
    width = max(map(len, ids), default=0) * encoder.token_dim
    rows = torch.empty(len(ids), width)
    for first in range(0, len(ids), AT_ONCE):
        part = embed(encoder, ids[first : first + AT_ONCE], device=machine.device())
        rows[first : first + AT_ONCE] = torch.from_numpy(part[:, :width])
    return rows


@torch.inference_mode()
def score_pairs(
    questions: torch.Tensor,
    question_of: np.ndarray,
    passage_of: np.ndarray,
    read_ids: Callable[[Sequence[int]], Ids],
    encoder: TextEncoder,
    advance: Callable[[int], None] = lambda done: None,
) -> np.ndarray:
    """Return the scores (F,) float32 of pairs of a row of `questions` and a passage, both (F,) int.

    `read_ids` returns the token ids of passages; `advance` gets the number of passages scored.
    """
    tokens = split_tokens(questions, encoder.token_dim)
    scores = np.empty(len(question_of), np.float32)
    order = np.argsort(passage_of, kind="stable")
    passages, starts = np.unique(passage_of[order], return_index=True)
    groups = np.split(order, starts[1:])
    for first in range(0, len(passages), AT_ONCE):
        part = passages[first : first + AT_ONCE].tolist()
        read = split_tokens(embed_tokens(encoder, read_ids(part)), encoder.token_dim)
        for pairs, passage in zip(groups[first : first + AT_ONCE], read, strict=False):
            scores[pairs] = score_passage([tokens[i] for i in question_of[pairs]], passage).numpy()
        advance(len(part))
    return scores


def split_tokens(rows: torch.Tensor, dim: int) -> Sequence[torch.Tensor]:
    """Return the tokens (T, D) of each row (W * D), without the zeros behind them."""
    tokens_BWD = rows.unflatten(1, (-1, dim))
    present_BW = tokens_BWD.any(-1)
    return tokens_BWD[present_BW].split(present_BW.sum(1).tolist())


def score_passage(questions: Sequence[torch.Tensor], passage: torch.Tensor) -> torch.Tensor:
    """Return the scores (Q,) of a passage's tokens (T, D) by `late_scores`, in one product with those of all questions,
    which needs no padding."""
    asked = torch.cat(list(questions))
    best = (asked @ passage.T).amax(1) if len(passage) else asked.new_full((len(asked),), -1.0)
    lengths = torch.tensor([len(question) for question in questions])
    return torch.segment_reduce(best, "sum", lengths=lengths) / lengths.clamp(min=1)


def rescore(
    hits: Hits,
    questions: torch.Tensor,
    read_ids: Callable[[Sequence[int]], Ids],
    encoder: TextEncoder,
    depth: int,
    advance: Callable[[int], None],
) -> Hits:
    """Return the best `depth` of each question's candidates by their tokens; equal ones keep their order."""
    question, place = np.nonzero(hits.rows >= 0)
    scores = np.full(hits.rows.shape, -np.inf, np.float32)
    rows = hits.rows[question, place]
    scores[question, place] = score_pairs(questions, question, rows, read_ids, encoder, advance)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    return Hits(*(np.take_along_axis(values, best, axis=1) for values in (hits.rows, scores)))
