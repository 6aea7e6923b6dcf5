"""Intervals: values by hand, symmetries, and memory limits that do not show in results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.evaluation import statistics
from eadpr.evaluation.statistics import holm, paired_bootstrap, paired_randomisation, wilson

VALUES = st.lists(st.tuples(st.floats(0, 1, width=32), st.floats(0, 1, width=32)), min_size=1, max_size=30)


def bootstrap(first, second, *, counts=None, resamples=500, seed=0, confidence=0.95):
    return paired_bootstrap(first, second, counts=counts, resamples=resamples, seed=seed, confidence=confidence)


def test_the_estimate_is_the_mean_difference():
    found = bootstrap([1, 0, 1, 1], [0, 0, 1, 0])
    assert found.estimate == 0.5
    assert found.n == 4


def test_the_bounds_of_a_large_sample_are_those_of_the_normal_distribution():
    """Differences of standard deviation 1 over 400 questions: 1.96 / 20 = 0.098 on either side."""
    rng = np.random.default_rng(3)
    differences = rng.normal(size=400)
    differences = (differences - differences.mean()) / differences.std()
    found = bootstrap(differences, np.zeros(400), resamples=20_000)
    assert found.low == pytest.approx(-0.098, abs=0.003)
    assert found.high == pytest.approx(0.098, abs=0.003)


@given(VALUES, st.integers(0, 5))
def test_exchanging_the_arms_flips_the_signs(values, seed):
    first, second = zip(*values, strict=True)
    one = bootstrap(first, second, seed=seed, resamples=100)
    other = bootstrap(second, first, seed=seed, resamples=100)
    assert (one.estimate, one.low, one.high) == pytest.approx((-other.estimate, -other.high, -other.low), abs=1e-12)


def test_the_seed_and_the_confidence_decide_the_interval():
    first, second = np.random.default_rng(0).random((2, 80))
    narrow, wide = (bootstrap(first, second, confidence=confidence) for confidence in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high
    assert bootstrap(first, second, seed=1) == bootstrap(first, second, seed=1)
    assert bootstrap(first, second, seed=1) != bootstrap(first, second, seed=2)


@pytest.mark.parametrize("block", [statistics.BLOCK, 100])
def test_resamples_are_drawn_as_a_naive_loop_draws_them_whatever_the_block(monkeypatch, block):
    """44 questions, every other one with two pairs, so that a block of 100 numbers holds two resamples."""
    monkeypatch.setattr(statistics, "BLOCK", block)
    first, second = np.random.default_rng(0).random((2, 44))
    counts = np.tile([1, 2], 22)
    drawn = np.random.default_rng(7).integers(44, size=(25, 44))
    means = [(first - second)[rows].sum() / counts[rows].sum() for rows in drawn]
    found = bootstrap(first, second, counts=counts, resamples=25, seed=7)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=1e-12)
    signs = np.random.default_rng(7).integers(2, size=(25, 44), dtype=np.int8) * 2.0 - 1
    as_far = sum(abs(row @ (first - second)) >= abs((first - second).sum()) for row in signs)
    assert paired_randomisation(first, second, resamples=25, seed=7) == (as_far + 1) / 26


def test_twice_the_pairs_of_every_question_change_nothing():
    first, second = np.random.default_rng(0).random((2, 33))
    assert bootstrap(2 * first, 2 * second, counts=[2] * 33) == bootstrap(first, second)


def test_questions_with_several_pairs_weigh_by_their_pairs():
    """Three pairs of one question (2 against 0 right), one of another (0 against 1): (2 - 1) / 4."""
    found = bootstrap([2, 0], [0, 1], counts=[3, 1])
    assert found.estimate == 0.25
    assert (found.low, found.high) == (-1, pytest.approx(2 / 3))


@pytest.mark.parametrize(
    ("first", "second", "counts", "message"),
    [
        ([1, 2], [1], None, "one length"),
        ([], [], None, "no question"),
        ([1, 2], [1, 2], [1, 0], "counts must be positive"),
        ([1, 2], [1, 2], [1], "counts must be positive"),
    ],
)
def test_unpaired_values_are_refused(first, second, counts, message):
    with pytest.raises(ValueError, match=message):
        bootstrap(first, second, counts=counts)


@pytest.mark.parametrize(
    ("successes", "n", "expected"),
    [
        (8, 10, (0.8, 0.49016, 0.94330)),  # z = 1.96: centre (0.8 + 0.19207) / 1.38415 = 0.71673, half width 0.22657
        (0, 20, (0, 0, 0.1611)),
        (20, 20, (1, 1 - 0.1611, 1)),
        (0, 0, (0, 0, 1)),
    ],
)
def test_wilson_by_hand(successes, n, expected):
    found = wilson(successes, n)
    assert found[:3] == pytest.approx(expected, abs=1e-4)
    assert found.n == n


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_symmetric_and_holds_the_share(case):
    successes, n = case
    found, mirrored = wilson(successes, n), wilson(n - successes, n)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert (found.low, found.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low))


@pytest.mark.parametrize(("successes", "n"), [(-1, 5), (6, 5)])
def test_wilson_refuses_impossible_counts(successes, n):
    with pytest.raises(ValueError, match="between 0 and n"):
        wilson(successes, n)


def test_randomisation_counts_every_sign_of_a_small_sample():
    """Three questions better by 1 each: of the eight sign patterns two are as far from 0."""
    assert paired_randomisation([1, 1, 1], [0, 0, 0], resamples=20_000, seed=0) == pytest.approx(0.25, abs=0.01)
    assert paired_randomisation([1, 0, 1], [1, 0, 1], resamples=100, seed=0) == 1


def test_the_signs_that_were_found_are_one_of_those_counted():
    """All of 40 alike: no other signs drawn are as far from 0."""
    assert paired_randomisation([1] * 40, [0] * 40, resamples=99, seed=0) == 0.01


def test_sums_that_are_equal_but_for_their_order_are_as_far():
    """Of 16 patterns two; added up one by one, 0.7 + 0.1 + 0.2 + 0.3 is less than 1.3."""
    found = paired_randomisation([0.7, 0.1, 0.2, 0.3], [0, 0, 0, 0], resamples=20_000, seed=0)
    assert found == pytest.approx(0.125, abs=0.01)


@given(VALUES)
def test_randomisation_does_not_care_which_arm_is_first(values):
    first, second = zip(*values, strict=True)
    one = paired_randomisation(first, second, resamples=200, seed=1)
    assert one == paired_randomisation(second, first, resamples=200, seed=1)
    assert 1 / 201 <= one <= 1


def test_holm_by_hand():
    """0.01 of four, then 0.02 of three, 0.03 of two (no less than the one before), 0.5 of one."""
    assert holm([0.02, 0.5, 0.01, 0.03]) == pytest.approx([0.06, 0.5, 0.04, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_lies_between_the_p_values_and_bonferroni(p_values):
    for p, adjusted in zip(p_values, holm(p_values), strict=True):
        assert p <= adjusted <= min(1.0, len(p_values) * p)
