"""How sure a number is: paired bootstrap intervals over questions and trainings, randomisation tests, Holm's method."""

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

ROUNDING = 1e-9  # relative; sums that are equal but for their order
BLOCK = 2**17  # numbers drawn at a time, few enough for a core's cache; no part of the result


class Interval(NamedTuple):
    """An estimate with the bounds of its confidence interval; `n` counts the questions behind it."""

    estimate: float
    low: float
    high: float
    n: int


class Intervals(NamedTuple):
    """Intervals of a mean over trainings: `questions` holds for these trainings and other questions, `both` for other
    trainings too (None for a single training). `each` are the intervals over questions of every training."""

    questions: Interval
    both: Interval | None
    each: list[Interval]


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    resamples: int,
    seed: int,
    confidence: float,
) -> Intervals:
    """Percentile intervals of mean(first) - mean(second) over the same questions, and over trainings that pair.

    `first` and `second`, shape (T, Q) or, of a single training, (Q,), hold the same questions in the same order, and
    training t of one pairs with training t of the other, or with its only one. A question with several pairs gives
    their sums, and their number, the same in every training, in `counts`, shape (Q,) (1 by default): the estimate is
    sum of differences / sum of counts, and questions, not pairs, are drawn. Each resample draws Q questions with
    replacement (Efron and Tibshirani 1993, ch. 13), for `both` also T trainings; a value's weight is the product of
    how often its training and its question were drawn: the pigeonhole bootstrap (Owen 2007), which `widen` widens. The
    same seed draws the same questions for any T, so that exchanging the arms changes signs only.
    """
    differences, counts = _paired(first, second, counts)
    trainings, n = differences.shape
    means = _means_of_resamples(differences, counts, resamples, seed)
    tail = (1 - confidence) / 2

    def interval(of_resamples: NDArray, estimate: float) -> Interval:
        low, high = np.quantile(of_resamples, [tail, 1 - tail])
        return Interval(float(estimate), float(low), float(high), n)

    estimates = differences.sum(axis=1) / counts.sum()
    by_training = [interval(means[:, t], estimates[t]) for t in range(trainings)]
    if trainings == 1:
        return Intervals(by_training[0], None, by_training)
    rng = np.random.default_rng([seed, trainings])
    weights = _count_draws(rng.integers(trainings, size=(resamples, trainings)), trainings) / trainings
    estimate = estimates.mean()
    pigeonhole = interval((weights * means).sum(axis=1), estimate)
    questions = interval(means.mean(axis=1), estimate)
    both = widen(pigeonhole, differences - estimate * counts, confidence)
    both = both._replace(low=min(both.low, questions.low), high=max(both.high, questions.high))
    return Intervals(questions, both, by_training)


def bound_equals(interval: Interval, confidence: float, lowest: float) -> Interval:
    """Return an interval with Wilson's (1927) bounds where all questions have the same share, of which resamples are
    certain: 0.7 and 1 where 9 of 9 are right. No share is below `lowest`."""
    if interval.high - interval.low > ROUNDING:
        return interval
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    beyond = z**2 / (interval.n + z**2)
    low, high = interval.estimate - beyond, interval.estimate + beyond
    return interval._replace(low=max(lowest, low), high=min(1.0, high))


def _means_of_resamples(differences: NDArray, counts: NDArray, resamples: int, seed: int) -> NDArray:
    """Return shape (resamples, T): the mean of each training over the same drawn questions."""
    n = len(counts)
    columns = np.vstack([differences, counts]).T
    rng = np.random.default_rng(seed)
    sums = np.empty((resamples, columns.shape[1]))
    step = max(1, BLOCK // n)
    for start in range(0, resamples, step):
        questions = rng.integers(n, size=(min(step, resamples - start), n))
        sums[start : start + step] = _count_draws(questions, n) @ columns
    return sums[:, :-1] / sums[:, -1:]


def _count_draws(draws: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    """Return shape (B, n): how often each row of `draws` holds each number below n. Changes `draws`."""
    draws += n * np.arange(len(draws))[:, None]
    return np.bincount(draws.ravel(), minlength=len(draws) * n).reshape(-1, n).astype(np.float64)


def widen(interval: Interval, residuals: NDArray, confidence: float) -> Interval:
    """Widen the interval of a pigeonhole bootstrap to the width that T trainings support.

    `residuals`, shape (T, Q), T > 1, are values minus their expectation by the estimate. The bootstrap has the variance
    A (T - 1) / T + B + I (T - 1) / T, where A and B are the variances of the mean by its trainings and by its
    questions, and I is that by their interaction (Owen 2007). The mean has A + B - I (two-way analysis of variance):
    Student's t with T - 1 degrees of freedom gives the error of A, the normal distribution the error of B - I. Their
    sum is on the safe side, and never less than the variance of the questions alone.
    """
    trainings, n = residuals.shape
    of_trainings, of_questions = residuals.mean(axis=1), residuals.mean(axis=0)
    rest = residuals - of_trainings[:, None] - of_questions
    by_trainings = (of_trainings**2).sum() / (trainings * (trainings - 1))
    by_questions = (of_questions**2).sum() / n**2
    by_rest = (rest**2).sum() / (trainings * (trainings - 1) * n**2)
    of_bootstrap = (by_trainings + by_rest) * (trainings - 1) / trainings + by_questions
    if not of_bootstrap:
        return interval._replace(low=interval.estimate, high=interval.estimate)
    beyond = (1 + confidence) / 2
    wider = float(stdtrit(trainings - 1, beyond)) / NormalDist().inv_cdf(beyond)
    variance = max(by_questions, wider**2 * by_trainings + max(0.0, by_questions - by_rest))
    factor = float(variance / of_bootstrap) ** 0.5
    low, high = (interval.estimate + factor * (bound - interval.estimate) for bound in (interval.low, interval.high))
    return interval._replace(low=low, high=high)


def paired_randomisation(
    first: ArrayLike, second: ArrayLike, *, counts: ArrayLike | None = None, resamples: int, seed: int
) -> float:
    """Return the two-sided p-value of no difference between two arms on the same questions (Fisher 1935).

    If the arms are exchangeable, each question's difference could as well have the opposite sign; p is the share of
    random signs with a sum at least as far from 0 as the observed one, which counts too (Smucker et al. 2007).
    """
    differences = _paired(first, second, counts)[0].mean(axis=0)
    n, observed = len(differences), abs(differences.sum())
    rng = np.random.default_rng(seed)
    step, as_far = max(1, BLOCK // n), 0
    for start in range(0, resamples, step):
        signs = rng.integers(2, size=(min(step, resamples - start), n), dtype=np.int8) * 2.0 - 1
        as_far += int((abs(signs @ differences) >= observed * (1 - ROUNDING)).sum())
    return (as_far + 1) / (resamples + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values in the same order (Holm 1979): below a level, they keep the family-wise error to it."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def _paired(first: ArrayLike, second: ArrayLike, counts: ArrayLike | None) -> tuple[NDArray, NDArray]:
    """Return differences, shape (T, Q), and counts, shape (Q,)."""
    first, second = (np.atleast_2d(np.asarray(side, dtype=np.float64)) for side in (first, second))
    n = first.shape[1]
    weights = np.ones(n) if counts is None else np.asarray(counts, dtype=np.float64)
    assert second.shape[1] == n > 0, (first.shape, second.shape)
    assert weights.shape == (n,), (weights.shape, n)
    assert (weights > 0).all(), "a question without values"
    return first - second, weights
