"""Trainings of the toy collection by as many processes as run this module: python -m tests.trained_together TOY OUT."""

import os
import sys
from pathlib import Path

from eadpr.runtime.machine import settle
from tests.training_toy import DPR, EADPR, EVIDENCE, MACHINE, SETTINGS, TRAIN

# No dropout, whose units differ between one process and several; and with Adam's 1e-8 a gradient that is 0 but for its
# rounding, as that of the biases of keys, would move weights as far as any other.
PLAIN = {"dropout": 0.0, "attention_dropout": 0.0, "adam_eps": 1e-3, "batch_size": 5, "keep": "best"}
STOPPED = EADPR.model_copy(update={"stop_gradient": "question"})
SYMMETRIC = EADPR.model_copy(update={"stop_gradient": "symmetric"})
CASES = {  # loss, shared, changes of `train`
    "dpr": (DPR, False, {}),
    "eadpr": (EADPR, False, {}),
    "shared": (SYMMETRIC, True, {}),
    "cached": (EADPR, True, {"gradient_cache": 60, "batch_size": 8}),
    "stopped": (STOPPED, False, {"weight_decay": 0.1}),
    "frozen": (EADPR, False, {"freeze": "passage", "weight_decay": 0.1}),
    "one question": (EADPR, False, {"batch_size": 1}),
    "token": (EVIDENCE, True, {"gradient_cache": 60}),
    "cosine": (EADPR, True, {"gradient_cache": 60}),
    "layers": (EADPR, False, {"layers": 1}),
}


class Killed(Exception):
    pass


def train(toy: Path, out: Path, case: str, **changes) -> None:
    from eadpr.training.arm import ArmInputs, ArmSettings, train_arm

    loss, shared, case_changes = CASES[case]
    similarity = "cosine" if case == "cosine" else "dot"
    settings = SETTINGS.model_copy(update={"shared": shared, "similarity": similarity})
    settings = settings.model_copy(update={"unit": "token" if case == "token" else "passage"})
    sections = ArmSettings(loss, TRAIN.model_copy(update=PLAIN | case_changes | changes), settings, MACHINE)
    train_arm(ArmInputs(toy / "records", toy / "examples", toy / "base"), out / "model", out / "log", sections)


def die_and_go_on(toy: Path, out: Path) -> None:
    """Die in step 4, in every process; then take the steps from there."""
    from eadpr.training import loop

    take_step, steps = loop.take_step, []

    def noted(state, task, lesson) -> None:
        steps.append(state.step + 1)
        if len(steps) == 4:
            raise Killed
        take_step(state, task, lesson)

    loop.take_step = noted
    os.environ["EADPR_CHECKPOINT_SECONDS"] = "0"
    try:
        train(toy, out, "eadpr")
    except Killed:
        train(toy, out, "eadpr")
    loop.take_step = take_step
    if steps != [1, 2, 3, 4, 4, 5, 6]:
        raise AssertionError(steps)


def main() -> None:
    toy, out = map(Path, sys.argv[1:])
    settle(MACHINE)
    from eadpr.training import processes

    with processes.group():
        for case in CASES:
            train(toy, out / case, case)
        for name in ("dropout", "dropout again"):
            train(toy, out / name, "eadpr", dropout=0.3)
        die_and_go_on(toy, out / "again")


if __name__ == "__main__":
    main()
