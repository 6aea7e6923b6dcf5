"""Fusion-in-Decoder (Izacard and Grave, 2021): the encoder of a T5 reads each passage with the question separately, and
its decoder attends to all of them at once and writes the answer.

Shapes: P passages of one question, T tokens of one, N tokens of all, D dimensions of a state.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import BaseModelOutput

from eadpr.readers.config import Reader
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Question
from eadpr.supervision import qa_model
from eadpr.supervision.manifest import read_manifest
from eadpr.training.padding import batches, pad
from eadpr.training.pretrained import save_whole

FORM = "question: {question} title: {title} context: {text}"
TOKEN_BUDGET = 8_192  # of an encoder pass, with padding; decides the last bits of the states
TARGET_TOKENS = 64  # longer answers are cut


class FusionReader(torch.nn.Module):
    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, settings: Reader) -> None:
        super().__init__()
        self.model, self.tokenizer, self.settings = model, tokenizer, settings

    def input_ids(self, question: str, title: str, text: str) -> list[int]:
        """Return the ids of one passage in FORM, cut at the end to `tokens`."""
        return self.ids(FORM.format(question=question, title=title, text=text), self.settings.tokens)

    def ids(self, text: str, most: int) -> list[int]:
        cased = text.lower() if self.settings.lowercase else text
        return self.tokenizer(cased, truncation=True, max_length=most, verbose=False).input_ids

    def states(self, ids: Sequence[Sequence[int]]) -> list[Tensor]:
        """Return the states (T, D) of each passage without padding; passages of similar length share a pass."""
        states: dict[int, Tensor] = {}
        encoder, device = self.model.get_encoder(), self.model.device
        for part in batches([len(row) for row in ids], TOKEN_BUDGET):
            input_ids, mask = pad([ids[i] for i in part], self.tokenizer.pad_token_id)
            states_PTD = encoder(input_ids=input_ids.to(device), attention_mask=mask.to(device)).last_hidden_state
            for i, states_TD in zip(part.tolist(), states_PTD, strict=True):
                states[i] = states_TD[: len(ids[i])]
        return [states[i] for i in range(len(ids))]


def decoder_inputs(states: Sequence[Tensor]) -> dict[str, Tensor | BaseModelOutput]:
    """Return the decoder's inputs: the states of all passages in order, (1, N, D), and their mask."""
    states_1ND = torch.cat(list(states))[None]
    mask_1N = torch.ones(states_1ND.shape[:2], dtype=torch.int64, device=states_1ND.device)
    return {"encoder_outputs": BaseModelOutput(last_hidden_state=states_1ND), "attention_mask": mask_1N}


def start(init: Path, settings: Reader) -> FusionReader:
    """Load the T5 of `model`, or the first one of the annotator in the folder `init`."""
    if settings.model is not None:
        base = qa_model.load(settings.model, revision=settings.revision, setting="reader.model")
    else:
        manifest = read_manifest(init)
        if not manifest.models or manifest.relevance:
            raise ValueError(f"{init} holds no model (annotator.model: {manifest.source}); set reader.model to a T5")
        base = qa_model.load_annotator(init, manifest, 0)
    reader = FusionReader(*base, settings)
    for part in reader.modules():  # T5 applies this one as a function, where `set_dropout` does not see it
        if isinstance(getattr(part, "dropout", None), float):
            part.dropout = settings.attention_dropout
    return reader


def load(folder: Path, settings: Reader) -> FusionReader:
    return FusionReader(*qa_model.load(str(folder)), settings).eval()


def save(folder: Path, reader: FusionReader) -> None:
    save_whole(folder, reader.model, reader.tokenizer)


def tokenize_passages(
    reader: FusionReader, store: PassageStore, question: Question, rows: Sequence[int]
) -> list[list[int]]:
    """Return the ids of the question with each of the passages, which are rows of the store."""
    passages = zip(store.titles(rows), store.texts(rows), strict=True)
    return [reader.input_ids(question.question, title, text) for title, text in passages]
