"""The extractive reader: any encoder with heads that select a path and a span of its texts; a passage is a path of one.

Of passages as DPR's reader (Karpukhin et al., 2020, section 6.1); of paths it also tells the kind of answer and the
supporting sentences, as MDR's (Xiong et al., 2021). Selection and kinds are read from the first token. Token types are
0 for the question and 1 after it, where the encoder has them.

MDR's own reader, as `stages.convert` makes a folder of it, has the head `pooler` and none of kinds. That tells that its
inputs are marked (`inputs`). It is read here, not trained.
Shapes: P paths of one question, T tokens, K kinds of answer.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import cached_file

from eadpr.readers.config import Reader
from eadpr.readers.inputs import NOWHERE, Input, Marks, Passages, ids_of, make_input, marked_input
from eadpr.readers.scores import KINDS
from eadpr.runtime import files, machine, model_folders, parallel
from eadpr.runtime.machine import Machine
from eadpr.storage.passages import PassageStore
from eadpr.training.encoder import folder_of, position_limit, pretrained
from eadpr.training.padding import batches, pad

HEADS = "heads.safetensors"
MARK = "[unused1]"  # MDR's, before each sentence
# Of a pass, padding included. CPU: of SQuAD's lengths MiniLM reads 20 so in half the time of all at once.
TOKENS = {"cpu": 512, "cuda": 16_384}


class Logits(NamedTuple):
    """Of P inputs, float32; `start`, `end` (P, T), `paths` (P,), of readers of paths too `kinds` (P, K) and
    `sentences` (P, T), by token: that of a sentence is the mean of its tokens', and MDR's that of its mark."""

    start: Tensor
    end: Tensor
    paths: Tensor
    kinds: Tensor | None
    sentences: Tensor | None

    def at(self, i: int) -> Self:
        """Those of one input, without the first dimension."""
        return Logits(*(None if part is None else part[i] for part in self))


class ExtractiveReader(torch.nn.Module):
    """`marked`: MDR's. Raises ValueError for a tokenizer without offsets or special tokens, and for too few
    positions."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, settings: Reader, *, marked: bool = False
    ) -> None:
        super().__init__()
        name = model.name_or_path or "the encoder"
        if not tokenizer.is_fast:
            raise ValueError(f"the tokenizer of {name} gives no offsets into the text; use one of `tokenizers`")
        if None in (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id):
            raise ValueError(f"the tokenizer of {name} lacks a [CLS], [SEP] or [PAD] token; use another encoder")
        if settings.tokens > position_limit(model):
            raise ValueError(
                f"{settings.section}.tokens is {settings.tokens}, but {name} has {position_limit(model)} positions;"
                " lower it"
            )
        if hasattr(model, "pooler"):
            model.pooler = None  # unused
        self.model = model
        self.tokenizer = tokenizer
        self.settings = settings
        self.marks = marks_of(tokenizer) if marked else None
        width = model.config.hidden_size
        self.spans = torch.nn.Linear(width, 2)
        self.passages = torch.nn.Linear(width, 1)
        heads = [self.spans, self.passages]
        if marked:
            self.pooler, self.sentences = torch.nn.Linear(width, width), torch.nn.Linear(width, 1)
            heads += [self.pooler, self.sentences]
        elif settings.of_paths:
            self.kinds, self.sentences = torch.nn.Linear(width, len(KINDS)), torch.nn.Linear(width, 1)
            heads += [self.kinds, self.sentences]
        for head in heads:
            torch.nn.init.normal_(head.weight, std=getattr(model.config, "initializer_range", 0.02))
            torch.nn.init.zeros_(head.bias)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Logits:
        """(P, T) each; types are not used by an encoder that has none."""
        types = {"token_type_ids": token_type_ids} if getattr(self.model.config, "type_vocab_size", 0) > 1 else {}
        found = self.model(input_ids=input_ids, attention_mask=attention_mask, **types).last_hidden_state
        start_PT, end_PT = self.spans(found).float().unbind(-1)
        pooled = found[:, 0] if self.marks is None else self.pooler(found[:, 0]).tanh()
        paths_P = self.passages(pooled).float().squeeze(-1)
        if not self.settings.of_paths:
            return Logits(start_PT, end_PT, paths_P, None, None)
        kinds_PK = self.kinds(found[:, 0]).float() if self.marks is None else None
        return Logits(start_PT, end_PT, paths_P, kinds_PK, self.sentences(found).float().squeeze(-1))

    def question_ids(self, question: str) -> list[int]:
        asked = question.replace("’", "'").strip() if self.marks is None else question.removesuffix("?")
        return ids_of(self.tokenizer, asked)[: self.settings.question_tokens]

    def passages_of(self, store: PassageStore) -> Passages:
        mark = None if self.marks is None else self.marks.sentence
        return Passages(self.tokenizer, store, title_tokens=self.settings.title_tokens, mark=mark)

    def inputs(self, question: str, paths: Sequence[Sequence[int]], passages: Passages) -> list[Input]:
        """Pairs the question with each path, which is rows of passages: an input for each."""
        asked = self.question_ids(question)
        of_paths = ([passages.tokens(row) for row in path] for path in paths)
        make = make_input if self.marks is None else partial(marked_input, marks=self.marks)
        return [make(self.tokenizer, question=asked, passages=own, most=self.settings.tokens) for own in of_paths]


