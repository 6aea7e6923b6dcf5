"""What one forward pass gets: questions, the distinct passages of all columns, and the masks of the losses.

A batch is a pure function of the seed and its number, so that a resumed training sees what an undisturbed one does.
Every epoch is a new permutation of the questions, an up-sampled one standing in it several times; what is left after
the last whole batch is left out of that epoch.
Q and P as in losses: questions, and columns `[positives B | hard negatives B*H | distractors B of level 0 | ... |
placebos B]`, the last where the examples have placebos.
"""

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr.text.answers import AnswerMatcher
from eadpr.training.config import Balance
from eadpr.training.encoder import TextEncoder
from eadpr.training.example_set import QUESTION, ExampleSet, PassageInputs, shuffled
from eadpr.training.losses import Masks

NONE = np.zeros(0, dtype=bool)  # `placebos_Q` where the columns have no placebos


class Batch(NamedTuple):
    """`columns_P` (int64) says which of `passages` each column is; a missing column points to the question's positive.

    `masked`: entries left out as false negatives; `without_distractor`, `without_placebo`: questions; `truncated`:
    comparisons of L_HN left out, two of whose inputs are one (cuts beyond the input).
    """

    questions: list[Sequence[int]]
    passages: list[Sequence[int]]
    columns_P: Tensor
    masks: Masks
    masked: int
    without_distractor: int
    without_placebo: int
    truncated: int


class Batcher:
    """Assembles batches of one set of examples. `hard_negatives` is H of the layout; with `shuffle_seed` the words of
    the questions are shuffled; `balance` is L_HN's.

    A placebo is a negative of no question, so nothing of it has to be masked: its own question compares it with the
    distractor (L_HN) and with the negatives (L_P), other questions with nothing.
    """

    def __init__(
        self,
        examples: ExampleSet,
        inputs: PassageInputs,
        question_encoder: TextEncoder,
        *,
        hard_negatives: int,
        mask_false_negatives: bool,
        shuffle_seed: int | None = None,
        balance: Balance = "none",
    ) -> None:
        self.examples = examples
        self.inputs = inputs
        questions = examples.questions
        if shuffle_seed is not None:
            questions = [shuffled(text, shuffle_seed, QUESTION, i) for i, text in enumerate(questions)]
        self._questions = [np.array(ids, np.int32) for ids in question_encoder.question_ids(questions)]
        self._hard = hard_negatives
        self._mask = mask_false_negatives
        self._balance = balance
        self._matcher = AnswerMatcher()

    def __len__(self) -> int:
        """How many questions there are."""
        return len(self.examples.questions)

    def asked(self, chosen: Sequence[int]) -> list[int]:
        """The examples that the rows of `first` are."""
        return list(chosen)

    def truncated_pairs(self) -> int:
        """Examples of the whole set with a comparison of L_HN left out, as two of its inputs are one."""
        every = range(len(self.examples.questions))
        return sum(any(not unlike(self.inputs.ids(keys)) for keys in self._compared(i)) for i in every)

    def _compared(self, example: int) -> list[tuple[int, ...]]:
        levels = range(len(self.examples.distractors[example]))
        keys = int(self.examples.positives[example]), *(self.inputs.distractor_key(example, level) for level in levels)
        found: list[tuple[int, ...]] = [] if self._balance == "placebo" else list(pairwise(keys))
        if levels and self._balance != "none" and self.examples.placebos[example] is not None:
            found.append((*keys, self.inputs.placebo_key(example)))
        return found

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
        placebos, has_placebo_Q = self._placebos(chosen, positives)

        hard_keys = np.repeat(positives, self._hard)
        hard_keys[own_hard] = hard
        keys_P = [*positives, *hard_keys.tolist(), *(key for level in pseudo_LQ for key in level), *placebos]
        distinct = list(dict.fromkeys(keys_P))
        place = {key: i for i, key in enumerate(distinct)}
        columns_P = np.array([place[key] for key in keys_P])
        ids = self.inputs.ids(distinct)
        comparisons = (
            [] if self._balance == "placebo" else list(zip(has_LQ, pairwise([positives, *pseudo_LQ]), strict=True))
        )
        if self._balance != "none":
            comparisons.append((has_LQ[0] & has_placebo_Q, (positives, placebos, *pseudo_LQ)))
        pairs_CQ = np.array([pairs_Q for pairs_Q, _ in comparisons])
        contrast_CQ = pairs_CQ & [
            [unlike([ids[place[key]] for key in keys]) for keys in zip(*compared, strict=True)]
            for _, compared in comparisons
        ]
        present_P = np.concatenate([np.ones(len(chosen), bool), own_hard, has_LQ.ravel()])
        masked_P = columns_P[: len(present_P)]  # all but placebos, which nobody is set against
        false_QP = np.zeros((len(chosen), len(present_P)), dtype=bool)
        if self._mask:
            held_QP = self._held(chosen, distinct[: masked_P.max() + 1])[:, masked_P]
            sources_P = self.inputs.sources(distinct)[masked_P]
            own_QP = np.stack([np.isin(sources_P, self._positives(i)) for i in chosen])
            false_QP = false_negatives(own_QP, held_QP, present_P, hard=self._hard)
        return Batch(
            questions=[self._questions[i] for i in chosen],
            passages=ids,
            columns_P=torch.from_numpy(columns_P),
            masks=masks_of(false_QP, present_P, contrast_CQ, has_placebo_Q, levels=len(levels)),
            masked=int(false_QP.sum()),
            without_distractor=int((~has_LQ[0]).sum()),
            without_placebo=int((~has_placebo_Q).sum()),
            truncated=int((pairs_CQ & ~contrast_CQ).sum()),
        )

    def _placebos(self, chosen: Sequence[int], positives: Sequence[int]) -> tuple[list[int], np.ndarray]:
        """Keys of the last block of columns, and (Q,) who has a placebo; both empty where the examples have none."""
        if (texts := self.examples.placebos) is None:
            return [], NONE
        has_Q = np.array([texts[i] is not None for i in chosen])
        own = zip(chosen, positives, has_Q, strict=True)
        return [self.inputs.placebo_key(i) if has else positive for i, positive, has in own], has_Q

    def _positives(self, example: int) -> np.ndarray:
        return np.append(self.examples.others[example], self.examples.positives[example])

    def _held(self, chosen: Sequence[int], distinct: Sequence[int]) -> np.ndarray:
        """(Q, distinct passages): whether the passage's text holds an answer to the question."""
        texts = self.inputs.texts(distinct)
        answers = [(self.examples.answers[i], self.examples.kinds[i]) for i in chosen]
        return np.stack([self._matcher.matches(own, texts, kind) for own, kind in answers])


