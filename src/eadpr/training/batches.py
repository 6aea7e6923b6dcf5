"""Batches: questions, the distinct passages of all their columns, and the masks of the losses.

A batch is a function of the seed and its number, so that a resumed training sees the batches of an undisturbed one.
Every epoch is a new permutation of the questions, in which an up-sampled question occurs several times; the questions
after the last whole batch are left out of that epoch. Q and P as in `losses`.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from eadpr.storage.passages import PassageStore
from eadpr.text.answers import AnswerMatcher
from eadpr.training import processes
from eadpr.training.config import Loss, Train
from eadpr.training.encoder import Encoders
from eadpr.training.example_set import ExampleSet
from eadpr.training.inputs import PassageInputs, tokenise_questions
from eadpr.training.losses import Masks, make_masks


class Batch(NamedTuple):
    """`columns_P` (int64) is the position of each column among `passages`; a missing column is its question's positive.
    A passage is None where another process encodes it.

    `parts_Q2T` (bool), where L_R has a weight: which of the first T tokens of its positive a question's evidence has,
    and which the rest; none where either has no token. `counts` are logged: entries `masked` as false negatives,
    comparisons of L_HN `truncated`, as two inputs are equal (cut beyond their length), and `Batcher.count_missing`.
    """

    questions: list[Sequence[int]]
    passages: list[Sequence[int] | None]
    columns_P: Tensor
    masks: Masks
    parts_Q2T: Tensor | None
    counts: dict[str, int]


class ColumnBlocks(NamedTuple):
    """Keys (of `PassageInputs`) of a batch's columns, block by block as in `losses`; None for a missing column."""

    positives: list[int]
    hard_negatives: list[int | None]
    distractors: list[int | None]
    placebos: list[int | None]

    @property
    def present_P(self) -> np.ndarray:
        """Which columns before the placebos are there."""
        return np.array([key is not None for block in self[:3] for key in block])


