"""What one forward pass gets: questions, the distinct passages of all columns, and the masks of the losses.

A batch is a pure function of the seed and its number, so that a resumed training sees what an undisturbed one does.
Every epoch is a new permutation of the questions, an up-sampled one standing in it several times; what is left after
the last whole batch is left out of that epoch.
Q and P as in losses: questions, and columns `[positives B | hard negatives B*H | distractors B of level 0 | ...]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr.text import AnswerMatcher
from eadpr.training.encoder import TextEncoder
from eadpr.training.example_set import QUESTION, ExampleSet, PassageInputs, shuffled
from eadpr.training.losses import Masks


class Batch(NamedTuple):
    """`columns_P` (int64) says which of `passages` each column is; a missing column points to the question's positive.

    `sources_N`: rows of passages.parquet that `passages` are or, distractors, were made of; distractors come last.
    `masked`: entries left out as false negatives; `without_distractor`: questions; `truncated`: distractors whose input
    is that of what they are compared with, since what was removed lies beyond the cut.
    """

    questions: list[Sequence[int]]
    passages: list[Sequence[int]]
    sources_N: Tensor
    columns_P: Tensor
    masks: Masks
    masked: int
    without_distractor: int
    truncated: int


class Batcher:
    """Assembles batches of one set of examples. `hard_negatives` is H of the layout; with `shuffle_seed` the words of
    the questions are shuffled."""

    def __init__(
        self,
        examples: ExampleSet,
        inputs: PassageInputs,
        question_encoder: TextEncoder,
        *,
        hard_negatives: int,
        mask_false_negatives: bool,
        shuffle_seed: int | None = None,
    ) -> None:
        self.examples = examples
        self.inputs = inputs
        questions = examples.questions
        if shuffle_seed is not None:
            questions = [shuffled(text, shuffle_seed, QUESTION, i) for i, text in enumerate(questions)]
        self._questions = [np.array(ids, np.int32) for ids in question_encoder.question_ids(questions)]
        self._hard = hard_negatives
        self._mask = mask_false_negatives
        self._matcher = AnswerMatcher()
        self._own: dict[str, list[int]] = {}  # every positive of a question, one per example
        for question_id, row in zip(examples.question_ids, examples.positives.tolist(), strict=True):
            self._own.setdefault(question_id, []).append(row)

    def __len__(self) -> int:
        """How many questions there are."""
        return len(self.examples.questions)

    def asked(self, chosen: Sequence[int]) -> list[int]:
        """The examples that the rows of `first` are."""
        return list(chosen)

    def truncated_pairs(self) -> int:
        """Examples of the whole set whose distractor's input is that of the positive."""
        pairs = [
            (int(self.examples.positives[i]), self.inputs.distractor_key(i, level))
            for i, texts in enumerate(self.examples.distractors)
            for level in range(len(texts))[-1:]
        ]
        return sum(np.array_equal(*self.inputs.ids(pair)) for pair in pairs)

    def sampled(self, number: int, *, size: int, seed: int) -> Batch:
        """Batch `number` (from 0) of an endless training; negatives are drawn anew whenever a question is asked."""
        epoch, chosen = batch_indices(number, times=self.examples.times, size=size, seed=seed)
        negatives = [
            draw(self.examples.negatives[i], self._hard, seed=seed, epoch=epoch, example=i, copy=copy)
            for i, copy in chosen
        ]
        return self.batch([i for i, _ in chosen], negatives)

    def first(self, chosen: Sequence[int]) -> Batch:
        """The examples with these positions, each with its first negatives."""
        return self.batch(chosen, [self.examples.negatives[i][: self._hard] for i in chosen])

    def batch(self, chosen: Sequence[int], negatives: Sequence[Sequence[int]]) -> Batch:
        positives = [int(self.examples.positives[i]) for i in chosen]
        hard = [int(row) for own in negatives for row in own]
        own_hard = np.array([h < len(own) for own in negatives for h in range(self._hard)], dtype=bool)
        levels = range(self.inputs.levels)
        has_LQ = np.array([[level < len(self.examples.distractors[i]) for i in chosen] for level in levels])
        pseudo_LQ = [
            [self.inputs.distractor_key(i, level) if has_LQ[level, q] else positives[q] for q, i in enumerate(chosen)]
            for level in levels
        ]

        hard_keys = np.repeat(positives, self._hard)
        hard_keys[own_hard] = hard
        keys_P = [*positives, *hard_keys.tolist(), *(key for level in pseudo_LQ for key in level)]
        distinct = list(dict.fromkeys(keys_P))
        sources_N = self.inputs.sources(distinct)
        place = {key: i for i, key in enumerate(distinct)}
        columns_P = np.array([place[key] for key in keys_P])
        ids = self.inputs.ids(distinct)
        contrast_LQ = has_LQ & [
            [not np.array_equal(ids[place[a]], ids[place[d]]) for a, d in zip(above, level, strict=True)]
            for above, level in pairwise([positives, *pseudo_LQ])
        ]
        present_P = np.concatenate([np.ones(len(chosen), bool), own_hard, has_LQ.ravel()])
        false_QP = np.zeros((len(chosen), len(keys_P)), dtype=bool)
        if self._mask:
            held_QP = self._held(chosen, distinct)[:, columns_P]
            own_QP = np.stack([np.isin(sources_N[columns_P], self._own[self.examples.question_ids[i]]) for i in chosen])
            false_QP = false_negatives(own_QP, held_QP, present_P, hard=self._hard)
        return Batch(
            questions=[self._questions[i] for i in chosen],
            passages=ids,
            sources_N=torch.from_numpy(sources_N),
            columns_P=torch.from_numpy(columns_P),
            masks=masks_of(false_QP, present_P, contrast_LQ),
            masked=int(false_QP.sum()),
            without_distractor=int((~has_LQ[0]).sum()),
            truncated=int((has_LQ & ~contrast_LQ).sum()),
        )

    def _held(self, chosen: Sequence[int], distinct: Sequence[int]) -> np.ndarray:
        """(Q, distinct passages): whether the passage's text holds an answer to the question."""
        texts = self.inputs.texts(distinct)
        answers = [(self.examples.answers[i], self.examples.kinds[i]) for i in chosen]
        return np.stack([self._matcher.matches(own, texts, kind) for own, kind in answers])


