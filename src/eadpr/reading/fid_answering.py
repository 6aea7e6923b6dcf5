"""What Fusion-in-Decoder answers from the first k passages."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eadpr import machine
from eadpr.machine import Machine
from eadpr.passages import PassageStore
from eadpr.reading.config import Read
from eadpr.reading.fid import FusionReader, fused, passage_inputs
from eadpr.reading.records import Prediction
from eadpr.records import Question


class Answerer:
    """What a reader answers from passages of a store; greedy decoding."""

    def __init__(self, reader: FusionReader, store: PassageStore, settings: Read, hardware: Machine) -> None:
        self._reader = reader
        self._store = store
        self._settings = settings
        self._hardware = hardware

    @torch.inference_mode()
    def __call__(self, question: Question, rows: Sequence[int]) -> list[Prediction]:
        """A prediction for every `top_k`, from rows of passages, best first; each passage is encoded once."""
        inputs = passage_inputs(self._reader, self._store, question, list(rows)[: self._settings.top_k[-1]])
        with machine.autocast(self._hardware):
            states = self._reader.states(inputs)
            return [self._prediction(question, k, states[:k]) for k in self._settings.top_k]

    def _prediction(self, question: Question, top_k: int, states: list[Tensor]) -> Prediction:
        if not states:
            return Prediction(question.id, top_k, "", None, None, None, None, None)
        model, tokenizer = self._reader.model, self._reader.tokenizer
        made = model.generate(
            **fused(states),
            do_sample=False,
            num_beams=1,
            max_new_tokens=self._settings.output_tokens,
            output_scores=True,
            return_dict_in_generate=True,
        )
        scores = model.compute_transition_scores(made.sequences, made.scores, normalize_logits=True)
        answer = tokenizer.decode(made.sequences[0], skip_special_tokens=True).strip()
        return Prediction(question.id, top_k, answer, float(scores.sum()), None, None, None, None)
