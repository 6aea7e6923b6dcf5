"""Fusion-in-Decoder (Izacard and Grave, 2021): a T5 whose encoder reads each passage with the question by itself, and
whose decoder attends to all of them at once and writes the answer.

Shapes: P passages of one question, T tokens of one, N tokens of all, D dimensions of a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import BaseModelOutput

from eadpr import machine as machines
from eadpr.machine import Machine
from eadpr.passages import PassageStore
from eadpr.reading.config import Reader
from eadpr.reading.lessons import NOTHING_TO_LEARN
from eadpr.reading.selection import QuestionPaths
from eadpr.records import Question
from eadpr.supervision import qa_model
from eadpr.supervision.annotator_manifest import read_manifest
from eadpr.text import answer_spans
from eadpr.training.padding import batches, pad

FORM = "question: {question} title: {title} context: {text}"
TOKEN_BUDGET = 8_192  # of an encoder pass, padding included; decides the last bits of the states
TARGET_TOKENS = 64  # longer answers are learnt up to there


class FusionReader(torch.nn.Module):
    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, settings: Reader) -> None:
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.settings = settings

    def input_ids(self, question: str, title: str, text: str) -> list[int]:
        """Ids of one passage in FORM, cut at the end to `tokens`."""
        return self._ids(FORM.format(question=question, title=title, text=text), self.settings.tokens)

    def target_ids(self, answer: str) -> list[int]:
        return self._ids(answer, TARGET_TOKENS)

    def _ids(self, text: str, most: int) -> list[int]:
        cased = text.lower() if self.settings.lowercase else text
        return self.tokenizer(cased, truncation=True, max_length=most, verbose=False).input_ids

    def states(self, ids: Sequence[Sequence[int]]) -> list[Tensor]:
        """(T, D) states of each passage in the order given; those of like length share a pass, padding is left out."""
        found: dict[int, Tensor] = {}
        for part in batches([len(row) for row in ids], TOKEN_BUDGET):
            input_ids, mask = pad([ids[i] for i in part], self.tokenizer.pad_token_id)
            device = self.model.device
            states_PTD = self.model.get_encoder()(
                input_ids=input_ids.to(device), attention_mask=mask.to(device)
            ).last_hidden_state
            found |= {int(i): states[: len(ids[i])] for i, states in zip(part, states_PTD, strict=True)}
        return [found[i] for i in range(len(ids))]


def fused(states: Sequence[Tensor]) -> dict[str, Tensor | BaseModelOutput]:
    """What the decoder gets of the states of passages: all of them, (1, N, D), in their order."""
    states_1ND = torch.cat(list(states))[None]
    mask_1N = torch.ones(states_1ND.shape[:2], dtype=torch.int64, device=states_1ND.device)
    return {"encoder_outputs": BaseModelOutput(last_hidden_state=states_1ND), "attention_mask": mask_1N}


def start(init: Path, settings: Reader) -> FusionReader:
    """The T5 of `model`, or the first one that the stage `annotator` left in the folder `init`."""
    if settings.model is not None:
        found = qa_model.load(settings.model, revision=settings.revision, setting="reader.model")
    else:
        manifest = read_manifest(init)
        if not manifest.models:
            raise ValueError(
                f"{init} holds no model (annotator.model: none) that a reader of kind fid could start from; set"
                " annotator.model, or reader.model to a T5"
            )
        found = qa_model.load_annotator(init, manifest, 0)
    reader = FusionReader(*found, settings)
    for part in reader.modules():  # T5 applies this one as a function, where `set_dropout` does not see it
        if isinstance(getattr(part, "dropout", None), float):
            part.dropout = settings.attention_dropout
    return reader


def load(folder: Path, settings: Reader) -> FusionReader:
    return FusionReader(*qa_model.load(str(folder)), settings).eval()


def save(folder: Path, reader: FusionReader) -> None:
    for key in ("is_local", "local_files_only"):  # how it was loaded, not what it is
        reader.tokenizer.init_kwargs.pop(key, None)
    qa_model.save(folder, reader.model, reader.tokenizer)


def passage_inputs(
    reader: FusionReader, store: PassageStore, question: Question, rows: Sequence[int] | np.ndarray
) -> list[list[int]]:
    """Ids of each passage, by row, with the question."""
    places = [int(row) for row in rows]
    passages = zip(store.titles(places), store.texts(places), strict=True)
    return [reader.input_ids(question.question, title, text) for title, text in passages]


class FusionExample(NamedTuple):
    """Ids of the passages with their question, and of the answer."""

    inputs: list[list[int]]
    target: list[int]


class FusionExamples:
    """What Fusion-in-Decoder learns from: the first passages of each question's ranking, with one of its answers, drawn
    anew in each epoch."""

    why_none = NOTHING_TO_LEARN

    def __init__(self, reader: FusionReader, found: Sequence[QuestionPaths], store: PassageStore, _: Path) -> None:
        self._reader = reader
        self._store = store
        self._asked = [(one, targets) for one in found if one.paths and (targets := self._targets(one))]

    def __len__(self) -> int:
        return len(self._asked)

    def __call__(self, i: int, epoch: int) -> FusionExample:
        one, targets = self._asked[i]
        settings = self._reader.settings
        drawn = np.random.default_rng([settings.seed, epoch, i]).integers(len(targets))
        inputs = passage_inputs(self._reader, self._store, one.question, one.rows[: settings.passages])
        return FusionExample(inputs, self._reader.target_ids(targets[drawn]))

    def _targets(self, one: QuestionPaths) -> list[str]:
        """The answers; for a regex what it matches in the first passage of the ranking that it matches in."""
        question = one.question
        if question.answer_kind != "regex":
            return question.answers
        for text in self._store.texts(one.rows):
            if found := answer_spans(question.answers, text, "regex"):
                return [text[found[0].start : found[0].end]]
        return []

    def counts(self) -> dict[str, int]:
        return {}


def fusion_terms(reader: FusionReader, example: FusionExample, hardware: Machine) -> dict[str, Tensor]:
    """`loss`: mean -log-likelihood of the answer's tokens."""
    labels = torch.tensor([example.target], device=reader.model.device)
    with machines.autocast(hardware):
        found = reader.model(**fused(reader.states(example.inputs)), labels=labels).logits.float()
    return {"loss": torch.nn.functional.cross_entropy(found[0], labels[0])}
