"""Which ranked passages are hits, and how far down the first one stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from eadpr.passages import PassageStore
from eadpr.records import Question
from eadpr.text import AnswerMatcher

GIVEN = "given"


class Judge:
    """Judges passages by answer string, as DPR does: BM25 then gains nothing from positives that it found itself.

    `relevant` holds the ids known to be relevant to each question."""

    def __init__(self, store: PassageStore, relevant: Mapping[str, frozenset[str]]) -> None:
        self._store = store
        self._relevant = relevant
        self._matcher = AnswerMatcher()

    def __call__(self, question: Question, passage_ids: Sequence[str]) -> NDArray[np.bool_]:
        """(P,): whether each passage holds an answer; where no text can hold the answer, whether it is relevant."""
        if not question.sought:
            return np.array([passage_id in self._relevant[question.id] for passage_id in passage_ids], dtype=np.bool_)
        texts = self._store.texts(self._store.rows(passage_ids))
        return self._matcher.matches(question.answers, texts, question.answer_kind)


def reciprocal_rank(hits_QK: NDArray[np.bool_], depth: int) -> NDArray[np.float64]:
    """(Q,): 1 / rank of the first hit among the first `depth` passages, 0 if there is none."""
    cut = hits_QK[:, :depth]
    if cut.shape[1] == 0:
        return np.zeros(len(cut))
    return np.where(cut.any(axis=1), 1.0 / (cut.argmax(axis=1) + 1.0), 0.0)
