"""How sure a number is: paired bootstrap intervals over questions, and over trainings and questions, randomisation
tests, Holm's correction for many of them."""

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
    """Of a mean over trainings: `questions` says what holds for these trainings and other questions, `both` what holds
    for other trainings too, and is None of a single one. `each` is that over questions of every training."""

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
    training t of one beside training t of the other, or beside its only one. A question with several pairs gives their
    sums, and their number, the same in every training, in `counts`, shape (Q,) (1 by default): the estimate is sum of
    differences / sum of counts, and questions, not pairs, are drawn. Each resample draws Q questions with replacement
    (Efron and Tibshirani 1993, ch. 13), for `both` also T trainings, and the product of how often a value's training
    and its question were drawn weighs it: the pigeonhole bootstrap (Owen 2007), which is `widened`. The same seed draws
    the same questions for any T, so that exchanging the arms changes signs only.
    """
    differences, counts = _paired(first, second, counts)
    trainings, n = differences.shape
    means = _means_of_resamples(differences, counts, resamples, seed)
    tail = (1 - confidence) / 2

    def interval(of_resamples: NDArray, estimate: float) -> Interval:
        low, high = np.quantile(of_resamples, [tail, 1 - tail])
        return Interval(float(estimate), float(low), float(high), n)

    estimates = differences.sum(axis=1) / counts.sum()
    each = [interval(means[:, t], estimates[t]) for t in range(trainings)]
    if trainings == 1:
        return Intervals(each[0], None, each)
    rng = np.random.default_rng([seed, trainings])
    weights = _times_drawn(rng.integers(trainings, size=(resamples, trainings)), trainings) / trainings
    estimate = estimates.mean()
    drawn = interval((weights * means).sum(axis=1), estimate)
    questions = interval(means.mean(axis=1), estimate)
    both = widened(drawn, differences - estimate * counts, confidence)
    both = both._replace(low=min(both.low, questions.low), high=max(both.high, questions.high))
    return Intervals(questions, both, each)


def _means_of_resamples(differences: NDArray, counts: NDArray, resamples: int, seed: int) -> NDArray:
    """Shape (resamples, T): the mean of each training over the same drawn questions."""
    n = len(counts)
    columns = np.vstack([differences, counts]).T
    rng = np.random.default_rng(seed)
    sums = np.empty((resamples, columns.shape[1]))
    step = max(1, BLOCK // n)
    for start in range(0, resamples, step):
        drawn = rng.integers(n, size=(min(step, resamples - start), n))
        sums[start : start + step] = _times_drawn(drawn, n) @ columns
    return sums[:, :-1] / sums[:, -1:]


def _times_drawn(drawn: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    """Shape (B, n): how often each row of `drawn`, numbers below n, has each; `drawn` is used up."""
    drawn += n * np.arange(len(drawn))[:, None]
    return np.bincount(drawn.ravel(), minlength=len(drawn) * n).reshape(-1, n).astype(np.float64)


def widened(drawn: Interval, residuals: NDArray, confidence: float) -> Interval:
    """The interval of a pigeonhole bootstrap with its distances to the estimate made what T trainings can bear out.

    `residuals`, shape (T, Q), T > 1, are a value less what the estimate gives it. What the bootstrap draws has the
    variance A (T - 1) / T + B + I (T - 1) / T, where A and B are the variances of the mean that its trainings and its
    questions show, and I that of what remains of a value without both. So it misses a T-th of A, which is much of few
    trainings, and I, which A and B hold too, it counts three times (Owen 2007). The mean has A + B - I (the two-way
    analysis of variance). Of A, Student's t with T - 1 degrees of freedom says how far it may be off; of B - I, what
    questions add, the normal distribution does. The two parts add up as independent errors do, which is on the safe
    side; the sum is never less than the variance of the questions alone.
    """
    trainings, n = residuals.shape
    of_trainings, of_questions = residuals.mean(axis=1), residuals.mean(axis=0)
    rest = residuals - of_trainings[:, None] - of_questions
    by_trainings = (of_trainings**2).sum() / (trainings * (trainings - 1))
    by_questions = (of_questions**2).sum() / n**2
    by_rest = (rest**2).sum() / (trainings * (trainings - 1) * n**2)
    of_drawn = (by_trainings + by_rest) * (trainings - 1) / trainings + by_questions
    if not of_drawn:
        return drawn._replace(low=drawn.estimate, high=drawn.estimate)
    beyond = (1 + confidence) / 2
    wider = float(stdtrit(trainings - 1, beyond)) / NormalDist().inv_cdf(beyond)
    variance = max(by_questions, wider**2 * by_trainings + max(0.0, by_questions - by_rest))
    factor = float(variance / of_drawn) ** 0.5
    low, high = (drawn.estimate + factor * (bound - drawn.estimate) for bound in (drawn.low, drawn.high))
    return drawn._replace(low=low, high=high)


def paired_randomisation(
    first: ArrayLike, second: ArrayLike, *, counts: ArrayLike | None = None, resamples: int, seed: int
) -> float:
    """Two-sided p-value of no difference between two arms on the same questions (Fisher 1935; Smucker et al. 2007).

    Where the arms are exchangeable, each question's difference could as well have the other sign; p is the share of
    random signs whose sum is at least as far from 0 as the one found, which is itself one of them. Arguments as for
    `paired_bootstrap`.
    """
    differences = _paired(first, second, counts)[0].mean(axis=0)
    n, found = len(differences), abs(differences.sum())
    rng = np.random.default_rng(seed)
    step, as_far = max(1, BLOCK // n), 0
    for start in range(0, resamples, step):
        signs = rng.integers(2, size=(min(step, resamples - start), n), dtype=np.int8) * 2.0 - 1
        as_far += int((abs(signs @ differences) >= found * (1 - ROUNDING)).sum())
    return (as_far + 1) / (resamples + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in the order given (Holm 1979): below a level, they hold the family-wise error rate to it."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def _paired(first: ArrayLike, second: ArrayLike, counts: ArrayLike | None) -> tuple[NDArray, NDArray]:
    """Differences, shape (T, Q), and counts, shape (Q,)."""
    first, second = (np.atleast_2d(np.asarray(side, dtype=np.float64)) for side in (first, second))
    several = {len(first), len(second)} - {1}
    if first.ndim > 2 or second.ndim > 2 or first.shape[1] != second.shape[1] or len(several) > 1:
        raise ValueError(
            "paired values must have one length, and as many trainings on both sides or a single one, found shapes"
            f" {first.shape} and {second.shape}"
        )
    n = first.shape[1]
    if not n:
        raise ValueError("there is no question that both sides have a value for")
    weights = np.ones(n) if counts is None else np.asarray(counts, dtype=np.float64)
    if weights.shape != (n,) or not (weights > 0).all():
        raise ValueError(f"counts must be positive, one per question; found shape {weights.shape}, {weights.min()}")
    return first - second, weights
