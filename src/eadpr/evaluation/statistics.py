"""How sure a number is: paired bootstrap intervals over questions, Wilson intervals of shares."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

BLOCK = 2**21  # numbers drawn at a time; limits memory to some tens of megabytes and is no part of the result


class Interval(NamedTuple):
    """An estimate with the bounds of its confidence interval; `n` counts the questions behind it."""

    estimate: float
    low: float
    high: float
    n: int


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    resamples: int,
    seed: int,
    confidence: float = 0.95,
) -> Interval:
    """Percentile interval of mean(first) - mean(second) over the same questions (Efron and Tibshirani 1993, ch. 13).

    `first` and `second`, shape (Q,), hold the same questions in the same order. A question with several pairs gives
    their sums, and their number in `counts` (1 by default): the estimate is sum of differences / sum of counts, and
    questions, not pairs, are drawn. Each resample draws Q questions with replacement. The same seed draws the same
    questions, so that exchanging the arms changes signs only.
    """
    differences, weights = _paired(first, second, counts)
    n, several = len(differences), bool((weights != 1).any())
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    step = max(1, BLOCK // n)
    for start in range(0, resamples, step):
        drawn = rng.integers(n, size=(min(step, resamples - start), n))
        total = weights[drawn].sum(axis=1) if several else n
        means[start : start + step] = differences[drawn].sum(axis=1) / total
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(differences.sum() / weights.sum()), float(low), float(high), n)


def _paired(first: ArrayLike, second: ArrayLike, counts: ArrayLike | None) -> tuple[NDArray, NDArray]:
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(
            f"paired values must be two lists of one length, found shapes {first.shape} and {second.shape}"
        )
    if not len(first):
        raise ValueError("there is no question that both sides have a value for")
    weights = np.ones(len(first)) if counts is None else np.asarray(counts, dtype=np.float64)
    if weights.shape != first.shape or not (weights > 0).all():
        raise ValueError(f"counts must be positive, one per question; found shape {weights.shape}, {weights.min()}")
    return first - second, weights


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Score interval of a share (Wilson 1927); with n = 0 nothing is known: [0, 1], the estimate is 0."""
    if not 0 <= successes <= n:
        raise ValueError(f"successes must be between 0 and n, found {successes} of {n}")
    if n == 0:
        return Interval(0.0, 0.0, 1.0, 0)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, spread = successes / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * (share * (1 - share) / n + spread / (4 * n)) ** 0.5
    # The interval holds the share and lies within [0, 1] but for rounding.
    return Interval(share, min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half)), n)