def unlike(inputs: Sequence[np.ndarray]) -> bool:
    """Whether no two are the same. Two texts are where what tells them apart lies beyond the encoder's cut; if that is
    so of the positive and one of a balanced pair, one side is cut and the other is not."""
    return not any(np.array_equal(*pair) for pair in combinations(inputs, 2))


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

    P are the columns before the placebos, which are a negative of no question. A distractor stems from the positive it
    was made of. The example's own columns are never among them.
    """
    count = len(held_QP)
    levels = held_QP.shape[1] // count - 1 - hard
    others_QP = owners(count, hard, levels) != np.arange(count)[:, None]
    return others_QP & present_P & (held_QP | own_QP)


def masks_of(
    false_QP: np.ndarray,
    present_P: np.ndarray,
    contrast_CQ: np.ndarray,
    placebos_Q: np.ndarray = NONE,
    *,
    levels: int = 1,
) -> Masks:
    """The masks of the losses; `contrast_CQ` and `placebos_Q` as there."""
    count = contrast_CQ.shape[1]
    allowed_QP = present_P & ~false_QP
    negatives_QN = allowed_QP[:, : -levels * count].copy()
    negatives_QN[np.arange(count), np.arange(count)] = False
    distractors_LQQ = allowed_QP[:, -levels * count :].reshape(count, levels, count).transpose(1, 0, 2)
    return Masks(*(torch.from_numpy(m.copy()) for m in (negatives_QN, distractors_LQQ, contrast_CQ, placebos_Q)))