class Batcher:
    """Makes batches of one set of examples; with `shuffle` the words of texts are shuffled where `train` asks for it.

    No placebo has to be masked: a question's placebo is compared with its own distractor and negatives alone.
    """

    def __init__(
        self,
        examples: ExampleSet,
        store: PassageStore,
        encoders: Encoders,
        loss: Loss,
        train: Train,
        *,
        shuffle: bool = False,
    ) -> None:
        passage_seed = train.seed if shuffle and train.shuffle_passages else None
        question_seed = train.seed if shuffle and train.shuffle_questions else None
        self.examples = examples
        self.inputs = PassageInputs(examples, store, encoders.passage, shuffle_seed=passage_seed)
        self._question_ids = tokenise_questions(encoders.question, examples.questions, shuffle_seed=question_seed)
        self._hard, self._seed = train.hard_negatives, train.seed
        self._asked = epochs(examples.times, size=train.batch_size, seed=train.seed)
        self._loss = loss
        self._matcher = AnswerMatcher()
        self._group = processes.new_group()

    def __len__(self) -> int:
        return len(self.examples.questions)

    def examples_of(self, questions: Sequence[int]) -> list[int]:
        """Return the examples that are the rows of `first(questions)`."""
        return list(questions)

    def count_missing(self, chosen: Sequence[int]) -> dict[str, int]:
        """Count the examples without a distractor, a placebo or a rest, where the loss has a term with it."""
        counts: dict[str, int] = {}
        if self._loss.needs_distractors:
            counts["without_distractor"] = sum(self.examples.distractors[i] is None for i in chosen)
        if self._loss.needs_placebos:
            counts["without_placebo"] = sum(self.examples.placebos[i] is None for i in chosen)
        if self._loss.rest:
            counts["without_rest"] = sum(not parts.any() for parts in self.inputs.parts(chosen))
        return counts

    def count_all(self) -> dict[str, int]:
        """Return `count_missing` of the whole set, with its examples that have a truncated comparison."""
        indices = range(len(self.examples.questions))
        truncated = int(self._contrast(indices)[1].any(0).sum())
        return self.count_missing(indices) | ({"truncated": truncated} if self._loss.needs_distractors else {})

    def sampled(self, number: int) -> Batch:
        """Make batch `number` (from 0) of an endless training; a question draws negatives whenever it is asked."""
        epoch, chosen = self._asked(number)
        negatives = [
            draw(self.examples.negatives[i].as_py(), self._hard, seed=self._seed, epoch=epoch, example=i, copy=copy)
            for i, copy in chosen
        ]
        return self.batch([i for i, _ in chosen], negatives)

    def first(self, questions: Sequence[int]) -> Batch:
        """Make the batch of these questions, each with its first negatives."""
        return self.batch(questions, [self.examples.negatives[i].as_py()[: self._hard] for i in questions])

    def batch(self, chosen: Sequence[int], negatives: Sequence[Sequence[int]]) -> Batch:
        """Make the batch of the examples `chosen`, with at most H `negatives` for each."""
        hard: list[int | None] = []
        for rows in negatives:
            hard += [*map(int, rows), *[None] * (self._hard - len(rows))]
        columns = ColumnBlocks(
            positives=[int(self.examples.positives[i]) for i in chosen],
            hard_negatives=hard,
            distractors=[self.inputs.distractors[i] for i in chosen],
            placebos=[self.inputs.placebos[i] for i in chosen] if self.inputs.placebos else [],
        )
        keys, columns_P = deduplicate(columns)
        passages: list[Sequence[int] | None] = [None] * len(keys)
        passages[processes.share()] = self.inputs.ids(keys[processes.share()])
        false_QP = self._false_negatives(chosen, columns_P[: len(columns.present_P)], keys)
        contrast_CQ, truncated_CQ = self._merge(self._contrast(chosen, processes.share()))
        has_placebo = np.array([key is not None for key in columns.placebos], dtype=bool)
        masks = make_masks(*map(torch.tensor, (columns.present_P, false_QP, contrast_CQ, has_placebo)))
        parts_Q2T = None
        if self._loss.rest:
            parts_QT2 = [torch.from_numpy(of_example.T) for of_example in self.inputs.parts(chosen)]
            parts_Q2T = pad_sequence(parts_QT2, batch_first=True).transpose(1, 2)
            masks = masks._replace(parts_Q=parts_Q2T.any(2).all(1))
        counts = {"masked": count_masked(masks, columns.present_P), **self.count_missing(chosen)}
        if self._loss.needs_distractors:
            counts["truncated"] = int(truncated_CQ.sum())
        questions = [self._question_ids[i].values.to_numpy() for i in chosen]
        return Batch(questions, passages, torch.from_numpy(columns_P), masks, parts_Q2T, counts)

    def _false_negatives(self, chosen: Sequence[int], columns_P: np.ndarray, keys: Sequence[int]) -> np.ndarray:
        """(Q, P): of another question, the column is no negative, as it holds an answer or stems from a positive."""
        if self._loss.form == "reference" or not self._loss.mask_false_negatives:  # the published code has no mask
            return np.zeros((len(chosen), len(columns_P)), dtype=bool)
        keys, share = keys[: columns_P.max() + 1], processes.share()  # without placebos, which come last
        false_QK, sources = np.zeros((len(chosen), len(keys)), dtype=bool), self.inputs.sources(keys)
        questions = [(self.examples.answers[i], self.examples.kinds[i]) for i in chosen]
        false_QK[:, share] = self._matcher.table(questions, self.inputs.texts(keys[share]))
        false_QK = self._merge(false_QK)
        for false_K, i in zip(false_QK, chosen, strict=True):
            false_K |= np.isin(sources, [*self.examples.other_positives[i].as_py(), self.examples.positives[i]])
        return false_QK[:, columns_P]

    def _merge(self, flags: np.ndarray) -> np.ndarray:
        """Return bools that are True in some process, each in at most one."""
        return processes.summed(torch.from_numpy(flags.astype(np.uint8)), self._group).numpy().astype(bool)

    def _contrast(self, chosen: Sequence[int], share: slice = slice(None)) -> np.ndarray:
        """Return (2, C, Q) bool: `contrast_CQ` of the masks, and which comparisons it leaves out because two of their
        inputs are equal; False for all but the `share` of `chosen`.

        All inputs of a comparison have to differ: if the placebo is the positive as far as the encoder reads, one side
        of placebo and distractor is cut and the other is not.
        """
        outcomes = np.zeros((2, 2 if self._loss.balances == "both" else 1, len(chosen)), dtype=bool)
        for place, example in list(enumerate(chosen))[share]:
            positive, distractor = int(self.examples.positives[example]), self.inputs.distractors[example]
            comparisons = [(positive, distractor)] if self._loss.balances != "placebo" else []
            if self._loss.balances != "none":
                comparisons.append((positive, self.inputs.placebos[example], distractor))
            for number, keys in enumerate(comparisons):
                if None not in keys:
                    equal = any(np.array_equal(*pair) for pair in combinations(self.inputs.ids(keys), 2))
                    outcomes[int(equal), number, place] = True
        return outcomes


