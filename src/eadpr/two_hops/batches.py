"""Batches of two hops for the loop of `eadpr.training`: n questions are 2n queries over one matrix of columns.

Rows, and positives, distractors and placebos among the columns, are `[hop 1 of n | hop 2 of n]`, so that every passage
of either hop, and every hard negative, stands against both queries of each question (MDR: Xiong et al., 2021). The
losses then are those of one hop, as means over both hops. Each hop has the distractor and the placebo of its own
passage; the query of hop 2 holds hop 1's passage whole.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_questions
from eadpr.training.batches import Batch, Batcher, batch_indices, draw
from eadpr.training.encoder import TextEncoder
from eadpr.training.example_set import ExampleSet, PassageInputs
from eadpr.training.losses import Masks
from eadpr.two_hops.hops import hop_texts, plain, second_ids

ORDER = 1  # tells the draw of a comparison's order from that of its negatives


class HopExamples(NamedTuple):
    """Examples 2i and 2i + 1 are hops 1 and 2 of question i, whose positives are its supporting passages in order.

    `either` (questions,) bool: the passages have no order, as in comparisons. `left_out` counts questions without two
    hops, or with a hop that is no example.
    """

    examples: ExampleSet
    either: np.ndarray
    left_out: int


def side_by_side(found: ExampleSet, records: Path, store: PassageStore) -> HopExamples:
    """Those of `found` that are hops, in the order of the questions; questions end without a question mark."""
    keys = zip(found.question_ids, store.ids(found.positives), strict=True)
    place = {key: i for i, key in enumerate(keys)}
    asked = list(read_questions(records / "questions.parquet", frozenset(found.question_ids)))
    rows, either = [], []
    for question in asked:
        own = [place.get((question.id, passage_id)) for passage_id in question.hops or ()]
        if len(set(own)) == 2 == len(own) and None not in own:
            rows += own
            either.append(question.either_order)
    columns = (of[rows] if isinstance(of, np.ndarray) else of and [of[i] for i in rows] for of in found)
    examples = ExampleSet(*columns)
    examples = examples._replace(questions=[plain(question) for question in examples.questions])
    return HopExamples(examples, np.array(either, dtype=bool), len(asked) - len(either))


class HopBatcher(Batcher):
    """Two hard negatives per question for each of `hard_negatives`, one beside either hop; `options`: as `Batcher`."""

    def __init__(
        self,
        hops: HopExamples,
        inputs: PassageInputs,
        store: PassageStore,
        question_encoder: TextEncoder,
        *,
        query_tokens: int,
        **options: Any,
    ) -> None:
        super().__init__(hops.examples, inputs, question_encoder, **options)
        self._either = hops.either
        # All now, not when first needed: a tokenizer has one length at a time, and validation runs beside the making of
        # batches.
        begins = [i for i in range(len(self.examples.questions)) if i % 2 == 0 or hops.either[i // 2]]
        asked = [self.examples.questions[i] for i in begins]
        texts = hop_texts(store, self.examples.positives[begins])
        self._after = dict(zip(begins, second_ids(question_encoder, asked, texts, query_tokens), strict=True))

    def __len__(self) -> int:
        return len(self._either)

    def asked(self, chosen: Sequence[int]) -> list[int]:
        return [2 * i + hop for hop in (0, 1) for i in chosen]

    def sampled(self, number: int, *, size: int, seed: int) -> Batch:
        """Batch `number` (from 0) of an endless training; negatives, and the order of the hops of a comparison, are
        drawn anew whenever a question is asked."""
        epoch, chosen = batch_indices(number, times=self.examples.times[::2], size=size, seed=seed)
        negatives = [
            draw(self.examples.negatives[2 * i], 2 * self._hard, seed=seed, epoch=epoch, example=i, copy=copy)
            for i, copy in chosen
        ]
        turned = [
            bool(self._either[i] and np.random.default_rng([seed, epoch, i, copy, ORDER]).integers(2))
            for i, copy in chosen
        ]
        return self._of_hops([2 * i + turn for (i, _), turn in zip(chosen, turned, strict=True)], negatives)

    def first(self, chosen: Sequence[int]) -> Batch:
        """The questions with these positions, hops in their given order, each with its first negatives."""
        negatives = [self.examples.negatives[2 * i][: 2 * self._hard] for i in chosen]
        return self._of_hops([2 * i for i in chosen], negatives)

    def _of_hops(self, firsts: Sequence[int], negatives: Sequence[np.ndarray]) -> Batch:
        beside = [own[: self._hard] for own in negatives] + [own[self._hard :] for own in negatives]
        batch = self.batch([*firsts, *(i ^ 1 for i in firsts)], beside)
        (masks, restored), count = hop_masks(batch.masks), len(firsts)
        return batch._replace(
            questions=[*batch.questions[:count], *(self._after[i] for i in firsts)],
            masks=masks,
            masked=batch.masked - restored,
        )


def hop_masks(masks: Masks) -> tuple[Masks, int]:
    """Between the hops of one question: nothing is a false negative, as the batcher takes it to be; but the passage of
    hop 2, and its distractor, is no negative of hop 1. That of hop 1 is one of hop 2, which should not find it again.

    Also returns by how much this lowers the number of masked false negatives.
    """
    negatives_QN, distractors_LQQ = masks.negatives_QN.clone(), masks.distractors_LQQ.clone()
    rows = len(negatives_QN)
    one = torch.arange(rows // 2)
    two = one + len(one)
    hard_QQH = negatives_QN[:, rows:].unflatten(1, (rows, negatives_QN.shape[1] // rows - 1))  # a view
    for asked, other in ((one, two), (two, one)):
        negatives_QN[asked, other] = True
        hard_QQH[asked, other] = hard_QQH[other, other]
        distractors_LQQ[:, asked, other] = distractors_LQQ[:, other, other]
    found = ((negatives_QN, masks.negatives_QN), (distractors_LQQ, masks.distractors_LQQ))
    restored = sum(int((after & ~before).sum()) for after, before in found)
    negatives_QN[one, two] = False
    distractors_LQQ[:, one, two] = False
    return masks._replace(negatives_QN=negatives_QN, distractors_LQQ=distractors_LQQ), restored
