"""Losses of an extractive reader (Karpukhin et al., 2020, section 6.1), on the logits of one question.

Shapes: P passages, T tokens, A answer spans. A span is its first and its last token. Start and end are softmaxes over
the tokens of a passage's text: `text` is false for question, title and padding.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
