"""Losses and decoding of an extractive reader (Karpukhin et al., 2020, section 6.1), on the logits of one question.

Shapes: P passages, T tokens, A answer spans. A span is its first and its last token. Start and end are softmaxes over
the tokens of a passage's text: `text` is false for question, title and padding.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class TokenSpan(NamedTuple):
    """`score` is the log-probability of its start and its end."""

    first: int
    last: int
    score: float


def log_probabilities(logits: Tensor, text: Tensor) -> Tensor:
    """(..., T): log-softmax over the tokens of the text, -inf elsewhere, everywhere in a passage without text."""
    found = logits.masked_fill(~text, -torch.inf).log_softmax(-1)
    return torch.where(text, found, -torch.inf)


def span_nll(start_T: Tensor, end_T: Tensor, text_T: Tensor, spans_A2: Tensor) -> Tensor:
    """-log of the probability that the answer is any of the spans; there is at least one, all lie in the text."""
    starts_A = log_probabilities(start_T, text_T)[spans_A2[:, 0]]
    ends_A = log_probabilities(end_T, text_T)[spans_A2[:, 1]]
    return -(starts_A + ends_A).logsumexp(0)


def selection_nll(passages_P: Tensor) -> Tensor:
    """-log of the softmax over passages of the first, the positive."""
    return -passages_P.log_softmax(0)[0]


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
