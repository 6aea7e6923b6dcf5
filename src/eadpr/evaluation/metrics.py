"""Retrieval metrics on arrays of hits: Q questions x K ranks, rank 1 first, False where a ranking is shorter than K.

Those of paths (MDR: Xiong et al., 2021) take Q questions x K paths, best first, x H hops: an entry says which of the
question's supporting passages stands there, counted from 0, or -1 for another passage or where there is no path;
`needed_Q` counts the supporting passages.

Every function gives one value per question, so that all means, breakdowns and paired tests come from the same numbers.
A question without a ranking is a row of False, hence wrong. What counts as a hit is decided by the caller.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Hits = NDArray[np.bool_]
Places = NDArray[np.int64]
Values = NDArray[np.float64]


def top_k_accuracy(hits_QK: Hits, k: int) -> Values:
    """(Q,): 1 where any of the first k passages is a hit, else 0 (DPR's top-k accuracy)."""
    return hits_QK[:, :k].any(axis=1).astype(np.float64)


def ndcg(hits_QK: Hits, relevant_Q: NDArray[np.integer], depth: int) -> Values:
    """(Q,): discounted gain, sum of 1 / log2(rank + 1) over hits, divided by that of the best ranking possible.

    `relevant_Q` counts each question's relevant passages, found or not, and is at least 1.
    """
    _check_counts(hits_QK, relevant_Q)
    discounts = 1.0 / np.log2(np.arange(2, depth + 2))
    gain = hits_QK[:, :depth] @ discounts[: min(depth, hits_QK.shape[1])]
    best = np.cumsum(discounts)[np.minimum(relevant_Q, depth) - 1]
    return gain / best


def recall(hits_QK: Hits, relevant_Q: NDArray[np.integer], k: int) -> Values:
    """(Q,): share of the relevant passages that are among the first k."""
    _check_counts(hits_QK, relevant_Q)
    return hits_QK[:, :k].sum(axis=1) / relevant_Q


def all_found(hits_QK: Hits, relevant_Q: NDArray[np.integer], k: int) -> Values:
    """(Q,): 1 where all relevant passages are among the first k (R@k of multi-hop retrieval), else 0."""
    _check_counts(hits_QK, relevant_Q)
    return (hits_QK[:, :k].sum(axis=1) == relevant_Q).astype(np.float64)


def _check_counts(hits_QK: Hits, relevant_Q: NDArray[np.integer]) -> None:
    assert hits_QK.shape[0] == relevant_Q.shape[0], (hits_QK.shape, relevant_Q.shape)
    assert (relevant_Q >= 1).all(), "undefined for a question without a relevant passage"
    assert (hits_QK.sum(axis=1) <= relevant_Q).all(), "more hits than relevant passages: a passage is ranked twice"


def passage_recall(places_QKH: Places, needed_Q: NDArray[np.integer], paths: int) -> Values:
    """PR: 1 where any supporting passage is in the first paths."""
    return (places_QKH[:, :paths] >= 0).any(axis=(1, 2)).astype(np.float64)


def paths_all_found(places_QKH: Places, needed_Q: NDArray[np.integer], paths: int) -> Values:
    """P-EM: 1 where the first paths hold all supporting passages between them; R@k over the first k/2 paths."""
    return (_found(places_QKH[:, :paths], axes=(1, 2)).sum(1) == needed_Q).astype(np.float64)


def path_recall(places_QKH: Places, needed_Q: NDArray[np.integer], paths: int) -> Values:
    """1 where one of the first paths consists of just the supporting passages, in any order."""
    cut = places_QKH[:, :paths]
    whole_QK = (_found(cut, axes=(2,)).sum(2) == needed_Q[:, None]) & (cut >= 0).all(axis=2)
    return whole_QK.any(axis=1).astype(np.float64)


def first_hop_recall(places_QKH: Places, needed_Q: NDArray[np.integer], paths: int) -> Values:
    """1-recall: 1 where a supporting passage is the first hop of one of the first paths."""
    return (places_QKH[:, :paths, 0] >= 0).any(axis=1).astype(np.float64)


def _found(places: Places, *, axes: tuple[int, ...]) -> NDArray[np.bool_]:
    """Whether each supporting passage occurs along `axes`, which a last axis of the passages takes the place of."""
    numbers = np.arange(places.max(initial=-1) + 1)
    return (places[..., None] == numbers).any(axis=axes)
