"""AdamW's settings and the learning rate at each step, as in DPR (Karpukhin et al., 2020); no heavy imports."""

from pydantic import Field

from eadpr.runtime.section import Section

FLOOR = 1e-7
LONGEST_WARMUP = 1237  # DPR's, chosen for 18,400 steps


class Optimiser(Section):
    """AdamW and its schedule, and the seed of what steps draw. `warmup_steps` None: as in the function of that name."""

    seed: int = Field(ge=0)
    learning_rate: float = Field(gt=0, le=10)
    warmup_steps: int | None = Field(ge=0)
    adam_beta1: float = Field(ge=0, lt=1)
    adam_beta2: float = Field(ge=0, lt=1)
    adam_eps: float = Field(gt=0)
    weight_decay: float = Field(ge=0)
    max_grad_norm: float = Field(gt=0)


def multiplier(step: int, *, warmup: int, total: int) -> float:
    """Factor on the learning rate at a step counted from 0: linear rise to 1, then linear fall to the floor of 1e-7."""
    if step < warmup:
        return step / warmup
    return max(FLOOR, (total - step) / max(1, total - warmup))


def warmup_steps(optimiser: Optimiser, total: int) -> int:
    return min(LONGEST_WARMUP, total // 10) if optimiser.warmup_steps is None else optimiser.warmup_steps
