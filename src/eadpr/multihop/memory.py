"""Training with MDR's memory bank (Xiong et al., 2021): passages of earlier batches as more negatives of every query.

The encoder of passages begins as that of queries and has no gradient: at each step it keeps the share `momentum` of
itself and takes the rest from the other (He et al., 2020); with 1 it stays as it was (MDR). So the vectors in the bank
are of nearly one encoder, and no gradient has to reach them.
Q: the 2n queries of a batch, `[hop 1 of n | hop 2 of n]`. K: places of the bank. D: dimensions. N and P as in losses.
"""

from __future__ import annotations

import torch
from torch import Tensor

from eadpr import machine as machines
from eadpr import parallel
from eadpr.multihop.config import MemoryBank
from eadpr.multihop.hop_batches import HopBatch
from eadpr.progress import progress
from eadpr.training import loop, processes
from eadpr.training.checkpoint import Checkpoints
from eadpr.training.encoder import TextEncoder
from eadpr.training.forward import Encoded, Vectors
from eadpr.training.loop import Task
from eadpr.training.losses import Masks, Terms
from eadpr.training.state import TrainingState

EMPTY = -1  # in place of a passage's row


class Memory:
    """The last `size` passages: `vectors_KD` float32 and `rows_K` (rows of passages.parquet, EMPTY at first)."""

    def __init__(self, size: int, dim: int, device: str) -> None:
        self.vectors_KD = torch.zeros(size, dim, device=device)
        self.rows_K = torch.full((size,), EMPTY, device=device)
        self._next = 0

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

    def as_dict(self) -> dict:
        return {"vectors": self.vectors_KD, "rows": self.rows_K, "next": self._next}

    def restore(self, saved: dict) -> None:
        self.vectors_KD.copy_(saved["vectors"])
        self.rows_K.copy_(saved["rows"])
        self._next = saved["next"]


def with_memory(vectors: Vectors, masks: Masks, memory: Memory, positives_Q: Tensor) -> tuple[Vectors, Masks]:
    """The bank's passages as K columns between the hard negatives and the distractors."""
    count = masks.negatives_QN.shape[1]
    places_K = torch.arange(len(memory.rows_K), device=vectors.columns_P.device) + len(vectors.passages_ND)
    columns_P = torch.cat([vectors.columns_P[:count], places_K, vectors.columns_P[count:]])
    passages_ND = torch.cat([vectors.passages_ND, memory.vectors_KD])
    negatives_QN = torch.cat([masks.negatives_QN, memory.negatives(positives_Q)], dim=1)
    return Vectors(vectors.questions_QD, passages_ND, columns_P), masks._replace(negatives_QN=negatives_QN)


def run(state: TrainingState, task: Task, checkpoints: Checkpoints, bank: MemoryBank) -> None:
    """`loop.run` with a memory bank, which is part of the checkpoints. The batches of a step see the bank as the steps
    before left it. Raises RuntimeError where a loss or gradient is not finite, ValueError for several processes."""
    if processes.count() > 1:
        raise ValueError("two_hop.memory trains in one process; unset EADPR_PROCESSES, or start it without torchrun")
    memory = Memory(bank.size, state.encoders.passage.dim, machines.device())
    if (saved := checkpoints.load()) is not None:
        state.restore(saved)
        memory.restore(saved["memory"])
    if not task.steps:
        loop.validate(state, task)
    train, many = task.train, task.train.accumulation
    numbers = range(state.step * many, task.steps * many)
    made = parallel.ahead(
        lambda n: task.batcher.sampled_rows(n, size=train.batch_size, seed=train.seed), numbers, threads=1
    )
    with progress("train", task.steps, "steps", done=state.step) as advance:
        while state.step < task.steps:
            take_step(state, task, memory, [next(made) for _ in range(many)], momentum=bank.momentum)
            if state.step == task.steps or (train.validate_every and state.step % train.validate_every == 0):
                loop.validate(state, task)
            if checkpoints.due():
                checkpoints.save(state.as_dict() | {"memory": memory.as_dict()})
            advance(1)


def take_step(state: TrainingState, task: Task, memory: Memory, batches: list[HopBatch], *, momentum: float) -> None:
    question, passage = state.encoders
    torch.manual_seed(loop.step_seed(task.train.seed, state.step))
    loop.set_rate(state.optimizer, task.train, state.step, total=task.steps)
    question.train()
    passage.eval()
    found = [backward(state, task, memory, batch, share=1 / len(batches)) for batch in batches]
    values = dict(zip(Terms._fields, torch.stack([terms for terms, _ in found]).mean(0).tolist(), strict=True))
    values["gradient"] = torch.nn.utils.clip_grad_norm_(question.parameters(), task.train.max_grad_norm).item()
    loop.check_finite(values, state.step + 1)
    state.optimizer.step()
    state.optimizer.zero_grad()
    follow(passage, question, momentum)
    for batch, (_, vectors) in zip(batches, found, strict=True):
        memory.push(vectors, batch.rows.to(vectors.device))
    state.step += 1
    loop.note(state, task, values, [batch.batch for batch in batches])


def backward(
    state: TrainingState, task: Task, memory: Memory, batch: HopBatch, *, share: float
) -> tuple[Tensor, Tensor]:
    """Add the gradient of `share` times the batch's loss; returns its terms, in the order of `Terms`, and the vectors
    of `batch.rows`."""
    device = machines.device()
    encoded = Encoded(state.encoders, batch.batch, task.machine, task.train.gradient_cache)
    columns = with_memory(encoded.vectors, batch.batch.masks.to(device), memory, batch.positives_Q.to(device))
    terms = loop.objective(*columns, task.loss)
    encoded.backward(terms.total * share)
    return torch.stack(terms).detach(), encoded.vectors.passages_ND[: len(batch.rows)]


@torch.no_grad()
def follow(slow: TextEncoder, fast: TextEncoder, momentum: float) -> None:
    for kept, learnt in zip(slow.parameters(), fast.parameters(), strict=True):
        kept.lerp_(learnt, 1 - momentum)
