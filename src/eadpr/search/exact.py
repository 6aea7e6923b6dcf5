"""Exact inner-product search over vectors that do not fit in memory.

Every score is the float32 nearest to the inner product of a float16 passage vector and a float32 question vector, and
passages of equal score are ordered by row, so a ranking depends on the vectors only: not on block sizes, threads or a
machine's matrix kernels. This takes two steps: `search` reads the corpus in blocks, whose best passages FAISS finds, or
torch on a GPU, and keeps some candidates more, since the last bits of a matrix product do depend on all that (even two
copies can differ); `rescore` computes their scores in float64. A passage is missed only if more than `SPARE` others
score within float32 rounding of the last place; which of so many ties are listed may depend on blocks and devices.

Shapes: Q questions, P passages of a block, D dimensions, K kept per question.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch

from eadpr.runtime import parallel
from eadpr.search.vectors import Vectors

SPARE = 28  # candidates kept beyond the depth
RUNNING = 1 << 28  # bytes of the best so far and of the best of a block
BLOCK_PASSAGES = {"cpu": 16_384, "cuda": 131_072}
BLOCK_QUESTIONS = 8_192  # per matrix product of a GPU
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

    `advance` gets the number of rows scanned. Each of N devices scans every N-th block; the first rescores the best.

    Memory of a device beyond the mapped shard in use: the questions (Q·D·4), a block of passages (P·D·6 bytes) and its
    scores, on a CPU FAISS' 16 MB of them and on a GPU P·BLOCK_QUESTIONS·4; of the host 24·Q·K bytes for the best of all
    and of a block, with K = depth + SPARE, which `split_questions` bounds. None of it grows with the corpus.
    """
    import faiss

    questions = np.ascontiguousarray(questions, dtype=np.float32)
    kind, size, count = torch.device(devices[0]).type, depth + SPARE, len(devices)

    def scan(number: int) -> faiss.ResultHeap:
        blocks = islice(vectors.blocks(BLOCK_PASSAGES[kind]), number, None, count)
        nearest = _by_faiss(questions) if kind == "cpu" else _by_torch(questions, devices[number])
        best = faiss.ResultHeap(len(questions), size, keep_max=True)
        for first, block in parallel.ahead(partial(_copy, kind), blocks, threads=READERS[kind]):
            scores, rows = nearest(block, min(size, len(block)))
            rows += first
            best.add_result(scores, rows)
            advance(len(block))
        return best

    best, *heaps = parallel.ahead(scan, range(count), threads=count if count > 1 else 0)
    for heap in heaps:
        best.add_result(heap.D, heap.I)
    return rescore(vectors, questions, best.I, depth, device=devices[0])


def split_questions(questions: np.ndarray, depth: int) -> list[np.ndarray]:
    """Split questions (Q, D) for `search`, so that its running results fit into RUNNING bytes."""
    size = max(1, RUNNING // (24 * (depth + SPARE)))
    return np.split(questions, range(size, len(questions), size))


def _by_faiss(questions: np.ndarray) -> Callable[[torch.Tensor, int], Sequence[np.ndarray]]:
    """Return the function from a block of float16 passages (P, D) and K to scores and rows (Q, K) of the K best."""
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    return lambda block, size: faiss.knn(questions, block.numpy().astype(np.float32), size, faiss.METRIC_INNER_PRODUCT)


def _by_torch(questions: np.ndarray, device: str) -> Callable[[torch.Tensor, int], Sequence[np.ndarray]]:
    parts = torch.from_numpy(questions).to(device).split(BLOCK_QUESTIONS)

    @torch.inference_mode()
    def nearest(block: torch.Tensor, size: int) -> Sequence[np.ndarray]:
        passages_DP = block.to(device, non_blocking=True).float().T
        best = [torch.mm(part_QD, passages_DP).topk(size, dim=1) for part_QD in parts]
        return [torch.cat(part).cpu().numpy() for part in zip(*best, strict=True)]

    return nearest


def _copy(kind: str, numbered: tuple[int, np.ndarray]) -> tuple[int, torch.Tensor]:
    """Return a block's first row and a float16 copy of it, in pinned memory for a GPU, which reads that faster."""
    first, block = numbered
    copy = torch.empty(block.shape, dtype=torch.float16, pin_memory=kind == "cuda")
    np.copyto(copy.numpy(), block)
    return first, copy


def rescore(vectors: Vectors, questions: np.ndarray, rows: np.ndarray, depth: int, *, device: str = "cpu") -> Hits:
    """Return the best `depth` of candidate rows (Q, K) with final scores.

    A question has each row at most once, and -1 for a missing candidate.
    """
    kind, components = torch.device(device).type, max(1, rows.shape[1] * vectors.dim)
    step, substep = max(1, RESCORED[kind] // components), max(1, MULTIPLIED[kind] // components)
    shape = len(rows), min(depth, rows.shape[1])
    hits = Hits(np.empty(shape, rows.dtype), np.empty(shape, np.float32))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        passages_QKD = torch.from_numpy(vectors.take(np.maximum(part, 0).ravel())).view(*part.shape, -1).to(device)
        questions_QD = torch.from_numpy(questions[start : start + step]).to(device)
        products = [
            torch.bmm(some_QKD.double(), some_QD.double().unsqueeze(2)).squeeze(2).float()
            for some_QKD, some_QD in zip(passages_QKD.split(substep), questions_QD.split(substep), strict=True)
        ]
        scores = np.where(part >= 0, torch.cat(products).cpu().numpy(), -np.inf)
        order = np.lexsort((part, -scores), axis=-1)[:, :depth]
        for output, values in zip(hits, (part, scores), strict=True):
            output[start : start + step] = np.take_along_axis(values, order, 1)
    return hits
