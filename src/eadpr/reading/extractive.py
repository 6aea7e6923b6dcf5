"""The extractive reader: any encoder with a span head and a passage head (Karpukhin et al., 2020, section 6.1).

Input: `[CLS] question [SEP] title [SEP] text`, the text cut at the end; token types 0 for the question and 1 after it,
where the encoder has them.
Shapes: P passages of one question, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import cached_file

from eadpr import files, machine, model_folders, parallel
from eadpr.machine import Machine
from eadpr.passages import PassageStore
from eadpr.reading.config import Reader
from eadpr.records import Span
from eadpr.training.encoder import folder_of, position_limit, pretrained
from eadpr.training.padding import batches, pad

HEADS = "heads.safetensors"
PASSAGES_KEPT = 16_384  # tokenised passages, about 5 kB each
# Of a pass, padding included. CPU: of SQuAD's lengths MiniLM reads 20 so in half the time of all at once.
TOKENS = {"cpu": 512, "cuda": 16_384}


class Logits(NamedTuple):
    """Of P inputs, float32; `start` and `end` (P, T), `passages` (P,)."""

    start: Tensor
    end: Tensor
    passages: Tensor


class Tokens(NamedTuple):
    """Ids of a passage's title and text; `offsets` (N, 2) are those of the text's tokens into the text."""

    title: list[int]
    text: list[int]
    offsets: np.ndarray


class Input(NamedTuple):
    """`text` is where the text's tokens begin, `after` where the question has ended; `offsets` as in `Tokens`, of what
    was cut off too."""

    ids: list[int]
    after: int
    text: int
    offsets: np.ndarray

    def span(self, characters: Span) -> tuple[int, int] | None:
        """First and last token of a piece of the text; None where the input is cut before its end."""
        inside = np.flatnonzero((self.offsets[:, 0] < characters.end) & (self.offsets[:, 1] > characters.start))
        if not len(inside) or self.text + inside[-1] >= len(self.ids):
            return None
        return self.text + int(inside[0]), self.text + int(inside[-1])

    def characters(self, first: int, last: int) -> Span:
        """The piece of the text from one of its tokens to another."""
        return Span(int(self.offsets[first - self.text, 0]), int(self.offsets[last - self.text, 1]))


class ExtractiveReader(torch.nn.Module):
    """Raises ValueError for a tokenizer without offsets or special tokens, and for too few positions."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, settings: Reader) -> None:
        super().__init__()
        name = model.name_or_path or "the encoder"
        if not tokenizer.is_fast:
            raise ValueError(f"the tokenizer of {name} gives no offsets into the text; use one of `tokenizers`")
        if None in (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id):
            raise ValueError(f"the tokenizer of {name} lacks a [CLS], [SEP] or [PAD] token; use another encoder")
        if settings.tokens > position_limit(model):
            raise ValueError(
                f"reader.tokens is {settings.tokens}, but {name} has {position_limit(model)} positions; lower it"
            )
        if hasattr(model, "pooler"):
            model.pooler = None  # unused
        self.model = model
        self.tokenizer = tokenizer
        self.settings = settings
        self.spans = torch.nn.Linear(model.config.hidden_size, 2)
        self.passages = torch.nn.Linear(model.config.hidden_size, 1)
        for head in (self.spans, self.passages):
            torch.nn.init.normal_(head.weight, std=getattr(model.config, "initializer_range", 0.02))
            torch.nn.init.zeros_(head.bias)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Logits:
        """(P, T) each; types are not used by an encoder that has none."""
        types = {"token_type_ids": token_type_ids} if getattr(self.model.config, "type_vocab_size", 0) > 1 else {}
        found = self.model(input_ids=input_ids, attention_mask=attention_mask, **types).last_hidden_state
        start_PT, end_PT = self.spans(found).float().unbind(-1)
        return Logits(start_PT, end_PT, self.passages(found[:, 0]).float().squeeze(-1))

    def question_ids(self, question: str) -> list[int]:
        return self._ids(question.replace("’", "'").strip())[: self.settings.question_tokens]

    def passage_tokens(self, title: str, text: str) -> Tokens:
        found = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        offsets = np.array(found["offset_mapping"], dtype=np.int32).reshape(-1, 2)
        return Tokens(self._ids(title.strip())[: self.settings.question_tokens], found["input_ids"], offsets)

    def input(self, question: Sequence[int], passage: Tokens) -> Input:
        cls, sep = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        before = [cls, *question, sep]
        head = [*before, *passage.title, sep]
        room = self.settings.tokens - len(head)
        return Input(head + passage.text[:room], len(before), len(head), passage.offsets)

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]


