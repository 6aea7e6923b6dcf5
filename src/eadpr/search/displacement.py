"""How far added passages push the passages of a ranking down, without ranking anything anew.

An added passage stands before a ranked one if its score is higher; of equal scores the ranked one is first, as added
passages come after the corpus. Scores are those of `exact.rescore`: float32 of the inner product, in float64, of a
float16 passage vector and a float32 question vector.

Shapes: Q questions, K ranks, A added passages, D dimensions, N counts of added passages per question.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from eadpr.search.vectors import Vectors

BLOCK_QUESTIONS, BLOCK_ADDED = 1_024, 4_096  # scored at a time

Joins = Callable[[int, NDArray[np.int64]], NDArray[np.bool_]]
Stands = Callable[[int, NDArray[np.int64], NDArray[np.float32]], None]  # told a question, rows of added, their scores


def everywhere(question: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.ones(len(rows), dtype=np.bool_)


def displacements(
    scores_QK: NDArray[np.float32],
    questions_QD: NDArray[np.float32],
    added: Vectors,
    numbers_A: NDArray[np.integer],
    counts: Sequence[int],
    *,
    joins: Joins = everywhere,
    stands: Stands = lambda question, rows, scores: None,
    advance: Callable[[int], None] = lambda done: None,
) -> NDArray[np.int32]:
    """(N, Q, K): how many added passages stand before each ranked one when those of a number below counts[i] join.

    `scores_QK` falls along K; -inf where a ranking is shorter. `counts` rise. `joins(question, rows)` says which rows
    of `added` join that question's ranking at all; it is asked only of rows above its last place. `stands` is told
    those that do, in their order, with their scores.
    """
    levels_A = np.searchsorted(np.asarray(counts), numbers_A, side="right")  # the first count that takes the row in
    before = np.zeros((len(counts), *scores_QK.shape), np.int32)  # passages that enter right before a place, by level
    for start in range(0, len(questions_QD), BLOCK_QUESTIONS):
        part = slice(start, start + BLOCK_QUESTIONS)
        asked_DQ = torch.from_numpy(questions_QD[part]).double().T
        for first, block in added.blocks(BLOCK_ADDED):
            scores_QA = (torch.from_numpy(block.astype(np.float64)) @ asked_DQ).T.float().numpy()
            usable_A = levels_A[first : first + len(block)] < len(counts)
            high_QA = (scores_QA > scores_QK[part, -1:]) & usable_A
            for row in np.flatnonzero(high_QA.any(axis=1)):
                question, columns = start + int(row), np.flatnonzero(high_QA[row])
                columns = columns[joins(question, columns + first)]
                stands(question, columns + first, scores_QA[row, columns])
                places = np.searchsorted(-scores_QK[question], -scores_QA[row, columns], side="right")
                np.add.at(before, (levels_A[columns + first], question, places), 1)
        advance(min(BLOCK_QUESTIONS, len(questions_QD) - start))
    return before.cumsum(axis=0, dtype=np.int32).cumsum(axis=2, dtype=np.int32)


def displaced(values_QK: NDArray, shift_QK: NDArray[np.integer]) -> NDArray:
    """The values at their new ranks; those pushed beyond the last rank are lost, the places of added ones are 0."""
    depth = values_QK.shape[1]
    question, rank = np.nonzero(values_QK)
    place = rank + shift_QK[question, rank]
    kept = place < depth
    result = np.zeros_like(values_QK)
    result[question[kept], place[kept]] = values_QK[question[kept], rank[kept]]
    return result
