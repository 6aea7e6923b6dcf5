"""The extractive reader: an encoder with heads that select a path and a span of its texts. A passage is a path of
length one.

A reader of passages is DPR's (Karpukhin et al., 2020, section 6.1). A reader of paths also predicts the kind of answer
and the supporting sentences, like MDR's (Xiong et al., 2021). Selection and kinds are read from the first token. Token
types, if the encoder has them, are 0 for the question and 1 after it.

MDR's published reader, in the folder that `eadpr convert` makes, has a head `pooler` and none for kinds. By that it is
recognised, and its inputs are marked (`inputs`). It is used here, not trained.
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
from eadpr.readers.inputs import NOWHERE, Input, Marks, Passages, make_input, marked_input, to_ids
from eadpr.readers.scores import KINDS
from eadpr.runtime import files, machine, model_folders, parallel
from eadpr.runtime.machine import Machine
from eadpr.storage.passages import PassageStore
from eadpr.training.encoder import folder_of, position_limit, pretrained
from eadpr.training.padding import batches, pad

HEADS = "heads.safetensors"
MARK = "[unused1]"  # in front of each sentence for MDR's reader
# Per pass, with padding. On a CPU MiniLM reads 20 inputs of SQuAD's lengths so in half the time of one pass.
TOKENS = {"cpu": 512, "cuda": 16_384}


class Logits(NamedTuple):
    """Logits of P inputs, float32: `start`, `end` (P, T), `paths` (P,) and, for readers of paths, `kinds` (P, K) and
    `sentences` (P, T), by token. A sentence's logit is the mean of its tokens', or its mark's for MDR's reader."""

    start: Tensor
    end: Tensor
    paths: Tensor
    kinds: Tensor | None
    sentences: Tensor | None

    def row(self, i: int) -> Self:
        """Return the logits of one input, without the first dimension."""
        return Logits(*(None if part is None else part[i] for part in self))


class ExtractiveReader(torch.nn.Module):
    """An encoder with heads; `marked` for MDR's reader. Raises ValueError for a tokenizer without offsets or special
    tokens, and for an encoder with too few positions."""

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
        self.model, self.tokenizer, self.settings = model, tokenizer, settings
        self.marks = find_marks(tokenizer) if marked else None
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
        """Return the logits; all arguments are (P, T). Token types are ignored if the encoder has none."""
        types = {"token_type_ids": token_type_ids} if getattr(self.model.config, "type_vocab_size", 0) > 1 else {}
        states = self.model(input_ids=input_ids, attention_mask=attention_mask, **types).last_hidden_state
        start_PT, end_PT = self.spans(states).float().unbind(-1)
        pooled = states[:, 0] if self.marks is None else self.pooler(states[:, 0]).tanh()
        paths_P = self.passages(pooled).float().squeeze(-1)
        if not self.settings.of_paths:
            return Logits(start_PT, end_PT, paths_P, None, None)
        kinds_PK = self.kinds(states[:, 0]).float() if self.marks is None else None
        return Logits(start_PT, end_PT, paths_P, kinds_PK, self.sentences(states).float().squeeze(-1))

    def question_ids(self, question: str) -> list[int]:
        text = question.replace("’", "'").strip() if self.marks is None else question.removesuffix("?")
        return to_ids(self.tokenizer, text)[: self.settings.question_tokens]

    def load_passages(self, store: PassageStore) -> Passages:
        mark = None if self.marks is None else self.marks.sentence
        return Passages(self.tokenizer, store, title_tokens=self.settings.title_tokens, mark=mark)

    def inputs(self, question: str, paths: Sequence[Sequence[int]], passages: Passages) -> list[Input]:
        """Return an input of the question and each path, a sequence of rows of passages."""
        question_ids = self.question_ids(question)
        make = make_input if self.marks is None else partial(marked_input, marks=self.marks)
        inputs = []
        for path in paths:
            tokens = [passages.tokens(row) for row in path]
            inputs.append(make(self.tokenizer, question=question_ids, passages=tokens, most=self.settings.tokens))
        return inputs


def find_marks(tokenizer: PreTrainedTokenizerBase) -> Marks:
    """Return the ids of the marks. Raises ValueError if the tokenizer lacks one."""
    ids = [tokenizer.convert_tokens_to_ids(word) for word in (*KINDS[1:], MARK)]
    if tokenizer.unk_token_id in ids:
        raise ValueError(
            f"the tokenizer of {tokenizer.name_or_path or 'the reader'} lacks {', '.join(KINDS[1:])} or {MARK}, which"
            " MDR's reader needs; give that of its ELECTRA (--architecture)"
        )
    return Marks((ids[0], ids[1]), ids[2])


def start(init: Path, settings: Reader) -> ExtractiveReader:
    """Load a trained reader, or put random heads on an encoder, the passage encoder if there are two. Raises ValueError
    for random heads that are not to be trained."""
    name = settings.model or str(init)
    if settings.model is None or model_folders.has_two_sides(name):
        name = str(folder_of(Path(name), "passage"))
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
    """Return a reader with the heads of the file `path`. Raises ValueError for heads of a reader of another kind."""
    weights = load_file(path)
    marked = settings.of_paths and "pooler.weight" in weights
    reader = ExtractiveReader(model, tokenizer, settings, marked=marked)
    if set(weights) != set(heads := _heads(reader)):
        raise ValueError(
            f"{path} holds {', '.join(sorted(weights))}, but a reader of kind {reader.settings.kind} has"
            f" {', '.join(sorted(heads))}; give a reader of this kind, or an encoder"
        )
    for name, value in weights.items():
        heads[name].data.copy_(value)
    return reader


def _heads(reader: ExtractiveReader) -> dict[str, Tensor]:
    return {name: p for name, p in reader.named_parameters() if not name.startswith("model.")}


def save(folder: Path, reader: ExtractiveReader) -> None:
    """Write the encoder in Hugging Face's layout, and the heads, to an existing folder."""
    reader.model.save_pretrained(folder)
    reader.tokenizer.save_pretrained(folder)
    with files.replacing(folder / HEADS) as temporary:
        save_file({name: p.detach().cpu() for name, p in _heads(reader).items()}, temporary)


