"""Token ids to vectors in batches of similar lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch

from eadpr.training.encoder import TextEncoder, pad

TOKEN_BUDGET = 16_384  # of questions and of single pairs; decides the last bits of their vectors


def batches(lengths: Sequence[int], token_budget: int) -> Iterator[np.ndarray]:
    """Indices of texts, longest first, in batches of a padded size within the budget; a text alone may exceed it."""
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    start = 0
    while start < len(order):
        size = max(1, token_budget // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size


@torch.inference_mode()
def embed(
    encoder: TextEncoder,
    ids: Sequence[Sequence[int]],
    *,
    token_budget: int = TOKEN_BUDGET,
    precision: Callable[[], AbstractContextManager] = nullcontext,
    device: str = "cpu",
) -> np.ndarray:
    """(N, dim) float32 vectors of N token sequences, in their order; `precision` makes the forward pass's context."""
    vectors = np.empty((len(ids), encoder.dim), np.float32)
    for batch in batches([len(row) for row in ids], token_budget):
        input_ids, attention_mask = pad([ids[i] for i in batch], encoder.pad_id)
        with precision():
            encoded = encoder(input_ids.to(device), attention_mask.to(device))
        vectors[batch] = encoded.float().cpu().numpy()
    return vectors
