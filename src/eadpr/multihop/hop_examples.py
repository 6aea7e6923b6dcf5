"""The examples of questions with two hops, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from eadpr.multihop.queries import plain
from eadpr.passages import PassageStore
from eadpr.questions import selected
from eadpr.training.example_set import ExampleSet

COMPARISON = "comparison"  # `Question.type` of those whose passages stand side by side


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
    asked = list(selected(records / "questions.parquet", frozenset(found.question_ids)))
    rows, either = [], []
    for question in asked:
        own = [place.get((question.id, passage_id)) for passage_id in question.hops or ()]
        if len(set(own)) == 2 == len(own) and None not in own:
            rows += own
            either.append(question.type == COMPARISON)
    examples = ExampleSet(
        question_ids=[found.question_ids[i] for i in rows],
        questions=[plain(found.questions[i]) for i in rows],
        answers=[found.answers[i] for i in rows],
        kinds=[found.kinds[i] for i in rows],
        positives=found.positives[rows],
        negatives=[found.negatives[i] for i in rows],
        distractors=[found.distractors[i] for i in rows],
        times=found.times[rows],
    )
    return HopExamples(examples, np.array(either, dtype=bool), len(asked) - len(either))