def marks_of(tokenizer: PreTrainedTokenizerBase) -> Marks:
    """Raises ValueError for a tokenizer that lacks one of these."""
    ids = [tokenizer.convert_tokens_to_ids(word) for word in (*KINDS[1:], MARK)]
    if tokenizer.unk_token_id in ids:
        raise ValueError(
            f"the tokenizer of {tokenizer.name_or_path or 'the reader'} lacks {', '.join(KINDS[1:])} or {MARK}, which"
            " MDR's reader needs; give that of its ELECTRA (--architecture)"
        )
    return Marks((ids[0], ids[1]), ids[2])


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
    encoder = pretrained(name, settings.revision)
    optional = {f"_raise_exceptions_for_{what}": False for what in ("missing_entries", "connection_errors")}
    if (heads := cached_file(name, HEADS, revision=settings.revision, **optional)) is not None:
        reader = _with_heads(*encoder, settings, Path(heads))
        if reader.marks is not None and settings.steps != 0:
            raise ValueError(
                f"{name} is MDR's reader, which is not trained here, but {settings.section}.steps is {settings.steps};"
                " set it to 0"
            )
        return reader
    if settings.steps == 0:
        raise ValueError(
            f"{name} holds no {HEADS}, so it answers nothing before it is trained, but {settings.section}.steps is 0;"
            f" raise it, or set {settings.section}.model to a trained reader"
        )
    return ExtractiveReader(*encoder, settings)


def load(folder: Path, settings: Reader) -> ExtractiveReader:
    return _with_heads(*pretrained(str(folder)), settings, folder / HEADS).eval()


def _with_heads(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, settings: Reader, path: Path
) -> ExtractiveReader:
    """Raises ValueError for heads of a reader of another kind."""
    found = load_file(path)
    marked = settings.of_paths and "pooler.weight" in found
    reader = ExtractiveReader(model, tokenizer, settings, marked=marked)
    if set(found) != set(heads := _heads(reader)):
        raise ValueError(
            f"{path} holds {', '.join(sorted(found))}, but a reader of kind {reader.settings.kind} has"
            f" {', '.join(sorted(heads))}; give a reader of this kind, or an encoder"
        )
    for name, value in found.items():
        heads[name].data.copy_(value)
    return reader


def _heads(reader: ExtractiveReader) -> dict[str, Tensor]:
    return {name: p for name, p in reader.named_parameters() if not name.startswith("model.")}


def save(folder: Path, reader: ExtractiveReader) -> None:
    """Into an existing folder: an encoder in Hugging Face's layout, and the heads beside it."""
    reader.model.save_pretrained(folder)
    reader.tokenizer.save_pretrained(folder)
    with files.replacing(folder / HEADS) as temporary:
        save_file({name: p.detach().cpu() for name, p in _heads(reader).items()}, temporary)


def logits(reader: ExtractiveReader, inputs: Sequence[Input], hardware: Machine) -> tuple[Logits, Tensor]:
    """Logits of the inputs and, (P, T), which passage of its path each token's text is of, or NOWHERE."""
    ids, mask = pad([given.ids for given in inputs], reader.tokenizer.pad_token_id)
    after = torch.tensor([given.after for given in inputs])[:, None]
    types = ((torch.arange(ids.shape[1]) >= after) & mask.bool()).long()
    passage_PT = torch.full(ids.shape, NOWHERE)
    for row, given in zip(passage_PT, inputs, strict=True):
        row[: len(given.ids)] = torch.from_numpy(given.passage_T)
    device = machine.device()
    with machine.autocast(hardware):
        found = reader(ids.to(device), mask.to(device), types.to(device))
    return found, passage_PT.to(device)


def passes(inputs: Sequence[Input]) -> list[list[int]]:
    """Which inputs are read together, those of like length, the longest first; by their places among `inputs`."""
    return [part.tolist() for part in batches([len(given.ids) for given in inputs], TOKENS[machine.device()])]


def in_passes(
    reader: ExtractiveReader, inputs: Sequence[Input], hardware: Machine
) -> Iterator[tuple[list[int], Logits, Tensor]]:
    """`logits` of each of the `passes`, with the places of its inputs."""
    parts = passes(inputs)
    found = parallel.spread(lambda part: logits(reader, [inputs[i] for i in part], hardware), parts)
    for part, (of_part, passage_PT) in zip(parts, found, strict=True):
        yield part, of_part, passage_PT