def batch_indices(number: int, *, times: np.ndarray, size: int, seed: int) -> tuple[int, list[tuple[int, int]]]:
    """Epoch of a batch, the positions of its examples and which of their copies, from 0, these are.

    Copies lie a whole part of the epoch apart, so that no question meets itself in a batch unless the set is small.
    """
    size = min(size, len(times))
    epoch, place = divmod(number, int(times.sum()) // size)
    order = np.random.default_rng([seed, epoch]).permutation(len(times))
    examples = np.repeat(order, times[order])
    copies = np.arange(len(examples)) - np.repeat(np.cumsum(times[order]) - times[order], times[order])
    ranks = np.repeat(np.arange(len(order)), times[order])
    # Copy c of t, of the question at rank r of n, belongs at (c + r / n) / t of the epoch; with t = 1 that is its rank.
    chosen = np.argsort((copies + ranks / len(order)) / times[examples], kind="stable")[place * size :][:size]
    return epoch, list(zip(examples[chosen].tolist(), copies[chosen].tolist(), strict=True))


def draw(negatives: np.ndarray, count: int, *, seed: int, epoch: int, example: int, copy: int = 0) -> np.ndarray:
    """`count` of a question's negatives without repeats, all of them where there are no more."""
    if len(negatives) <= count:
        return negatives
    return np.random.default_rng([seed, epoch, example, copy]).choice(negatives, count, replace=False)


def owners(count: int, hard: int, levels: int = 1) -> np.ndarray:
    """The question that each column belongs to."""
    own = np.arange(count)
    return np.concatenate([own, np.repeat(own, hard), np.tile(own, levels)])


def false_negatives(own_QP: np.ndarray, held_QP: np.ndarray, present_P: np.ndarray, *, hard: int) -> np.ndarray:
    """(Q, P): columns of other examples that hold an answer to the question or stem from a positive passage of it.

    A distractor stems from the positive it was made of. The example's own columns are never among them.
    """
    count = len(held_QP)
    levels = held_QP.shape[1] // count - 1 - hard
    others_QP = owners(count, hard, levels) != np.arange(count)[:, None]
    return others_QP & present_P & (held_QP | own_QP)


def masks_of(false_QP: np.ndarray, present_P: np.ndarray, contrast_LQ: np.ndarray) -> Masks:
    """The masks of the losses; `contrast_LQ` as there."""
    levels, count = contrast_LQ.shape
    allowed_QP = present_P & ~false_QP
    negatives_QN = allowed_QP[:, : -levels * count].copy()
    negatives_QN[np.arange(count), np.arange(count)] = False
    distractors_LQQ = allowed_QP[:, -levels * count :].reshape(count, levels, count).transpose(1, 0, 2)
    return Masks(*(torch.from_numpy(m.copy()) for m in (negatives_QN, distractors_LQQ, contrast_LQ)))
