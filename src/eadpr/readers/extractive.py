"""The extractive reader: an encoder with heads that select a path, such as a passage, and a span.

A reader of passages is DPR's (Karpukhin et al., 2020, section 6.1). A reader of paths also predicts the kind of answer
and the supporting sentences, like MDR's (Xiong et al., 2021). Selection and kinds are read from the first token. Token
types, if the encoder has them, are 0 for the question and 1 after it.

Shapes: P paths of one question, T tokens, K kinds of answer.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from eadpr.readers.config import Reader
from eadpr.readers.inputs import NOWHERE, Input, Passages, make_input, to_ids
from eadpr.readers.scores import KINDS
from eadpr.runtime import files, machine, model_folders
from eadpr.runtime.machine import Machine
from eadpr.storage.passages import PassageStore
from eadpr.training.encoder import folder_of, pretrained
from eadpr.training.padding import batches, pad
from eadpr.training.pretrained import check_positions, save_whole

HEADS = "heads.safetensors"
# Per pass, with padding. On a CPU MiniLM reads 20 inputs of SQuAD's lengths so in half the time of one pass.
TOKENS = {"cpu": 512, "cuda": 16_384}


class Logits(NamedTuple):
    """Logits of P inputs, float32: `start`, `end` (P, T), `paths` (P,) and, for readers of paths, `kinds` (P, K) and
    `sentences` (P, T), by token. A sentence's logit is the mean of its tokens'."""

    start: Tensor
    end: Tensor
    paths: Tensor
    kinds: Tensor | None
    sentences: Tensor | None

    def row(self, i: int) -> Self:
        return Logits(*(None if part is None else part[i] for part in self))


class ExtractiveReader(torch.nn.Module):
    """An encoder with heads. Raises ValueError for a tokenizer without offsets or [SEP], or too few positions."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, settings: Reader) -> None:
        super().__init__()
        name = model.name_or_path or "the encoder"
        if not tokenizer.is_fast or None in (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id):
            raise ValueError(f"the tokenizer of {name} lacks [CLS], [SEP], [PAD] or offsets; use another encoder")
        check_positions(model, f"{settings.section}.tokens", settings.tokens)
        if hasattr(model, "pooler"):
            model.pooler = None  # unused
        self.model, self.tokenizer, self.settings = model, tokenizer, settings
        sizes = {"spans": 2, "passages": 1}
        if settings.of_paths:
            sizes |= {"kinds": len(KINDS), "sentences": 1}
        heads = {name: torch.nn.Linear(model.config.hidden_size, size) for name, size in sizes.items()}
        for name, head in heads.items():
            torch.nn.init.normal_(head.weight, std=getattr(model.config, "initializer_range", 0.02))
            torch.nn.init.zeros_(head.bias)
            self.add_module(name, head)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Logits:
        """Return the logits; all arguments are (P, T). Token types are ignored if the encoder has none."""
        types = {"token_type_ids": token_type_ids} if getattr(self.model.config, "type_vocab_size", 0) > 1 else {}
        states = self.model(input_ids=input_ids, attention_mask=attention_mask, **types).last_hidden_state
        start_PT, end_PT = self.spans(states).float().unbind(-1)
        paths_P = self.passages(states[:, 0]).float().squeeze(-1)
        if not self.settings.of_paths:
            return Logits(start_PT, end_PT, paths_P, None, None)
        kinds_PK, sentences_PT1 = self.kinds(states[:, 0]).float(), self.sentences(states).float()
        return Logits(start_PT, end_PT, paths_P, kinds_PK, sentences_PT1.squeeze(-1))

    def question_ids(self, question: str) -> list[int]:
        return to_ids(self.tokenizer, question.replace("’", "'").strip())[: self.settings.question_tokens]

    def load_passages(self, store: PassageStore) -> Passages:
        return Passages(self.tokenizer, store, title_tokens=self.settings.question_tokens)

    def inputs(self, question: str, paths: Sequence[Sequence[int]], passages: Passages) -> list[Input]:
        """Return an input of the question and each path, a sequence of rows of passages."""
        ids, most = self.question_ids(question), self.settings.tokens
        return [make_input(self.tokenizer, ids, [passages.tokens(row) for row in path], most) for path in paths]


def start(init: Path, settings: Reader) -> ExtractiveReader:
    """Put random heads on an encoder, the passage encoder if there are two."""
    name = settings.model or str(init)
    if settings.model is None or model_folders.has_two_sides(name):
        name = str(folder_of(Path(name), "passage"))
    torch.manual_seed(settings.seed)
    return ExtractiveReader(*pretrained(name, settings.revision), settings)


def load(folder: Path, settings: Reader) -> ExtractiveReader:
    reader = ExtractiveReader(*pretrained(str(folder)), settings)
    reader.load_state_dict(load_file(folder / HEADS), strict=False)
    return reader.eval()


def save(folder: Path, reader: ExtractiveReader) -> None:
    """Write the encoder in Hugging Face's layout, and the heads, to an existing folder."""
    save_whole(folder, reader.model, reader.tokenizer)
    heads = {name: p.detach().cpu() for name, p in reader.named_parameters() if not name.startswith("model.")}
    with files.replacing(folder / HEADS) as temporary:
        save_file(heads, temporary)


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
