"""How many steps a training takes, and the learning rate at each, as in DPR (Karpukhin et al., 2020)."""

from __future__ import annotations

from eadpr.training.config import Optimiser, Train

FLOOR = 1e-7
LONGEST_WARMUP = 1237  # DPR's, chosen for 18,400 steps


def multiplier(step: int, *, warmup: int, total: int) -> float:
    """Factor on the learning rate at a step counted from 0: linear rise to 1, then linear fall to the floor of 1e-7."""
    if step < warmup:
        return step / warmup
    return max(FLOOR, (total - step) / max(1, total - warmup))


def total_steps(train: Train, questions: int) -> int:
    """Optimiser steps: `steps`, or `epochs` passes over the batches of `questions`, each counted as often as an epoch
    asks it; times `step_factor`, rounded, but 0 only of 0."""
    batches = max(1, questions // train.batch_size)
    steps = train.steps if train.steps is not None else max(1, batches * train.epochs // train.accumulation)
    return max(round(steps * train.step_factor), min(steps, 1))


def warmup_steps(optimiser: Optimiser, total: int) -> int:
    return min(LONGEST_WARMUP, total // 10) if optimiser.warmup_steps is None else optimiser.warmup_steps
