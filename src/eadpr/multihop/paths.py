"""Beam search over paths of two passages (MDR: Xiong et al., 2021); a path's score is the sum of two inner products.

Shapes: Q questions, W passages kept at hop 1, E kept behind each of these at hop 2, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from eadpr.search import exact
from eadpr.search.exact import Hits
from eadpr.search.vectors import Vectors


class Paths(NamedTuple):
    """Of one question, best first: rows (n, 2), float32 `hop_scores` (n, 2) and their sums `scores` (n,)."""

    rows: np.ndarray
    hop_scores: np.ndarray
    scores: np.ndarray


def find_paths(
    stored: Vectors,
    questions_QD: np.ndarray,
    second: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    width: int,
    count: int,
    ids: Callable[[np.ndarray], Sequence[str]],
    blank: Callable[[np.ndarray], np.ndarray],
    device: str = "cpu",
    advance: Callable[[int], None] = lambda done: None,
) -> Iterator[Paths]:
    """The `count` best paths of each question, fewer where the beam holds fewer; ties in the order of passage ids.

    `second` maps questions (n,) and rows (n,) of their hop-1 passages to vectors (n, D) of hop 2's queries; `blank`
    says which rows have no text: as hop 1 they score -inf (MDR). A path has two different passages (ours). `advance` is
    told rows scanned, of two scans in all. With a width of all passages this is exhaustive search.
    """
    width = min(width, stored.rows)
    first = exact.search(stored, questions_QD, width, device=device, advance=advance)
    asked, rows = np.repeat(np.arange(len(questions_QD)), width), first.rows.ravel()
    # One more than kept, since the best one is often the passage of hop 1 itself.
    depth = min(width, stored.rows - 1) + 1
    found = exact.search(stored, second(asked, rows), depth, device=device, advance=advance)
    others = _without(found, rows)
    first_QW = np.where(blank(rows).reshape(first.rows.shape), np.float32(-np.inf), first.scores)
    seconds = (column.reshape(*first.rows.shape, depth - 1) for column in others)
    for columns in zip(first.rows, first_QW, *seconds, strict=True):
        yield _best(*columns, count=count, ids=ids)


def _without(found: Hits, rows: np.ndarray) -> Hits:
    """Hits (n, E + 1) less each line's own row, or less the last where that is not among them."""
    own = found.rows == rows[:, None]
    own[:, -1] |= ~own.any(1)
    return Hits(*(column[~own].reshape(len(rows), -1) for column in found))


def _best(
    first_W: np.ndarray,
    first_scores_W: np.ndarray,
    second_WE: np.ndarray,
    second_scores_WE: np.ndarray,
    *,
    count: int,
    ids: Callable[[np.ndarray], Sequence[str]],
) -> Paths:
    total = (first_scores_W[:, None] + second_scores_WE).ravel()
    places = np.arange(len(total))
    if count < len(total):
        places = np.flatnonzero(total >= np.partition(total, -count)[-count])
    hops = np.unravel_index(places, second_WE.shape)
    rows = np.stack([first_W[hops[0]], second_WE[hops]], axis=1)
    names = zip(*(ids(column) for column in rows.T), strict=True)
    order = [i for _, _, i in sorted(zip((-total[places]).tolist(), names, range(len(places)), strict=True))][:count]
    hop_scores = np.stack([first_scores_W[hops[0]], second_scores_WE[hops]], axis=1)
    return Paths(rows[order], hop_scores[order], total[places][order])
