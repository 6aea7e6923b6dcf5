"""Batches of two hops for the loop of `eadpr.training`: n questions are 2n queries over one matrix of columns.

Rows, and positives, distractors and placebos among the columns, are `[hop 1 of n | hop 2 of n]`, so that every passage
of either hop, and every hard negative, is set against both queries of a question (MDR: Xiong et al., 2021). Losses are
means over both hops. Each hop has its passage's distractor and placebo; hop 2's query holds the whole passage of hop 1.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_questions
from eadpr.training.batches import Batch, Batcher, draw, epochs
from eadpr.training.config import Loss, Train
from eadpr.training.encoder import Encoders, TextEncoder
from eadpr.training.example_set import ExampleSet
from eadpr.training.losses import Masks
from eadpr.two_hops.hops import hop_texts, second_ids, without_question_mark

ORDER = 1  # tells the draw of a comparison's order from that of its negatives


class HopExamples(NamedTuple):
    """Examples 2i and 2i + 1 are hops 1 and 2 of question i; their positives are its supporting passages in order.

    `unordered` (questions,) bool: the passages have no order, as in comparisons. `left_out` counts questions without
    two hops, or with a hop that is no example.
    """

    examples: ExampleSet
    unordered: np.ndarray
    left_out: int


def pair_hops(examples: ExampleSet, records: Path, store: PassageStore) -> HopExamples:
    """Return the examples that are hops, in the order of the questions; questions end without a question mark."""
    keys = zip(examples.question_ids, store.ids(examples.positives), strict=True)
    example_of = {key: i for i, key in enumerate(keys)}
    questions = list(read_questions(records / "questions.parquet", frozenset(examples.question_ids)))
    rows, unordered = [], []
    for question in questions:
        hops = [example_of.get((question.id, passage_id)) for passage_id in question.hops or ()]
        if len(set(hops)) == 2 == len(hops) and None not in hops:
            rows += hops
            unordered.append(question.either_order)
    hop_examples = examples.select(rows)
    texts = [without_question_mark(question) for question in hop_examples.questions]
    return HopExamples(
        hop_examples._replace(questions=texts), np.array(unordered, dtype=bool), len(questions) - len(unordered)
    )


def tokenise_second_hops(
    hops: HopExamples, store: PassageStore, encoder: TextEncoder, query_tokens: int
) -> dict[int, np.ndarray]:
    """Return the token ids of hop 2's query by the example that is hop 1; of a comparison either may be.

    All at once: a tokenizer has one length at a time, and validation runs while batches are made.
    """
    firsts = [i for i in range(len(hops.examples.questions)) if i % 2 == 0 or hops.unordered[i // 2]]
    questions = [hops.examples.questions[i] for i in firsts]
    texts = hop_texts(store, hops.examples.positives[firsts])
    return dict(zip(firsts, second_ids(encoder, questions, texts, query_tokens), strict=True))


class HopBatcher(Batcher):
    """Makes batches of two hops; a question has `hard_negatives` in the columns of either hop."""

    def __init__(
        self, hops: HopExamples, store: PassageStore, encoders: Encoders, loss: Loss, train: Train, *, query_tokens: int
    ) -> None:
        super().__init__(hops.examples, store, encoders, loss, train)
        self._asked = epochs(hops.examples.times[::2], size=train.batch_size, seed=train.seed)
        self._unordered = hops.unordered
        self._second_hops = tokenise_second_hops(hops, store, encoders.question, query_tokens)

    def __len__(self) -> int:
        return len(self._unordered)

    def examples_of(self, questions: Sequence[int]) -> list[int]:
        return [2 * i + hop for hop in (0, 1) for i in questions]

    def sampled(self, number: int) -> Batch:
        """Make batch `number` (from 0) of an endless training; negatives and comparisons' order are drawn each time."""
        epoch, chosen = self._asked(number)
        firsts, negatives = [], []
        for i, copy in chosen:
            rows = self.examples.negatives[2 * i].as_py()
            negatives.append(draw(rows, 2 * self._hard, seed=self._seed, epoch=epoch, example=i, copy=copy))
            turned = self._unordered[i] and np.random.default_rng([self._seed, epoch, i, copy, ORDER]).integers(2)
            firsts.append(2 * i + int(turned))
        return self._of_hops(firsts, negatives)

    def first(self, questions: Sequence[int]) -> Batch:
        """Make the batch of these questions, hops in their order, each with its first negatives."""
        negatives = [self.examples.negatives[2 * i].as_py()[: 2 * self._hard] for i in questions]
        return self._of_hops([2 * i for i in questions], negatives)

    def _of_hops(self, firsts: Sequence[int], negatives: Sequence[Sequence[int]]) -> Batch:
        seconds = [i ^ 1 for i in firsts]  # the other hop of each question
        hard = [rows[: self._hard] for rows in negatives] + [rows[self._hard :] for rows in negatives]
        batch = self.batch([*firsts, *seconds], hard)
        masks, restored = hop_masks(batch.masks)
        questions = [*batch.questions[: len(firsts)], *(self._second_hops[i] for i in firsts)]
        counts = batch.counts | {"masked": batch.counts["masked"] - restored}
        return batch._replace(questions=questions, masks=masks, counts=counts)


def hop_masks(masks: Masks) -> tuple[Masks, int]:
    """Correct the masks between the two hops of a question; also return how many false negatives that takes back.

    The batcher takes the hops for two questions, but between them nothing is a false negative. The passage of hop 2 and
    its distractor are no negatives of hop 1. Hop 1's passage is a negative of hop 2, which should not find it again.
    """
    negatives_QN, distractors_QQ = masks.negatives_QN.clone(), masks.distractors_QQ.clone()
    rows = len(negatives_QN)
    hop1 = torch.arange(rows // 2)
    hop2 = hop1 + len(hop1)
    hard_QQH = negatives_QN[:, rows:].unflatten(1, (rows, negatives_QN.shape[1] // rows - 1))  # a view
    for query, passage in ((hop1, hop2), (hop2, hop1)):
        negatives_QN[query, passage] = True
        hard_QQH[query, passage] = hard_QQH[passage, passage]
        distractors_QQ[query, passage] = distractors_QQ[passage, passage]
    restored = (negatives_QN & ~masks.negatives_QN).sum() + (distractors_QQ & ~masks.distractors_QQ).sum()
    negatives_QN[hop1, hop2] = False
    distractors_QQ[hop1, hop2] = False
    return masks._replace(negatives_QN=negatives_QN, distractors_QQ=distractors_QQ), int(restored)
