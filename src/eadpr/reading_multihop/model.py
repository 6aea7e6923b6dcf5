"""An encoder with four heads (ELECTRA, BERT and their kin): paths, kinds of answer, spans and sentences.

Paths and kinds are read from the first token, a sentence from the mean of its tokens. Weights are safetensors only.
N paths, T tokens, S sentences, D dimensions, K kinds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import cached_file

from eadpr import model_folders
from eadpr.files import write_json
from eadpr.reading_multihop.config import PathLearning, PathReading
from eadpr.reading_multihop.inputs import Batch
from eadpr.reading_multihop.losses import KINDS
from eadpr.training.encoder import folder_of, position_limit, pretrained

SETTINGS, HEADS = "reader.json", "path_heads.safetensors"


class Scores(NamedTuple):
    path_N: Tensor
    kind_NK: Tensor
    start_NT: Tensor
    end_NT: Tensor
    sentence_NS: Tensor


class PathReader(torch.nn.Module):
    """Raises ValueError where the encoder has fewer positions than `settings.input_tokens`."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, settings: PathReading) -> None:
        super().__init__()
        if settings.input_tokens > position_limit(model):
            raise ValueError(
                f"input_tokens must not exceed the {position_limit(model)} positions of"
                f" {model.name_or_path or 'the encoder'}, found {settings.input_tokens}"
            )
        if hasattr(model, "pooler"):
            model.pooler = None  # unused here
        self.model, self.tokenizer, self.settings = model, tokenizer, settings
        width = model.config.hidden_size
        self.heads = torch.nn.ModuleDict(
            {"whole": torch.nn.Linear(width, 1 + len(KINDS)), "span": torch.nn.Linear(width, 2),
             "sentence": torch.nn.Linear(width, 1)}
        )  # fmt: skip

    def forward(self, batch: Batch) -> Scores:
        given = {"input_ids": batch.ids_NT, "attention_mask": batch.mask_NT}
        if getattr(self.model.config, "type_vocab_size", 0) > 1:
            given["token_type_ids"] = batch.second_NT
        states_NTD = self.model(**given).last_hidden_state.float()
        whole = self.heads["whole"](states_NTD[:, 0])
        start_NT, end_NT = self.heads["span"](states_NTD).unbind(2)
        means_NSD = sentence_means(states_NTD, batch.sentence_NT, batch.sentences)
        return Scores(whole[:, 0], whole[:, 1:], start_NT, end_NT, self.heads["sentence"](means_NSD).squeeze(2))


def sentence_means(states_NTD: Tensor, sentence_NT: Tensor, sentences: int) -> Tensor:
    """(N, S, D): the mean over each sentence's tokens, 0 for one without."""
    numbers = torch.arange(sentences, device=sentence_NT.device)
    holds_NST = (sentence_NT.unsqueeze(1) == numbers.view(1, -1, 1)).to(states_NTD.dtype)
    return holds_NST @ states_NTD / holds_NST.sum(2, keepdim=True).clamp(min=1)


def new_reader(name: str, settings: PathReading, *, seed: int, revision: str | None = None) -> PathReader:
    """A hub name's or folder's encoder with random heads."""
    model, tokenizer = pretrained(name, revision)
    torch.manual_seed(seed)
    return PathReader(model, tokenizer, settings)


def start(init: Path, settings: PathLearning) -> PathReader:
    """A trained reader as it is, or one of an encoder, that of the passages where there are two, with random heads.

    Raises ValueError where these are not to be trained.
    """
    if settings.model is None:
        name = str(folder_of(init, "passage"))
    else:
        two = model_folders.has_two_sides(settings.model)
        name = str(folder_of(Path(settings.model), "passage")) if two else settings.model
    reader = new_reader(name, settings.reading, seed=settings.seed, revision=settings.revision)
    optional = {f"_raise_exceptions_for_{what}": False for what in ("missing_entries", "connection_errors")}
    if (heads := cached_file(name, HEADS, revision=settings.revision, **optional)) is not None:
        reader.heads.load_state_dict(load_file(heads))
    elif settings.steps == 0:
        raise ValueError(
            f"{name} holds no {HEADS}, so it answers nothing before it is trained, but path_reader.steps is 0; raise"
            " it, or set path_reader.model to a trained reader of paths"
        )
    return reader


def save(folder: Path, reader: PathReader) -> None:
    """Into the existing folder: the encoder in Hugging Face's layout, beside it the heads and the settings."""
    write_json(folder / SETTINGS, reader.settings.model_dump())
    save_file({name: value.contiguous() for name, value in reader.heads.state_dict().items()}, folder / HEADS)
    tokenizer = reader.tokenizer
    tokenizer.backend_tokenizer.no_truncation()  # state of the last call, which would be saved
    tokenizer.backend_tokenizer.no_padding()
    for key in ("is_local", "local_files_only"):  # how it was loaded, not what it is
        tokenizer.init_kwargs.pop(key, None)
    reader.model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load(folder: Path) -> PathReader:
    """In evaluation mode. Raises FileNotFoundError where the folder is none that `save` wrote."""
    path = folder / SETTINGS
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give the folder of a trained reader of paths")
    settings = PathReading.model_validate(json.loads(path.read_text(encoding="utf-8")))
    reader = PathReader(*pretrained(str(folder)), settings)
    reader.heads.load_state_dict(load_file(folder / HEADS))
    return reader.eval()
