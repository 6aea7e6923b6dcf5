"""Exact inner-product search over vectors that do not fit in memory.

Every score is the float32 nearest to the inner product of a float16 passage vector and a float32 question vector, and
passages of equal score are ordered by row, so that a ranking depends on the vectors only: not on block sizes, threads
or the matrix kernels of a machine. This takes two steps: `search` scans the corpus in blocks of float32 matrix products
and keeps a few candidates more than needed, since the last bits of these products do depend on all that (even two
copies of a passage can differ); `rescore` computes the candidates' scores in float64. A passage is missed only if more
than `SPARE` others score within float32 rounding of the last place.

Shapes: Q questions, P passages of a block, D dimensions, K kept per question.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch

from eadpr.runtime import parallel
from eadpr.search.vectors import Vectors

SPARE = 28  # candidates kept beyond the depth
BLOCK_PASSAGES = {"cpu": 4_096, "cuda": 32_768}  # per matrix product; the best of those tried on 2 cores
BLOCK_QUESTIONS = {"cpu": 1_024, "cuda": 8_192}
READERS = {"cpu": 0, "cuda": 4}  # threads that read blocks ahead, each a block; a CPU's have enough to do
# Vector components gathered at a time, each time from all shards; 10 bytes each.
RESCORED = {"cpu": 1 << 23, "cuda": 1 << 28}
MULTIPLIED = {"cpu": 1 << 19, "cuda": 1 << 28}  # components multiplied at a time, as many as stay in a CPU's cache


class Hits(NamedTuple):
    """The best passages, (Q, depth), best first; row -1 and score -inf fill the end if the corpus is smaller."""

    rows: np.ndarray
    scores: np.ndarray


def search(
    vectors: Vectors,
    questions: np.ndarray,
    depth: int,
    *,
    devices: Sequence[str] = ("cpu",),
    advance: Callable[[int], None] = lambda done: None,
) -> Hits:
    """Return the `depth` passages of the highest inner product for float32 questions (Q, D).

    `advance` gets the number of rows scanned. Each of N devices scans every N-th block; the first one rescores the best
    of all.

    Memory of a device beyond the mapped shard in use: a block of passages (P·D·6 bytes), a block of scores
    ((P + K)·BLOCK_QUESTIONS·4 with K = depth + SPARE), the questions (Q·D·4) and 12·Q·K bytes of running results; for
    50,000 questions of 768 dimensions at depth 100 about 0.3 GB, whatever the size of the corpus.
    """
    questions_QD = torch.from_numpy(np.ascontiguousarray(questions, dtype=np.float32))
    kind, size, count = torch.device(devices[0]).type, depth + SPARE, len(devices)

    def scan(number: int) -> tuple[torch.Tensor, torch.Tensor]:
        blocks = islice(vectors.blocks(BLOCK_PASSAGES[kind]), number, None, count)
        parts = questions_QD.to(devices[number]).split(BLOCK_QUESTIONS[kind])
        return _scan(blocks, BLOCK_PASSAGES[kind], parts, size, advance)

    scans = parallel.ahead(scan, range(count), threads=count if count > 1 else 0)
    rows, scores = (torch.cat(part, 1) for part in zip(*scans, strict=True))
    if count > 1:
        rows, order = rows.sort(1)
        rows = rows.gather(1, _best(scores.gather(1, order), size))
    return rescore(vectors, questions, rows.numpy(), depth, device=devices[0])


@torch.inference_mode()
def _scan(
    blocks: Iterator[tuple[int, np.ndarray]],
    most: int,
    parts: Sequence[torch.Tensor],
    size: int,
    advance: Callable[[int], None],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows and scores, (Q, size) each, of the blocks' best passages for the questions of all `parts`.

    No block holds more than `most` passages.
    """
    device, dim = parts[0].device, parts[0].shape[1]
    best_rows = [torch.full((len(part), size), -1, device=device) for part in parts]
    best_scores = [torch.full((len(part), size), -torch.inf, device=device) for part in parts]
    # New matrices for every block would cost as much in page faults as the selection does. Of the scores, the best so
    # far stand in front.
    passages_PD = torch.empty(most, dim, device=device)
    scores_QP = torch.empty(0, device=device)
    for first, block in _copied(blocks, device.type):
        passages_PD[: len(block)].copy_(block, non_blocking=True)
        passages_DP = passages_PD[: len(block)].T
        for i, part_QD in enumerate(parts):
            shape = (len(part_QD), size + len(block))
            scores_QP = scores_QP if scores_QP.shape == shape else torch.empty(shape, device=device)
            scores_QP[:, :size] = best_scores[i]
            torch.mm(part_QD, passages_DP, out=scores_QP[:, size:])
            columns = _best(scores_QP, size)
            earlier = best_rows[i].gather(1, columns.clamp(max=size - 1))
            best_rows[i] = torch.where(columns < size, earlier, columns - size + first)
            best_scores[i] = scores_QP.gather(1, columns)
        advance(len(block))
    return torch.cat(best_rows).cpu(), torch.cat(best_scores).cpu()