def compute_logits(reader: ExtractiveReader, inputs: Sequence[Input], hardware: Machine) -> tuple[Logits, Tensor]:
    """Return the logits of the inputs and, (P, T), the place of each token's passage in its path, or NOWHERE."""
    ids, mask = pad([row.ids for row in inputs], reader.tokenizer.pad_token_id)
    question_lengths = torch.tensor([row.question_length for row in inputs])[:, None]
    types = ((torch.arange(ids.shape[1]) >= question_lengths) & mask.bool()).long()
    passage_PT = torch.full(ids.shape, NOWHERE)
    for passage_T, row in zip(passage_PT, inputs, strict=True):
        passage_T[: len(row.ids)] = torch.from_numpy(row.passage_T)
    device = machine.device()
    with machine.autocast(hardware):
        logits = reader(ids.to(device), mask.to(device), types.to(device))
    return logits, passage_PT.to(device)


def group_passes(inputs: Sequence[Input]) -> list[list[int]]:
    """Group inputs of similar length to read together, the longest first; return their places."""
    return [part.tolist() for part in batches([len(row.ids) for row in inputs], TOKENS[machine.device()])]


def score_in_passes(
    reader: ExtractiveReader, inputs: Sequence[Input], hardware: Machine
) -> Iterator[tuple[list[int], Logits, Tensor]]:
    """Yield the places of each pass's inputs and the results of `compute_logits`."""
    groups = group_passes(inputs)
    results = parallel.spread(lambda group: compute_logits(reader, [inputs[i] for i in group], hardware), groups)
    for group, (logits, passage_PT) in zip(groups, results, strict=True):
        yield group, logits, passage_PT
