"""What the reader of paths learns from: which path, what kind of answer, where it stands, which sentences support it.

All in nats, means over what they are about. Q questions, N paths of each, T tokens, S sentences, G gold paths.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

KINDS = ("span", "yes", "no")


def path_loss(scores_QN: Tensor, gold_QN: Tensor, there_QN: Tensor) -> Tensor:
    """-log of the gold paths' share of the softmax over the paths that are there; each question has a gold one."""
    everyone = scores_QN.masked_fill(~there_QN, -torch.inf).logsumexp(1)
    return (everyone - scores_QN.masked_fill(~(gold_QN & there_QN), -torch.inf).logsumexp(1)).mean()


def kind_loss(scores_GK: Tensor, kinds_G: Tensor) -> Tensor:
    """Cross-entropy; kinds are indices of KINDS."""
    return cross_entropy(scores_GK, kinds_G)


def span_loss(start_GT: Tensor, end_GT: Tensor, readable_GT: Tensor, spans: list[list[tuple[int, int]]]) -> Tensor:
    """-log of the probability of all the answer's places together, P(start) P(end) each: marginal likelihood, as DPR's
    reader (Karpukhin et al., 2020). `spans` are first and last tokens by path; paths without any teach nothing, and
    where none has one the loss is 0."""
    starts_GT, ends_GT = log_probabilities(start_GT, readable_GT), log_probabilities(end_GT, readable_GT)
    found = [
        -torch.stack([starts_GT[g, first] + ends_GT[g, last] for first, last in own]).logsumexp(0)
        for g, own in enumerate(spans)
        if own
    ]
    return torch.stack(found).mean() if found else start_GT.sum() * 0


def log_probabilities(scores_GT: Tensor, readable_GT: Tensor) -> Tensor:
    """log softmax over the readable tokens; -inf elsewhere, where there is no gradient."""
    masked = scores_GT.masked_fill(~readable_GT, torch.finfo(scores_GT.dtype).min)
    return masked.log_softmax(1).masked_fill(~readable_GT, -torch.inf)


def support_loss(scores_GS: Tensor, support_GS: Tensor, there_GS: Tensor) -> Tensor:
    """Binary cross-entropy over the sentences that are there; 0 where there are none."""
    losses = binary_cross_entropy_with_logits(scores_GS, support_GS.to(scores_GS.dtype), reduction="none")
    return losses.masked_fill(~there_GS, 0).sum() / there_GS.sum().clamp(min=1)