def deduplicate(columns: ColumnBlocks) -> tuple[list[int], np.ndarray]:
    """Return the distinct keys in the order of their first occurrence, and the position of each column among them."""
    positions: dict[int, int] = {}
    columns_P = []
    for block in columns:
        for place, key in enumerate(block):
            owner = place * len(columns.positives) // len(block)
            encoded = columns.positives[owner] if key is None else key
            columns_P.append(positions.setdefault(encoded, len(positions)))
    return list(positions), np.array(columns_P)


def count_masked(masks: Masks, present_P: np.ndarray) -> int:
    """Count the columns that are there and left out as false negatives; a question's positive is no negative of it."""
    allowed = masks.negatives_QN.sum() + len(masks.negatives_QN) + masks.distractors_QQ.sum()
    return int(len(masks.negatives_QN) * present_P.sum() - allowed)


def epochs(times: np.ndarray, *, size: int, seed: int) -> Callable[[int], tuple[int, list[tuple[int, int]]]]:
    """Return the function that gives, by the number of a batch, its epoch, and pairs of an example and which of its
    copies, from 0, the batch asks. Example i has times[i] copies in an epoch.

    Copies lie a whole part of the epoch apart, so that no question meets itself in a batch unless the set is small.
    """
    size = min(size, len(times))

    @lru_cache(maxsize=1)
    def sort(epoch: int) -> tuple[np.ndarray, np.ndarray]:
        order = np.random.default_rng([seed, epoch]).permutation(len(times))
        examples = np.repeat(order, times[order])
        copies = np.arange(len(examples)) - np.repeat(np.cumsum(times[order]) - times[order], times[order])
        ranks = np.repeat(np.arange(len(order)), times[order])
        # Copy c of t, of the question at rank r of n, belongs at (c + r / n) / t of the epoch; with t = 1 at its rank.
        places = np.argsort((copies + ranks / len(order)) / times[examples], kind="stable")
        return examples[places], copies[places]

    def batch(number: int) -> tuple[int, list[tuple[int, int]]]:
        epoch, place = divmod(number, int(times.sum()) // size)
        examples, copies = (column[place * size :][:size].tolist() for column in sort(epoch))
        return epoch, list(zip(examples, copies, strict=True))

    return batch


def draw(negatives: Sequence[int], count: int, *, seed: int, epoch: int, example: int, copy: int = 0) -> Sequence[int]:
    """Draw `count` of a question's negatives without repeats, all of them where there are no more."""
    if len(negatives) <= count:
        return negatives
    return np.random.default_rng([seed, epoch, example, copy]).choice(negatives, count, replace=False)
