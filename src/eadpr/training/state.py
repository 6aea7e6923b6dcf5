"""All that changes while a training runs: weights, optimiser, steps taken, what was logged, the best weights so far."""

from __future__ import annotations

import torch
from torch import Tensor

from eadpr.training.encoder import Encoders
from eadpr.training.log import Series
from eadpr.training.schedule import Optimiser


class TrainingState:
    def __init__(self, encoders: Encoders, settings: Optimiser, *others: torch.nn.Module) -> None:
        """`others` are modules that change, though not by gradients."""
        self.encoders = encoders
        self.modules = list(dict.fromkeys(encoders))  # one where the encoder is shared
        self.optimizer = adamw(self.modules, settings)
        self._saved = (*self.modules, *others)
        self.step = 0
        self.series: Series = {}
        self.best_rank = float("inf")
        self.best_step: int | None = None
        self._best: list[dict[str, Tensor]] | None = None

    def keep_if_best(self, average_rank: float) -> None:
        if average_rank < self.best_rank:
            self.best_rank, self.best_step = average_rank, self.step
            self._best = [{name: value.clone() for name, value in m.state_dict().items()} for m in self.modules]

    def use_best(self) -> None:
        for module, weights in zip(self.modules, self._best, strict=True):
            module.load_state_dict(weights)

    def as_dict(self) -> dict:
        """Tensors and plain values only, so that it can be loaded without running code."""
        return {
            "weights": [module.state_dict() for module in self._saved],
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "series": self.series,
            "best": (self.best_rank, self.best_step, self._best),
        }

    def restore(self, saved: dict) -> None:
        for module, weights in zip(self._saved, saved["weights"], strict=True):
            module.load_state_dict(weights)
        self.optimizer.load_state_dict(saved["optimizer"])
        self.step, self.series = saved["step"], saved["series"]
        self.best_rank, self.best_step, self._best = saved["best"]


def adamw(modules: list[torch.nn.Module], settings: Optimiser) -> torch.optim.AdamW:
    """AdamW over what has gradients; biases and the weights of norms do not decay."""
    parameters = [p for module in modules for p in module.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    betas = (settings.adam_beta1, settings.adam_beta2)
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=betas, eps=settings.adam_eps, fused=True)
