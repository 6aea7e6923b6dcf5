"""Golden values of methods.md 6, and how many steps a training takes."""

import pytest

from eadpr.training.optimiser import multiplier, warmup_steps
from tests.training_toy import TRAIN


@pytest.mark.parametrize(("step", "expected"), [
    (0, 0), (1, 0.0008084), (1236, 0.9991916), (1237, 1), (1238, 0.9999417), (9000, 0.5476898), (18399, 5.83e-05),
    (18400, 1e-7), (20000, 1e-7),
])  # fmt: skip
def test_golden(step, expected):
    assert multiplier(step, warmup=1237, total=18400) == pytest.approx(expected, abs=5e-8)


@pytest.mark.parametrize(("changes", "questions", "expected"), [
    ({"steps": None, "epochs": 40, "batch_size": 128}, 58_880, 18_400),
    ({"steps": None, "epochs": 3, "batch_size": 8}, 20, 6),  # two whole batches an epoch
    ({"steps": None, "epochs": 3, "batch_size": 8}, 5, 3),  # one batch of all
    ({"steps": 7}, 20, 7),
    ({"steps": 100, "step_factor": 1.35}, 20, 135),
    ({"steps": 0, "step_factor": 1.35}, 20, 0),
    ({"steps": 1, "step_factor": 0.5}, 20, 1),
])  # fmt: skip
def test_total_steps(changes, questions, expected):
    assert TRAIN.model_copy(update=changes).total_steps(questions, questions) == expected


def test_a_set_smaller_than_the_batch_that_is_asked_several_times_has_several_batches():
    """batches.batch_indices makes 40 // 10 of 10 questions that are asked 4 times."""
    train = TRAIN.model_copy(update={"steps": None, "epochs": 40, "batch_size": 32})
    assert train.total_steps(10, 40) == 160
    assert train.total_steps(0, 0) == 40


def test_warmup_is_a_tenth_and_never_above_dprs():
    assert [warmup_steps(TRAIN, total) for total in (5, 1_000, 18_400)] == [0, 100, 1237]
    assert warmup_steps(TRAIN.model_copy(update={"warmup_steps": 5}), 1_000) == 5
    assert multiplier(0, warmup=0, total=10) == 1
