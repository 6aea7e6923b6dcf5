"""Exact inner-product search over vectors that do not fit in memory.

Every score is the float32 nearest to the inner product of a float16 passage vector and a float32 question vector, and
passages of equal score are ordered by row, so that a ranking depends on the vectors only: not on block sizes, threads
or the matrix kernels of a machine. Two steps give it: `candidates` scans the corpus in blocks of float32 matrix
products, whose last bits do depend on all that (even two copies of a passage can differ), and keeps a few more than
asked for; `rescore` computes the scores of those few in float64. A passage is missed only where more than `SPARE`
others stand within float32 rounding of the last place.

Shapes: Q questions, P passages of a block, D dimensions, K kept per question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch

from eadpr import parallel
from eadpr.search.reservoir import Reservoir
from eadpr.search.vectors import Vectors

SPARE = 28  # candidates kept beyond the depth asked for
BLOCK_PASSAGES = {"cpu": 4_096, "cuda": 32_768}  # per matrix product; the best of those tried on 2 cores
BLOCK_QUESTIONS = {"cpu": 1_024, "cuda": 8_192}
READERS = {"cpu": 0, "cuda": 4}  # threads that read blocks ahead, each a block; a CPU's have enough to do
# Vector components gathered at a time, each time from all shards; 10 bytes each.
RESCORED = {"cpu": 1 << 23, "cuda": 1 << 28}
MULTIPLIED = {"cpu": 1 << 19, "cuda": 1 << 28}  # of these, as many as stay in a cache in float64


class Hits(NamedTuple):
    """(Q, depth), best first; where the corpus is smaller than the depth, row -1 and score -inf fill the end."""

    rows: np.ndarray
    scores: np.ndarray


def search(
    vectors: Vectors,
    questions: np.ndarray,
    depth: int,
    *,
    device: str = "cpu",
    block_passages: int | None = None,
    block_questions: int | None = None,
    advance: Callable[[int], None] = lambda done: None,
) -> Hits:
    """The `depth` passages of the highest inner product for float32 questions (Q, D); `advance` is told rows scanned.

    Memory beyond the mapped shard in use: a block of passages (P·D·6 bytes), a block of scores (P·block_questions·4),
    the questions (Q·D·4) and 48·Q·K bytes of running results with K = depth + SPARE; for 50,000 questions of 768
    dimensions at depth 100 about 0.5 GB, whatever the size of the corpus. Block sizes change speed only; those left
    out are chosen for the device.
    """
    rows = candidates(
        vectors,
        questions,
        depth + SPARE,
        device=device,
        block_passages=block_passages,
        block_questions=block_questions,
        advance=advance,
    )
    return rescore(vectors, questions, rows, depth, device=device)


@torch.inference_mode()
def candidates(
    vectors: Vectors,
    questions: np.ndarray,
    keep: int,
    *,
    device: str = "cpu",
    block_passages: int | None = None,
    block_questions: int | None = None,
    advance: Callable[[int], None] = lambda done: None,
) -> np.ndarray:
    """Rows (Q, keep) of the best passages by float32 matrix products, in row order; -1 where the corpus is smaller."""
    if questions.ndim != 2 or questions.shape[1] != vectors.dim:
        raise ValueError(
            f"questions have shape {questions.shape}, the vectors of {vectors.folder} have {vectors.dim} dimensions; "
            "question and passage encoder must come from one model"
        )
    asked_QD = torch.from_numpy(np.ascontiguousarray(questions, dtype=np.float32)).to(device)
    parts = asked_QD.split(block_questions or BLOCK_QUESTIONS[device])
    kept = [Reservoir(len(part), keep, device) for part in parts] if len(questions) else []
    # New matrices for every block would cost as much in page faults as the selection does.
    size = block_passages or BLOCK_PASSAGES[device]
    passages_PD = torch.empty(size, vectors.dim, device=device)
    scores_QP = torch.empty(0, device=device)
    for first, block in _blocks(vectors, size, device):
        passages_PD[: len(block)].copy_(block, non_blocking=True)
        passages_DP = passages_PD[: len(block)].T
        for part_QD, reservoir in zip(parts, kept, strict=False):
            shape = (len(part_QD), len(block))
            scores_QP = scores_QP if scores_QP.shape == shape else torch.empty(shape, device=device)
            reservoir.offer(torch.mm(part_QD, passages_DP, out=scores_QP), first)
        advance(len(block))
    if not kept:
        return np.empty((0, keep), np.int64)
    return torch.cat([reservoir.rows() for reservoir in kept]).cpu().numpy()


def _blocks(vectors: Vectors, size: int, device: str) -> Iterator[tuple[int, torch.Tensor]]:
    """First row and float16 (P, D) copy of each block, for a GPU in pinned memory, which it takes several times as
    fast."""

    def copied(found: tuple[int, np.ndarray]) -> tuple[int, torch.Tensor]:
        first, block = found
        copy = torch.empty(block.shape, dtype=torch.float16, pin_memory=device == "cuda")
        np.copyto(copy.numpy(), block)
        return first, copy

    return parallel.ahead(copied, vectors.blocks(size), threads=READERS[device])


def rescore(vectors: Vectors, questions: np.ndarray, rows: np.ndarray, depth: int, *, device: str = "cpu") -> Hits:
    """The best `depth` of candidate rows (Q, K), each at most once per question and -1 for none, with final scores."""
    scores = np.empty(rows.shape, np.float32)
    components = max(1, rows.shape[1] * vectors.dim)
    step, substep = max(1, RESCORED[device] // components), max(1, MULTIPLIED[device] // components)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        passages_QKD = torch.from_numpy(vectors.take(np.maximum(part, 0).ravel())).view(*part.shape, -1).to(device)
        asked_QD = torch.from_numpy(questions[start : start + step]).to(device)
        found = [
            torch.bmm(some_QKD.double(), some_QD.double().unsqueeze(2)).squeeze(2).float()
            for some_QKD, some_QD in zip(passages_QKD.split(substep), asked_QD.split(substep), strict=True)
        ]
        scores[start : start + step] = np.where(part >= 0, torch.cat(found).cpu().numpy(), -np.inf)
    order = np.lexsort((rows, -scores), axis=-1)[:, :depth]
    return Hits(np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1))
