"""A training's state on disk, so that a killed training ends with the bytes of an undisturbed one.

Nothing random is in it: batches, dropout and learning rate are functions of seed and step.
"""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import torch

from eadpr.files import replacing
from eadpr.training import processes

NAME = "state.pt"
SECONDS = 20.0  # least time between checkpoints; EADPR_CHECKPOINT_SECONDS sets another, 0 saves at every step
SHARE = 50  # a checkpoint may cost 1/50 of the time


class Checkpoints:
    """Saves to `folder` when it is due. How often changes how much is lost, never the bytes of the result.

    Of several processes only the first has a folder; all load what it saved.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = folder and folder / NAME
        self._seconds = float(os.environ.get("EADPR_CHECKPOINT_SECONDS", SECONDS))
        self._cost = 0.0
        self._last = time.monotonic()

    def load(self) -> dict | None:
        """The last state saved; tensors and plain values only, never code."""
        saved = processes.of_first(self._path.read_bytes() if self._path and self._path.exists() else b"")
        return torch.load(io.BytesIO(saved), map_location="cpu", weights_only=True) if saved else None

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
