"""Token ids to vectors in batches of similar lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch

from eadpr import parallel
from eadpr.training.encoder import TextEncoder
from eadpr.training.padding import TOKENS, batches, pad


@torch.inference_mode()
def embed(
    encoder: TextEncoder,
    ids: Sequence[Sequence[int]],
    *,
    token_budget: int | None = None,
    precision: Callable[[], AbstractContextManager] = nullcontext,
    device: str = "cpu",
) -> np.ndarray:
    """(N, dim) float32 vectors of N token sequences, in their order; `precision` makes the forward pass's context.

    `token_budget` is of a batch; None: what suits the device.
    """
    vectors_ND = torch.empty((len(ids), encoder.dim), device=device)

    def encode(batch: np.ndarray) -> None:
        input_ids, attention_mask = pad([ids[i] for i in batch], encoder.pad_id)
        with precision():
            encoded = encoder(input_ids.to(device), attention_mask.to(device))
        vectors_ND.index_copy_(0, torch.from_numpy(batch).to(device), encoded.float())

    for _ in parallel.spread(encode, batches([len(row) for row in ids], token_budget or TOKENS[device])):
        pass
    return vectors_ND.cpu().numpy()  # once: after every batch a GPU would wait for the next
