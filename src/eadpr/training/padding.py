"""Token ids of texts cut into batches of like length and padded."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

# Of a batch, padding included, by device. CPU: few enough for the caches and for several threads to have one; GPU:
# enough to fill it, and few enough that rows are of like length. Decides the last bits of vectors.
TOKENS = {"cpu": 2_048, "cuda": 16_384}


def pad(ids: Sequence[Sequence[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    """Ids padded at the end to the longest, and the attention mask; both (B, T) int64."""
    lengths = np.array([len(row) for row in ids])
    padded = np.full((len(ids), lengths.max()), pad_id, dtype=np.int64)
    for to, row in zip(padded, ids, strict=True):
        to[: len(row)] = row
    mask = np.arange(lengths.max()) < lengths[:, None]
    return torch.from_numpy(padded), torch.from_numpy(mask.astype(np.int64))


def batches(lengths: Sequence[int], token_budget: int) -> Iterator[np.ndarray]:
    """Indices of texts, longest first, in batches of a padded size within the budget; a text alone may exceed it."""
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    start = 0
    while start < len(order):
        size = max(1, token_budget // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size
