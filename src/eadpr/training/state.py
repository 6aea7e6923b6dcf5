"""The parts of a training that change, and their checkpoint, from which a killed training ends with the same bytes.

It holds no random state: lessons, dropout and learning rate are functions of seed and step.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from eadpr.runtime.files import replacing
from eadpr.training import processes
from eadpr.training.encoder import Encoders
from eadpr.training.optimiser import Optimiser

NAME = "state.pt"
SECONDS, VARIABLE = 20.0, "EADPR_CHECKPOINT_SECONDS"  # least time between checkpoints; 0 saves at every step
SHARE = 50  # a checkpoint may cost 1/50 of the time


class TrainingState:
    """Weights, optimiser, steps taken, logged values, and the best weights so far.

    `series` maps a name such as `train/loss` to pairs of step and value.
    """

    def __init__(self, encoders: Encoders, settings: Optimiser) -> None:
        self.encoders = encoders
        self.modules = list(dict.fromkeys(encoders))  # one where the encoder is shared
        self.optimizer = adamw(self.modules, settings)
        self.step = 0
        self.unread: dict[str, float | Tensor] = {}  # of the last step, until they are logged
        self.arrived: torch.cuda.Event | None = None  # when a card has computed them
        self.series: dict[str, list[tuple[int, float]]] = {}
        self.best = (float("inf"), float("inf"))  # average rank, and where ranks are equal the loss
        self.best_step: int | None = None
        self._best: list[dict[str, Tensor]] | None = None

    def log(self, kind: str, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.series.setdefault(f"{kind}/{name}", []).append((self.step, value))

    def keep_if_best(self, average_rank: float, nll: float = 0.0) -> None:
        if (average_rank, nll) < self.best:
            self.best, self.best_step = (average_rank, nll), self.step
            self._best = [{name: value.clone() for name, value in _learnt(m).items()} for m in self.modules]

    def use_best(self) -> None:
        self._load(self._best)

    def _load(self, saved: list[dict[str, Tensor]]) -> None:
        for module, weights in zip(self.modules, saved, strict=True):
            module.load_state_dict(module.state_dict() | weights)

    def as_dict(self) -> dict:
        return {
            "weights": [_learnt(module) for module in self.modules],
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "series": self.series,
            "best": (self.best, self.best_step, self._best),
        }

    def restore(self, saved: dict) -> None:
        self._load(saved["weights"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.step, self.series = saved["step"], saved["series"]
        self.best, self.best_step, self._best = saved["best"]


def _learnt(module: torch.nn.Module) -> dict[str, Tensor]:
    """Return the weights that learn, by name; frozen ones stay those of the start."""
    return {name: weight.detach() for name, weight in module.named_parameters() if weight.requires_grad}


def adamw(modules: list[torch.nn.Module], settings: Optimiser) -> torch.optim.AdamW:
    """Return AdamW over the parameters with gradients; biases and the weights of norms do not decay."""
    parameters = [p for module in modules for p in module.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    betas = (settings.adam_beta1, settings.adam_beta2)
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=betas, eps=settings.adam_eps, fused=True)


class Checkpoints:
    """Saves the training state to `folder` now and then; of several processes only the first has a folder."""

    def __init__(self, folder: Path | None) -> None:
        self._path = folder and folder / NAME
        try:
            self._seconds = float(os.environ.get(VARIABLE, SECONDS))
        except ValueError as error:
            raise ValueError(f"{VARIABLE}: {error}; it takes seconds, such as {SECONDS:g}, or 0") from error
        self._cost = 0.0
        self._last = time.monotonic()

    def load(self) -> dict | None:
        """Return the last state saved; tensors and plain values only, never code."""
        path = processes.broadcast(self._path if self._path and self._path.exists() else None)
        try:
            return path and torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:  # torch raises many kinds
            raise ValueError(f"{path} is damaged ({error}); delete it, and the training begins again") from error

    def due(self) -> bool:
        if self._path is None:
            return False
        wait = max(self._seconds, SHARE * self._cost) if self._seconds else 0.0
        return time.monotonic() - self._last >= wait

    def save(self, state: dict) -> None:
        began = time.monotonic()
        with replacing(self._path) as temporary:
            torch.save(state, temporary)
        self._last = time.monotonic()
        self._cost = self._last - began