def _copied(blocks: Iterator[tuple[int, np.ndarray]], kind: str) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield the first row and a float16 copy of each block, in pinned memory for a GPU, which reads that faster."""

    def copy_block(numbered: tuple[int, np.ndarray]) -> tuple[int, torch.Tensor]:
        first, block = numbered
        copy = torch.empty(block.shape, dtype=torch.float16, pin_memory=kind == "cuda")
        np.copyto(copy.numpy(), block)
        return first, copy

    return parallel.ahead(copy_block, blocks, threads=READERS[kind])


def rescore(vectors: Vectors, questions: np.ndarray, rows: np.ndarray, depth: int, *, device: str = "cpu") -> Hits:
    """Return the best `depth` of candidate rows (Q, K) with final scores.

    A question has each row at most once, and -1 for a missing candidate.
    """
    scores, kind = np.empty(rows.shape, np.float32), torch.device(device).type
    components = max(1, rows.shape[1] * vectors.dim)
    step, substep = max(1, RESCORED[kind] // components), max(1, MULTIPLIED[kind] // components)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        passages_QKD = torch.from_numpy(vectors.take(np.maximum(part, 0).ravel())).view(*part.shape, -1).to(device)
        questions_QD = torch.from_numpy(questions[start : start + step]).to(device)
        products = [
            torch.bmm(some_QKD.double(), some_QD.double().unsqueeze(2)).squeeze(2).float()
            for some_QKD, some_QD in zip(passages_QKD.split(substep), questions_QD.split(substep), strict=True)
        ]
        scores[start : start + step] = np.where(part >= 0, torch.cat(products).cpu().numpy(), -np.inf)
    order = np.lexsort((rows, -scores), axis=-1)[:, :depth]
    return Hits(np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1))


def _best(scores: torch.Tensor, size: int) -> torch.Tensor:
    """Return columns (n, size), ascending, of each line's highest scores, the earliest of those that tie for the last
    place. A line is longer than `size`."""
    best = scores.topk(size + 1, dim=1)
    columns = best.indices[:, :size].sort(1).values
    (tied,) = (best.values[:, size - 1] == best.values[:, size]).nonzero(as_tuple=True)
    if len(tied):
        columns[tied] = _earliest_best(scores[tied], best.values[tied, size - 1 : size], size)
    return columns


def _earliest_best(scores: torch.Tensor, last: torch.Tensor, size: int) -> torch.Tensor:
    """Return the same as `_best` for lines in which several scores equal `last` (n, 1), the score of the last place."""
    above, tied = scores > last, scores == last
    selected = above | (tied & (tied.cumsum(1) <= size - above.sum(1, keepdim=True)))
    return selected.nonzero(as_tuple=True)[1].view(-1, size)
