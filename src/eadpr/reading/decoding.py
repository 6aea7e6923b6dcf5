"""The best answer span of a passage, from an extractive reader's logits. Shapes as in `losses`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from eadpr.reading.losses import log_probabilities


class TokenSpan(NamedTuple):
    """`score` is the log-probability of its start and its end."""

    first: int
    last: int
    score: float


def best_spans(start_PT: Tensor, end_PT: Tensor, text_PT: Tensor, *, longest: int) -> list[TokenSpan | None]:
    """The likeliest span of at most `longest` tokens of each passage, of equals the first and shortest; None for a
    passage without text."""
    starts_PT, ends_PT = log_probabilities(start_PT, text_PT), log_probabilities(end_PT, text_PT)
    count = starts_PT.shape[1]
    scores_PTL = torch.full((*starts_PT.shape, min(longest, count)), -torch.inf)
    for more in range(min(longest, count)):
        scores_PTL[:, : count - more, more] = (starts_PT[:, : count - more] + ends_PT[:, more:]).cpu()
    found: list[TokenSpan | None] = []
    for scores_TL in scores_PTL.numpy():  # numpy's argmax gives the first of equals
        first, more = divmod(int(scores_TL.argmax()), scores_TL.shape[1])
        score = float(scores_TL[first, more])
        found.append(TokenSpan(first, first + more, score) if score > -torch.inf else None)
    return found
