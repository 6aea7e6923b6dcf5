"""Training with MDR's memory bank (Xiong et al., 2021): passages of earlier batches as more negatives of every query.

The encoder of passages begins as that of queries and has no gradient: at each step it keeps the share `momentum` of
itself and takes the rest from the other (He et al., 2020); with 1 it stays as it was (MDR). So the vectors in the bank
are of nearly one encoder, and no gradient has to reach them.
Q: the 2n queries of a batch, `[hop 1 of n | hop 2 of n]`. K: places of the bank. D: dimensions. N and P as in losses.
"""

from functools import partial

import torch
from torch import Tensor

from eadpr.runtime import machine as machines
from eadpr.training import contrastive, processes
from eadpr.training.batches import Batch
from eadpr.training.contrastive import ContrastiveSettings
from eadpr.training.encoder import TextEncoder
from eadpr.training.forward import BatchVectors, Encoders
from eadpr.training.loop import Task
from eadpr.training.losses import Masks
from eadpr.training.state import TrainingState
from eadpr.two_hops.config import MemoryBank

EMPTY = -1  # in place of a passage's row


class Memory(torch.nn.Module):
    """The last `size` passages: `vectors_KD` float32 and `rows_K` (rows of passages.parquet, EMPTY at first)."""

    def __init__(self, size: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("vectors_KD", torch.zeros(size, dim))
        self.register_buffer("rows_K", torch.full((size,), EMPTY))
        self.register_buffer("_next", torch.tensor(0))

    def push(self, vectors: Tensor, rows: Tensor) -> None:
        """(n, D) and (n,), which take the places of the oldest; of more than there are places the last."""
        size = len(self.rows_K)
        vectors, rows = vectors[-size:], rows[-size:]
        places = (torch.arange(len(rows), device=rows.device) + self._next) % size
        self.vectors_KD[places], self.rows_K[places] = vectors.detach(), rows
        self._next = (self._next + len(rows)) % size

    def negatives(self, positives_Q: Tensor) -> Tensor:
        """(Q, K) bool, given the rows of the queries' positives: what is a negative of a query. Its own positive is
        none, and to hop 1 that of hop 2 is none, as in a batch."""
        first, second = (self.rows_K == positives_Q[:, None]).chunk(2)
        return (self.rows_K != EMPTY) & ~torch.cat([first | second, second])


def with_memory(vectors: BatchVectors, masks: Masks, memory: Memory, positives_Q: Tensor) -> tuple[BatchVectors, Masks]:
    """The bank's passages as K columns between the hard negatives and the distractors."""
    count = masks.negatives_QN.shape[1]
    places_K = torch.arange(len(memory.rows_K), device=vectors.columns_P.device) + len(vectors.passages_ND)
    columns_P = torch.cat([vectors.columns_P[:count], places_K, vectors.columns_P[count:]])
    passages_ND = torch.cat([vectors.passages_ND, memory.vectors_KD])
    negatives_QN = torch.cat([masks.negatives_QN, memory.negatives(positives_Q)], dim=1)
    return BatchVectors(vectors.questions_QD, passages_ND, columns_P), masks._replace(negatives_QN=negatives_QN)


def rows_of(batch: Batch) -> tuple[Tensor, Tensor]:
    """Rows of passages.parquet: of the first of the batch's passages, which are its positives and hard negatives, and
    (Q,) of the queries' positives."""
    count = int(batch.columns_P[: batch.masks.negatives_QN.shape[1]].max()) + 1
    return batch.sources_N[:count], batch.sources_N[batch.columns_P[: len(batch.questions)]]


def with_bank(
    encoders: Encoders, task: Task, settings: ContrastiveSettings, bank: MemoryBank
) -> tuple[TrainingState, Task]:
    """State and task of a training with a memory bank. The batches of a step see the bank as the steps before left it.
    Raises ValueError for several processes."""
    if processes.count() > 1:
        raise ValueError("two_hop.memory trains in one process; set train.processes to 1, or start it without torchrun")
    memory = Memory(bank.size, encoders.passage.dim).to(machines.device())
    seen: list[tuple[Tensor, Tensor]] = []  # what the step's batches bring

    def columns(vectors: BatchVectors, batch: Batch) -> tuple[BatchVectors, Masks]:
        rows, positives_Q = (found.to(memory.rows_K.device) for found in rows_of(batch))
        seen.append((vectors.passages_ND[: len(rows)], rows))
        return with_memory(*contrastive.batch_alone(vectors, batch), memory, positives_Q)

    def updated() -> None:
        follow(encoders.passage, encoders.question, bank.momentum)
        for passages in seen:
            memory.push(*passages)
        seen.clear()

    backward = partial(contrastive.backward, settings=settings, columns=columns)
    return TrainingState(encoders, settings.train, memory), task._replace(backward=backward, updated=updated)


@torch.no_grad()
def follow(slow: TextEncoder, fast: TextEncoder, momentum: float) -> None:
    for kept, learnt in zip(slow.parameters(), fast.parameters(), strict=True):
        kept.lerp_(learnt, 1 - momentum)
