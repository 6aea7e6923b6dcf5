"""Metrics of multi-hop retrieval (MDR: Xiong et al., 2021) on arrays of Q questions x K paths, best first, x H hops.

An entry says which of the question's supporting passages stands there, counted from 0, or -1 for another passage or
where there is no path; `needed_Q` counts the supporting passages. One value per question, as in `metrics`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]
Values = NDArray[np.float64]


def passage_recall(places_QKH: Places, needed_Q: NDArray[np.integer], paths: int) -> Values:
    """PR: 1 where any supporting passage is in the first paths."""
    return (places_QKH[:, :paths] >= 0).any(axis=(1, 2)).astype(np.float64)


def all_found(places_QKH: Places, needed_Q: NDArray[np.integer], paths: int) -> Values:
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
