"""How sure a number is: paired bootstrap intervals and randomisation tests over questions, Holm's correction for many
of them, Wilson intervals of shares."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eadpr.evaluation.outcomes import PerQuestion, shared

ROUNDING = 1e-9  # relative; sums that are equal but for their order
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


def paired_randomisation(
    first: ArrayLike, second: ArrayLike, *, counts: ArrayLike | None = None, resamples: int, seed: int
) -> float:
    """Two-sided p-value of no difference between two arms on the same questions (Fisher 1935; Smucker et al. 2007).

    Where the arms are exchangeable, each question's difference could as well have the other sign; p is the share of
    random signs whose sum is at least as far from 0 as the one found, which is itself one of them. Arguments as for
    `paired_bootstrap`.
    """
    differences, _ = _paired(first, second, counts)
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


class Difference(NamedTuple):
    interval: Interval
    p: float  # of the randomisation test


def compare(
    first: PerQuestion, second: PerQuestion, *, resamples: int, seed: int, confidence: float
) -> Difference | None:
    """`first` minus `second` over the questions with as many values on both sides; None where there are none.

    The numbers of values differ only for AA, where arms that truncate differently keep other pairs.
    """
    i, j = shared(first, second)
    if not len(i):
        return None
    values = {"first": first.sums[i], "second": second.sums[j], "counts": first.counts[i]}
    return Difference(
        paired_bootstrap(**values, resamples=resamples, seed=seed, confidence=confidence),
        paired_randomisation(**values, resamples=resamples, seed=seed),
    )
