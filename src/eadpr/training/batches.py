"""What one forward pass gets: questions, the distinct passages of all columns, and the masks of the losses.

A batch is a pure function of the seed and its number, so that a resumed training sees what an undisturbed one does.
Every epoch is a new permutation of the questions; what is left after the last whole batch is left out of that epoch.
Q and P as in losses: questions, and columns `[positives B | hard negatives B*H | distractors B]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
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

    `masked`: entries left out as false negatives; `without_distractor` and `truncated`: questions, the latter with a
    distractor whose input is the positive's, since its evidence lies beyond the cut.
    """

    questions: list[Sequence[int]]
    passages: list[Sequence[int]]
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
        self._inputs = inputs
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

    def truncated_pairs(self) -> int:
        """Examples of the whole set whose distractor's input is that of the positive."""
        pairs = [(int(self.examples.positives[i]), self._inputs.distractor_key(i)) for i in self._with_distractor()]
        return sum(np.array_equal(*self._inputs.ids(pair)) for pair in pairs)

    def _with_distractor(self) -> list[int]:
        return [i for i, text in enumerate(self.examples.distractors) if text is not None]

    def sampled(self, number: int, *, size: int, seed: int) -> Batch:
        """Batch `number` (from 0) of an endless training; negatives are drawn anew in every epoch."""
        epoch, chosen = batch_indices(number, count=len(self.examples.questions), size=size, seed=seed)
        negatives = [draw(self.examples.negatives[i], self._hard, seed=seed, epoch=epoch, example=i) for i in chosen]
        return self.batch(chosen, negatives)

    def first(self, chosen: Sequence[int]) -> Batch:
        """The examples with these positions, each with its first negatives."""
        return self.batch(chosen, [self.examples.negatives[i][: self._hard] for i in chosen])

    def batch(self, chosen: Sequence[int], negatives: Sequence[Sequence[int]]) -> Batch:
        positives = [int(self.examples.positives[i]) for i in chosen]
        hard = [int(row) for own in negatives for row in own]
        own_hard = np.array([h < len(own) for own in negatives for h in range(self._hard)], dtype=bool)
        has = np.array([self.examples.distractors[i] is not None for i in chosen], dtype=bool)
        pseudo = [self._inputs.distractor_key(i) if has[q] else positives[q] for q, i in enumerate(chosen)]

        hard_keys = np.repeat(positives, self._hard)
        hard_keys[own_hard] = hard
        keys_P = [*positives, *hard_keys.tolist(), *pseudo]
        distinct = list(dict.fromkeys(keys_P))
        place = {key: i for i, key in enumerate(distinct)}
        columns_P = np.array([place[key] for key in keys_P])
        ids = self._inputs.ids(distinct)
        pairs = [(ids[place[p]], ids[place[d]]) for p, d in zip(positives, pseudo, strict=True)]
        equal_Q = np.array([np.array_equal(*pair) for pair in pairs])
        present_P = np.concatenate([np.ones(len(chosen), bool), own_hard, has])
        false_QP = np.zeros((len(chosen), len(keys_P)), dtype=bool)
        if self._mask:
            held_QP = self._held(chosen, distinct)[:, columns_P]
            sources_P = self._inputs.sources(keys_P)
            own_QP = np.stack([np.isin(sources_P, self._own[self.examples.question_ids[i]]) for i in chosen])
            false_QP = false_negatives(own_QP, held_QP, present_P, hard=self._hard)
        return Batch(
            questions=[self._questions[i] for i in chosen],
            passages=ids,
            columns_P=torch.from_numpy(columns_P),
            masks=masks_of(false_QP, present_P, equal_Q),
            masked=int(false_QP.sum()),
            without_distractor=int((~has).sum()),
            truncated=int((has & equal_Q).sum()),
        )

    def _held(self, chosen: Sequence[int], distinct: Sequence[int]) -> np.ndarray:
        """(Q, distinct passages): whether the passage's text holds an answer to the question."""
        texts = self._inputs.texts(distinct)
        answers = [(self.examples.answers[i], self.examples.kinds[i]) for i in chosen]
        return np.stack([self._matcher.matches(own, texts, kind) for own, kind in answers])


def batch_indices(number: int, *, count: int, size: int, seed: int) -> tuple[int, list[int]]:
    """Epoch of a batch and the positions of its examples."""
    size = min(size, count)
    epoch, place = divmod(number, count // size)
    order = np.random.default_rng([seed, epoch]).permutation(count)
    return epoch, order[place * size : (place + 1) * size].tolist()


def draw(negatives: np.ndarray, count: int, *, seed: int, epoch: int, example: int) -> np.ndarray:
    """`count` of a question's negatives without repeats, all of them where there are no more."""
    if len(negatives) <= count:
        return negatives
    return np.random.default_rng([seed, epoch, example]).choice(negatives, count, replace=False)


def owners(count: int, hard: int) -> np.ndarray:
    """The question that each column belongs to."""
    own = np.arange(count)
    return np.concatenate([own, np.repeat(own, hard), own])


def false_negatives(own_QP: np.ndarray, held_QP: np.ndarray, present_P: np.ndarray, *, hard: int) -> np.ndarray:
    """(Q, P): columns of other examples that hold an answer to the question or stem from a positive passage of it.

    A distractor stems from the positive it was made of. The example's own columns are never among them.
    """
    count = len(held_QP)
    others_QP = owners(count, hard) != np.arange(count)[:, None]
    return others_QP & present_P & (held_QP | own_QP)


def masks_of(false_QP: np.ndarray, present_P: np.ndarray, equal_Q: np.ndarray) -> Masks:
    """The masks of the losses. `equal_Q`: the positive's input and the distractor's are the same."""
    count = len(equal_Q)
    allowed_QP = present_P & ~false_QP
    negatives_QN = allowed_QP[:, :-count].copy()
    negatives_QN[np.arange(count), np.arange(count)] = False
    contrast_Q = present_P[-count:] & ~equal_Q
    return Masks(*(torch.from_numpy(m.copy()) for m in (negatives_QN, allowed_QP[:, -count:], contrast_Q)))


def ahead(make: Callable[[int], Batch], numbers: Sequence[int]) -> Iterator[Batch]:
    """`make` of each number in order, the next one made in a thread while the caller works on this one."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        waiting = None
        for number in numbers:
            following = pool.submit(make, number)
            if waiting is not None:
                yield waiting.result()
            waiting = following
        if waiting is not None:
            yield waiting.result()