def start(init: Path, settings: Reader) -> ExtractiveReader:
    """A trained reader as it is, or one of an encoder, that of the passages where there are two, with random heads.

    Raises ValueError where these are not to be trained.
    """
    if settings.model is None:
        name = str(folder_of(init, "passage"))
    else:
        two = model_folders.has_two_sides(settings.model)
        name = str(folder_of(Path(settings.model), "passage")) if two else settings.model
    torch.manual_seed(settings.seed)
    reader = ExtractiveReader(*pretrained(name, settings.revision), settings)
    optional = {f"_raise_exceptions_for_{what}": False for what in ("missing_entries", "connection_errors")}
    if (heads := cached_file(name, HEADS, revision=settings.revision, **optional)) is not None:
        return _with_heads(reader, Path(heads))
    if settings.steps == 0:
        raise ValueError(
            f"{name} holds no {HEADS}, so it answers nothing before it is trained, but reader.steps is 0; raise it, or"
            " set reader.model to a trained reader"
        )
    return reader


def load(folder: Path, settings: Reader) -> ExtractiveReader:
    return _with_heads(ExtractiveReader(*pretrained(str(folder)), settings), folder / HEADS).eval()


def _with_heads(reader: ExtractiveReader, heads: Path) -> ExtractiveReader:
    for name, value in load_file(heads).items():
        reader.get_parameter(name).data.copy_(value)
    return reader


def save(folder: Path, reader: ExtractiveReader) -> None:
    """Into an existing folder: an encoder in Hugging Face's layout, and the heads beside it."""
    reader.model.save_pretrained(folder)
    for key in ("is_local", "local_files_only"):  # how it was loaded, not what it is
        reader.tokenizer.init_kwargs.pop(key, None)
    reader.tokenizer.save_pretrained(folder)
    heads = {n: p.detach().cpu() for n, p in reader.named_parameters() if not n.startswith("model.")}
    with files.replacing(folder / HEADS) as temporary:
        save_file(heads, temporary)


class Passages:
    """Passages by row, the last ones tokenised kept."""

    def __init__(self, reader: ExtractiveReader, store: PassageStore) -> None:
        self._reader = reader
        self._store = store
        self.tokens = lru_cache(maxsize=PASSAGES_KEPT)(self._tokens)

    def text(self, row: int) -> str:
        return self._store.texts([row])[0]

    def _tokens(self, row: int) -> Tokens:
        return self._reader.passage_tokens(self._store.titles([row])[0], self.text(row))


def logits(reader: ExtractiveReader, inputs: Sequence[Input], hardware: Machine) -> tuple[Logits, Tensor]:
    """Logits of the inputs and, (P, T), which tokens are of the text."""
    ids, mask = pad([given.ids for given in inputs], reader.tokenizer.pad_token_id)
    places = torch.arange(ids.shape[1])
    after, text = (torch.tensor([getattr(given, name) for given in inputs])[:, None] for name in ("after", "text"))
    types = ((places >= after) & mask.bool()).long()
    of_text = (places >= text) & mask.bool()
    device = machine.device()
    with machine.autocast(hardware):
        found = reader(ids.to(device), mask.to(device), types.to(device))
    return found, of_text.to(device)


def passes(inputs: Sequence[Input]) -> list[list[int]]:
    """Which inputs are read together, those of like length, the longest first; by their places among `inputs`."""
    return [part.tolist() for part in batches([len(given.ids) for given in inputs], TOKENS[machine.device()])]


def in_passes(
    reader: ExtractiveReader, inputs: Sequence[Input], hardware: Machine
) -> Iterator[tuple[list[int], Logits, Tensor]]:
    """`logits` of each of the `passes`, with the places of its inputs."""
    parts = passes(inputs)
    found = parallel.spread(lambda part: logits(reader, [inputs[i] for i in part], hardware), parts)
    for part, (of_part, text_PT) in zip(parts, found, strict=True):
        yield part, of_part, text_PT
