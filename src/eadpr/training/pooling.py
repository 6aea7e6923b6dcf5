"""One vector of the states of a text's tokens. Shapes: B texts, T tokens, D dimensions."""

import torch
from torch import Tensor


def pool(states: Tensor, mask: Tensor, pooling: str) -> Tensor:
    """Return one vector a text, (B, D) float32, of states (B, T, D); the mask (B, T) is 1 for a token, 0 for padding.

    For `last` the padding may stand on either side.
    """
    if pooling == "mean":
        weights = mask.unsqueeze(-1).float()
        return (states.float() * weights).sum(1) / weights.sum(1)
    if pooling == "cls":
        return states[:, 0].float()
    places = mask.shape[1] - 1 - mask.flip(1).argmax(1)
    return states[torch.arange(len(states), device=states.device), places].float()
