"""What Fusion-in-Decoder learns from, one question at a time: the first passages of its ranking, an answer to write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr import machine
from eadpr.machine import Machine
from eadpr.passages import PassageStore
from eadpr.reading.fid import FusionReader, fused, passage_inputs
from eadpr.reading.selection import Asked
from eadpr.text import answer_spans


class Example(NamedTuple):
    """Ids of the passages with their question, and of the answer."""

    inputs: list[list[int]]
    target: list[int]


class Examples:
    """The first passages of each question's ranking, with one of its answers, drawn anew in each epoch."""

    def __init__(self, reader: FusionReader, found: Sequence[Asked], store: PassageStore) -> None:
        self._reader = reader
        self._store = store
        self._asked = [(one, targets) for one in found if len(one.rows) and (targets := self._targets(one))]

    def __len__(self) -> int:
        return len(self._asked)

    def __call__(self, i: int, epoch: int) -> Example:
        one, targets = self._asked[i]
        settings = self._reader.settings
        drawn = np.random.default_rng([settings.seed, epoch, i]).integers(len(targets))
        inputs = passage_inputs(self._reader, self._store, one.question, one.rows[: settings.passages])
        return Example(inputs, self._reader.target_ids(targets[drawn]))

    def _targets(self, one: Asked) -> list[str]:
        """The answers; for a regex what it matches in the first passage of the ranking that it matches in."""
        question = one.question
        if question.answer_kind != "regex":
            return question.answers
        for text in self._store.texts(one.rows):
            if found := answer_spans(question.answers, text, "regex"):
                return [text[found[0].start : found[0].end]]
        return []


def terms(reader: FusionReader, example: Example, hardware: Machine) -> dict[str, Tensor]:
    """`loss`: mean -log-likelihood of the answer's tokens."""
    labels = torch.tensor([example.target], device=reader.model.device)
    with machine.autocast(hardware):
        found = reader.model(**fused(reader.states(example.inputs)), labels=labels).logits.float()
    return {"loss": torch.nn.functional.cross_entropy(found[0], labels[0])}
