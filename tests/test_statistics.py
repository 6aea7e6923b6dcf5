"""Intervals: values by hand, symmetries, coverage, and memory limits that do not show in results."""

import numpy as np
import pytest
from scipy.stats import t as student

from eadpr.evaluation import statistics
from eadpr.evaluation.statistics import holm, paired_bootstrap, paired_randomisation


def intervals(first, second, *, counts=None, resamples=500, seed=0, confidence=0.95):
    return paired_bootstrap(first, second, counts=counts, resamples=resamples, seed=seed, confidence=confidence)


def bootstrap(first, second, **options):
    """The interval of single trainings."""
    result = intervals(first, second, **options)
    assert (result.both, result.each) == (None, [result.questions])
    return result.questions


@pytest.mark.parametrize("block", [statistics.BLOCK, 100])
def test_resamples_are_drawn_as_a_naive_loop_draws_them_whatever_the_block(monkeypatch, block):
    """44 questions, every other one with two pairs, so that a block of 100 numbers holds two resamples."""
    monkeypatch.setattr(statistics, "BLOCK", block)
    first, second = np.random.default_rng(0).random((2, 44))
    counts = np.tile([1, 2], 22)
    resamples = np.random.default_rng(7).integers(44, size=(25, 44))
    means = [(first - second)[rows].sum() / counts[rows].sum() for rows in resamples]
    estimate = (first - second).sum() / counts.sum()
    for confidence, bounds in ((0.95, [0.025, 0.975]), (0.8, [0.1, 0.9])):
        interval = bootstrap(first, second, counts=counts, resamples=25, seed=7, confidence=confidence)
        assert interval[:3] == pytest.approx((estimate, *np.quantile(means, bounds)), abs=1e-12)
    signs = np.random.default_rng(7).integers(2, size=(25, 44), dtype=np.int8) * 2.0 - 1
    as_far = sum(abs(row @ (first - second)) >= abs((first - second).sum()) for row in signs)
    assert paired_randomisation(first, second, resamples=25, seed=7) == (as_far + 1) / 26


SEVERAL = np.random.default_rng(0).random((2, 3, 44))  # two arms, three trainings


@pytest.mark.parametrize("block", [statistics.BLOCK, 100])
def test_trainings_and_questions_are_drawn_as_a_naive_loop_draws_them(monkeypatch, block):
    """The pigeonhole bootstrap with the same draws, then widened by what naive sums of squares ask for."""
    monkeypatch.setattr(statistics, "BLOCK", block)
    (first, second), counts = SEVERAL, np.tile([1, 2], 22)
    questions = np.random.default_rng(7).integers(44, size=(25, 44))
    trainings = np.random.default_rng([7, 3]).integers(3, size=(25, 3))
    estimates = []
    for rows, columns in zip(trainings, questions, strict=True):
        total = sum(first[t, q] - second[t, q] for t in rows for q in columns)
        estimates.append(total / sum(counts[q] for _ in rows for q in columns))
    estimate = (first - second).sum() / (3 * counts.sum())
    rest = first - second - estimate * counts
    a = sum(rest[t].mean() ** 2 for t in range(3)) / (3 * 2)
    b = sum(rest[:, q].mean() ** 2 for q in range(44)) / 44**2
    both = sum((rest[t, q] - rest[t].mean() - rest[:, q].mean()) ** 2 for t in range(3) for q in range(44))
    i = both / (3 * 2 * 44**2)
    variance = b + max(0, a - i)
    seeds = max(a - i, 1e-6 * variance)
    wider = student.ppf(0.95, 2 * (variance / seeds) ** 2) / 1.644854 * (variance / (a * 2 / 3 + b + i * 2 / 3)) ** 0.5
    expected = [estimate + wider * (bound - estimate) for bound in np.quantile(estimates, [0.05, 0.95])]
    result = intervals(first, second, counts=counts, resamples=25, seed=7, confidence=0.9)
    assert result.both.estimate == pytest.approx(estimate)
    means = [(first - second).mean(axis=0)[rows].sum() / counts[rows].sum() for rows in questions]
    over_questions = np.quantile(means, [0.05, 0.95])
    wide = min(expected[0], over_questions[0]), max(expected[1], over_questions[1])
    assert (result.both.low, result.both.high) == pytest.approx(wide, abs=1e-6)
    assert (result.questions.low, result.questions.high) == pytest.approx(tuple(over_questions))
    alone = [
        bootstrap(*pair, counts=counts, resamples=25, seed=7, confidence=0.9)
        for pair in zip(first, second, strict=True)
    ]
    np.testing.assert_allclose(result.each, alone)


def test_questions_that_do_not_differ_leave_the_trainings():
    """Means 1, 2 and 3, of variance 1: of 27 draws one has the best three times, so that 1 and 3 are the bounds drawn.
    They are put 2.69 times as far: sqrt(3/2) for the third of the variance that three miss, 4.303 / 1.960 for t."""
    result = intervals(np.repeat([[1.0], [2.0], [3.0]], 30, axis=1), np.zeros(30), resamples=5000)
    assert (result.questions.low, result.questions.high) == pytest.approx((2, 2))
    assert (result.both.low, result.both.high) == pytest.approx((2 - 2.689, 2 + 2.689), abs=1e-3)


@pytest.mark.parametrize(("trainings", "of_questions", "of_seeds"), [
    (2, 1.0, 0.0), (2, 0.5, 0.2), (3, 0.5, 1.0), (3, 1.0, 0.2), (5, 0.5, 0.0), (5, 1.0, 1.0),
])  # fmt: skip
def test_a_known_difference_is_within_about_95_of_100_intervals_or_more(trainings, of_questions, of_seeds):
    """Over 200 questions with values that vary by 1, all or a quarter alike in trainings; 0.92 is three errors off."""
    rng = np.random.default_rng(5)
    covered, over_questions, widths = 0, 0, []
    for seed in range(400):
        values = 0.3 + of_questions * rng.normal(size=200) + of_seeds * rng.normal(size=(trainings, 1))
        values = values + (1 - of_questions**2) ** 0.5 * rng.normal(size=(trainings, 200))
        questions, both, _ = intervals(values, np.zeros(200), resamples=300, seed=seed)
        covered += both.low <= 0.3 <= both.high
        over_questions += questions.low <= 0.3 <= questions.high
        widths.append((both.high - both.low) / (questions.high - questions.low))
    assert covered / 400 >= 0.92
    if of_seeds:
        assert over_questions / 400 < 0.85
    elif trainings == 5:
        assert 1 <= np.mean(widths) < 1.2
    if of_questions == 1 and not of_seeds:
        assert np.mean(widths) == pytest.approx(1)


def test_sums_that_are_equal_but_for_their_order_are_as_far():
    """Two of 16 patterns are; added up one by one, 0.7 + 0.1 + 0.2 + 0.3 is less than 1.3."""
    p_value = paired_randomisation([0.7, 0.1, 0.2, 0.3], [0, 0, 0, 0], resamples=20_000, seed=0)
    assert p_value == pytest.approx(0.125, abs=0.01)


def test_holm_by_hand():
    """0.01 of four, then 0.02 of three, 0.03 of two (no less than the one before), 0.5 of one."""
    assert holm([0.02, 0.5, 0.01, 0.03]) == pytest.approx([0.06, 0.5, 0.04, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
