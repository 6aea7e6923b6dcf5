"""Token ids of texts cut into batches of like length and padded."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

# Tokens of a batch by device, padding included. CPU: few enough for the caches, and for several threads to have one
# each; GPU: enough to fill it, and few enough for rows of similar length. Decides the last bits of vectors.
TOKENS = {"cpu": 2_048, "cuda": 16_384}


def pad(ids: Sequence[Sequence[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    """Return the ids, padded at the end to the longest, and the attention mask; both (B, T) int64."""
    lengths = np.array([len(row) for row in ids])
    padded = np.full((len(ids), lengths.max()), pad_id, dtype=np.int64)
    for target, row in zip(padded, ids, strict=True):
        target[: len(row)] = row
    mask = np.arange(lengths.max()) < lengths[:, None]
    return torch.from_numpy(padded), torch.from_numpy(mask.astype(np.int64))


def batches(lengths: Sequence[int], token_budget: int) -> Iterator[np.ndarray]:
    """Yield indices of texts, longest first, in batches whose padded size is in the budget, or of one text."""
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    start = 0
    while start < len(order):
        size = max(1, token_budget // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size
