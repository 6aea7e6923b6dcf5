"""What an extractive reader learns from, one question at a time (Karpukhin et al., 2020, section 6.1): a positive,
whose answer spans and whose selection among other passages it is to find likely.

Shapes: P passages of one question, T tokens, A answer spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr.machine import Machine
from eadpr.passages import PassageStore
from eadpr.reading.extractive import ExtractiveReader, Input, Logits, Passages, logits, passes
from eadpr.reading.losses import selection_nll, span_nll
from eadpr.reading.selection import Asked, select
from eadpr.records import Question
from eadpr.text import AnswerMatcher, answer_spans
from eadpr.training import batches

POSITIVE = 1  # tells the draw of a positive from that of negatives


class Example(NamedTuple):
    """The positive first; its answer spans (A, 2) in tokens."""

    inputs: list[Input]
    spans_A2: Tensor


class _Source(NamedTuple):
    """What examples of a question are drawn from: rows of passages."""

    question: Question
    positives: np.ndarray
    negatives: np.ndarray


class Examples:
    """One example per question and epoch; questions without a positive that can be learnt from are left out."""

    def __init__(self, reader: ExtractiveReader, found: Sequence[Asked], store: PassageStore) -> None:
        self._reader = reader
        self._passages = Passages(reader, store)
        self._matcher = AnswerMatcher()
        self._sources = [source for one in found if one.question.sought and (source := self._source(one, store))]

    def __len__(self) -> int:
        return len(self._sources)

    def __call__(self, i: int, epoch: int) -> Example:
        settings, source = self._reader.settings, self._sources[i]
        options = {"seed": settings.seed, "epoch": epoch, "example": i}
        positive = batches.draw(source.positives, 1, copy=POSITIVE, **options)
        negatives = batches.draw(source.negatives, settings.passages - 1, **options)
        rows = [int(row) for row in (*positive, *negatives)]
        inputs = self._inputs(source.question, rows)
        return Example(inputs, torch.tensor(self._spans(source.question, inputs[0], rows[0])))

    def _source(self, one: Asked, store: PassageStore) -> _Source | None:
        settings, question = self._reader.settings, one.question
        holds = self._matcher.matches(question.answers, store.texts(one.rows), question.answer_kind)
        gold_page = [title in one.gold_titles for title in store.titles(one.rows)]
        chosen = select(holds.tolist(), gold_page, positives=settings.positives, negatives=settings.negatives)
        rows = [int(row) for row in one.rows[chosen.positives]]
        inputs = self._inputs(question, rows)
        kept = [row for row, given in zip(rows, inputs, strict=True) if self._spans(question, given, row)]
        return _Source(question, np.array(kept), one.rows[chosen.negatives]) if kept else None

    def _inputs(self, question: Question, rows: Sequence[int]) -> list[Input]:
        asked = self._reader.question_ids(question.question)
        return [self._reader.input(asked, self._passages.tokens(row)) for row in rows]

    def _spans(self, question: Question, given: Input, row: int) -> list[tuple[int, int]]:
        """Where the answers stand that the input is not cut before, in order, at most `answers`."""
        text = self._passages.text(row)
        found = {span for answer in question.answers for span in answer_spans([answer], text, question.answer_kind)}
        tokens = dict.fromkeys(given.span(span) for span in sorted(found))
        return [span for span in tokens if span is not None][: self._reader.settings.answers]


def terms(reader: ExtractiveReader, example: Example, hardware: Machine) -> dict[str, Tensor]:
    """`loss` and the two that it is the sum of: of the answer spans of the positive, of its selection."""
    read: dict[int, tuple[Logits, Tensor]] = {}
    for part in passes(example.inputs):
        found, text_PT = logits(reader, [example.inputs[i] for i in part], hardware)
        read |= {i: (Logits(*(of[at] for of in found)), text_PT[at]) for at, i in enumerate(part)}
    positive, text_T = read[0]
    spans = span_nll(positive.start, positive.end, text_T, example.spans_A2.to(text_T.device))
    selection = selection_nll(torch.stack([read[i][0].passages for i in range(len(read))]))
    return {"loss": spans + selection, "spans": spans, "selection": selection}
