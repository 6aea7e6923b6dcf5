"""What an extractive reader answers: the best span of the passage that it selects among the first k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from eadpr.machine import Machine
from eadpr.passages import PassageStore
from eadpr.reading.config import Read
from eadpr.reading.decoding import TokenSpan, best_spans
from eadpr.reading.extractive import ExtractiveReader, Input, Passages, in_passes
from eadpr.reading.records import Prediction
from eadpr.records import Question


class Found(NamedTuple):
    """The best span of a passage, by row, and the logit of the passage."""

    row: int
    given: Input
    span: TokenSpan
    score: float


class Answerer:
    """What a reader answers from passages of a store."""

    def __init__(self, reader: ExtractiveReader, store: PassageStore, settings: Read, hardware: Machine) -> None:
        self._reader = reader
        self._store = store
        self._passages = Passages(reader, store)
        self._settings = settings
        self._hardware = hardware

    def __call__(self, question: Question, rows: Sequence[int]) -> list[Prediction]:
        """A prediction for every `top_k`, from rows of passages, best first; each passage is read once."""
        read = self.read(question, rows[: self._settings.top_k[-1]])
        return [self._prediction(question, k, [one for one in read[:k] if one]) for k in self._settings.top_k]

    @torch.inference_mode()
    def read(self, question: Question, rows: Sequence[int]) -> list[Found | None]:
        """What each passage has to say, in the order given; None for one without text."""
        asked = self._reader.question_ids(question.question)
        inputs = [self._reader.input(asked, self._passages.tokens(row)) for row in rows]
        found: list[Found | None] = [None] * len(rows)
        for part, of_part, text_PT in in_passes(self._reader, inputs, self._hardware):
            spans = best_spans(of_part.start, of_part.end, text_PT, longest=self._settings.answer_tokens)
            for i, span, score in zip(part, spans, of_part.passages.tolist(), strict=True):
                found[i] = span and Found(rows[i], inputs[i], span, score)
        return found

    def _prediction(self, question: Question, top_k: int, read: list[Found]) -> Prediction:
        if not read:
            return Prediction(question.id, top_k, "", None, None, None, None, None)
        best = max(read, key=lambda one: one.score)  # of equals the one ranked first
        first, last = best.given.characters(best.span.first, best.span.last)
        piece = self._passages.text(best.row)[first:last]
        answer = piece.strip()  # a token of byte-level BPE holds the space before its word
        start = first + piece.index(answer)
        return Prediction(
            question.id,
            top_k,
            answer,
            answer_score=best.span.score,
            passage_id=self._store.ids([best.row])[0],
            passage_score=best.score,
            start=start,
            end=start + len(answer),
        )
