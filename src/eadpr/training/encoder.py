"""Text to vectors: a Hugging Face encoder, its tokenizer and a pooling, of the whole text, its sentences or tokens.

Input forms follow DPR (Karpukhin et al., 2020), where a model says nothing else of itself: question `[CLS] q [SEP]`,
passage `[CLS] title [SEP] text [SEP]` cut longest first, token types all zero. Weights are safetensors only; no code or
pickle of a model is ever run.
Shapes: B texts, T tokens, D dimensions of a vector.
"""

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, assert_never

import torch
from torch import Tensor
from torch.nn.functional import normalize
from transformers import BatchEncoding, PreTrainedTokenizerBase

from eadpr.runtime import machine
from eadpr.runtime.files import write_json
from eadpr.runtime.machine import Machine
from eadpr.runtime.model_folders import sides_differ
from eadpr.text.spans import sentences
from eadpr.training.bert import Bert
from eadpr.training.config import SETTINGS, EncoderSettings, Pooling, ResolvedSettings, settings_of
from eadpr.training.late import token_rows
from eadpr.training.pretrained import check_positions, load_whole, position_limit, save_whole
from eadpr.training.projection import Projection
from eadpr.training.self_description import read_description
from eadpr.training.sentences import MARK, CutPassage, Spans, assign_tokens, pool_sentences

if TYPE_CHECKING:  # importing transformers' models takes seconds
    from transformers import PreTrainedModel

Side = Literal["question", "passage"]
TOKENISED_AT_ONCE = 4096  # texts, where there may be many
INPUTS = ["input_ids", "attention_mask"]  # no token types, so that they are 0 for both texts of a pair


class TextEncoder(torch.nn.Module):
    """A model, its tokenizer and its pooling; one takes the inputs of both sides if it is shared."""

    def __init__(
        self,
        model: "PreTrainedModel | Bert",
        tokenizer: PreTrainedTokenizerBase,
        settings: ResolvedSettings,
        projection: Projection | None = None,
    ) -> None:
        super().__init__()
        name = f"the tokenizer of {tokenizer.name_or_path}"
        if tokenizer.pad_token_id is None:
            raise ValueError(f"{name} has no padding token; use another")
        single, pair = (
            tokenizer(*texts, return_special_tokens_mask=True)["special_tokens_mask"] for texts in ("a", ("a", "b"))
        )
        self.separates_pairs = 1 in pair[1:-1]
        if settings.pooling == "last" and not single[-1]:
            raise ValueError(f"encoder.pooling: last needs a token that ends a text, and {name} writes none; set mean")
        if settings.title == "pair" and not self.separates_pairs:
            raise ValueError(f"encoder.title: pair needs a token between the two, and {name} writes none; set joined")
        if hasattr(model, "pooler"):
            model.pooler = None  # unused; if a checkpoint lacks it, it is random again at every load
        self.model, self.tokenizer, self.projection = model, tokenizer, projection
        self.settings, self.pad_id = settings, tokenizer.pad_token_id
        # Numbers of a text's row: of its vector, or of as many parts as a text may have tokens, each of `token_dim`.
        self.dim, self.token_dim = projection.dim if projection else model.config.hidden_size, None
        if settings.unit != "passage":
            self.token_dim = self.dim
            self.dim *= max(settings.question_tokens, settings.passage_tokens)
        self.unread = 0  # sentences beyond the cut, as far as passages were tokenised
        if settings.unit == "token" and projection is not None:
            raise ValueError("encoder.unit is token, but the encoder has layers behind its pooling; set unit: passage")
        names = ("cls_token_id", "sep_token_id", "bos_token_id", "eos_token_id", "pad_token_id")
        special = {getattr(tokenizer, name, None) for name in names} - {None}
        self.register_buffer("special", torch.tensor(sorted(special)), persistent=False)
        # Decoders would keep the keys and values of every layer.
        self._options = {"use_cache": False} if "use_cache" in signature(model.forward).parameters else {}
        for part, prompt in settings.prompts:
            tokens = getattr(settings, f"{part}_tokens")
            check_positions(model, f"encoder.{part}_tokens", tokens)
            if prompt and len(self.ids([prompt], tokens)[0]) >= tokens:
                raise ValueError(f"encoder.prompts: {prompt!r} fills the {tokens} tokens of a {part}; shorten it")

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(B, T) ids and mask (1 for a token, 0 for padding) -> (B, dim) float32."""
        if self.settings.unit == "passage":
            return self.finish(pool(self.states(input_ids, attention_mask), attention_mask, self.settings.pooling))
        marks, input_ids = input_ids >= MARK, input_ids % MARK
        states = self.states(input_ids, attention_mask)
        keep = attention_mask.bool() & ~torch.isin(input_ids, self.special)
        if self.settings.unit == "sentence":
            means, keep = pool_sentences(states, marks, keep, pool(states, attention_mask, self.settings.pooling))
            states = means if self.projection is None else self.projection(means)
        return token_rows(states, keep, self.dim // self.token_dim)

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the last layer's states of the tokens (B, T, D)."""
        return self.model(input_ids=input_ids, attention_mask=attention_mask, **self._options).last_hidden_state

    def finish(self, pooled: Tensor) -> Tensor:
        """Return the vectors (B, dim) of pooled states (B, D): through the layers behind the pooling, if any."""
        vectors = pooled if self.projection is None else self.projection(pooled)
        return normalize(vectors, dim=-1) if self.settings.similarity == "cosine" else vectors

    def question_ids(self, questions: Sequence[str]) -> list[list[int]]:
        """Return token ids with special tokens, cut to `question_tokens`."""
        return self.ids(self.question_texts(questions), self.settings.question_tokens)

    def question_texts(self, questions: Sequence[str]) -> list[str]:
        """Return questions behind their prompt; where titles are pairs, as in DPR, ’ is read as ', as there."""
        if self.settings.title == "pair":
            questions = [question.replace("’", "'") for question in questions]
        return [self.settings.prompts.question + question.strip() for question in questions]

    def passage_ids(self, titles: Sequence[str], texts: Sequence[str]) -> list[list[int]]:
        """Return token ids of `passage_inputs`, cut to `passage_tokens`, with MARKs where sentences are the unit."""
        if self.settings.unit != "sentence":
            return self.ids(self.passage_inputs(titles, texts), self.settings.passage_tokens)
        spans = [sentences(text) for text in texts]
        passages = [passage.mark() for passage in self.cut_passages(titles, texts, spans)]
        self.unread += sum(map(len, spans)) - sum(token >= MARK for ids in passages for token in ids)
        return passages

    def cut_passages(self, titles: Sequence[str], texts: Sequence[str], spans: Spans) -> list[CutPassage]:
        """Return the tokens of `passage_inputs` with the sentence of each, at the `spans` of the texts."""
        inputs = self.passage_inputs(titles, texts)
        encoded = self.tokenise(inputs, self.settings.passage_tokens, offsets=True) if inputs else BatchEncoding({})
        return assign_tokens(encoded, inputs, texts, spans, self.special.tolist(), lower=self.settings.lowercase)

    def passage_inputs(self, titles: Sequence[str], texts: Sequence[str]) -> list[str | tuple[str, str]]:
        """Return titles and texts in the form that `title` says: the text, stripped, ends each, and the prompt begins
        it. A passage without a title is its text alone."""
        form, prompt = self.settings.title, self.settings.prompts.passage
        inputs: list[str | tuple[str, str]] = []
        for title, text in zip(map(str.strip, titles), map(str.strip, texts), strict=True):
            if form == "none" or not title:
                inputs.append(prompt + text)
            else:
                inputs.append(prompt + f"{title} {text}".strip() if form == "joined" else (prompt + title, text))
        return inputs

    def ids(self, inputs: Sequence[str | tuple[str, str]], length: int) -> list[list[int]]:
        """Return token ids with special tokens of texts and pairs, of a pair the longest cut first to `length`."""
        return self.tokenise(inputs, length)["input_ids"] if inputs else []

    def tokenise(self, inputs: Sequence[str | tuple[str, str]], length: int, *, offsets: bool = False) -> BatchEncoding:
        """Return ids of at least one text or pair and, if asked for, the tokens' `offset_mapping`."""
        if self.settings.lowercase:
            inputs = [text.lower() if isinstance(text, str) else tuple(map(str.lower, text)) for text in inputs]
        options = {"max_length": length, "return_offsets_mapping": offsets, "verbose": False}
        options |= {"return_attention_mask": False, "return_token_type_ids": False}
        return self.tokenizer(inputs, truncation="longest_first", **options)


def pool(states: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """Return one vector a text, (B, D) float32, of states (B, T, D); the mask (B, T) is 1 for a token, 0 for padding.

    For `last` the padding may stand on either side.
    """
    match pooling:
        case "mean":
            weights = mask.unsqueeze(-1).float()
            return (states.float() * weights).sum(1) / weights.sum(1)
        case "cls":
            return states[:, 0].float()
        case "last":
            places = mask.shape[1] - 1 - mask.flip(1).argmax(1)
            return states[torch.arange(len(states), device=states.device), places].float()
        case _:
            assert_never(pooling)


class Encoders(NamedTuple):
    """Question and passage encoder, the same object if it is shared."""

    question: TextEncoder
    passage: TextEncoder

    def to(self, device: str) -> Self:
        for encoder in self:
            encoder.to(device)
        return self

    def place(self, hardware: Machine) -> Self:
        """Move both to the device, to compute states under `machine.autocast`; the layers behind these stay."""
        for encoder in self:
            machine.place_model(encoder.model, hardware, inference=True)
        return self.to(machine.device())


def folder_of(folder: Path, side: Side) -> Path:
    return folder / f"{side}_encoder"


def pretrained(
    name: str, revision: str | None = None, *, setting: str = "the encoder", weights: bool = True
) -> "tuple[PreTrainedModel | Bert, PreTrainedTokenizerBase]":
    """Load an encoder by `load_whole`; raises ValueError for an encoder-decoder. Errors name the key `setting`."""
    options = {"revision": revision, "weights": weights, "model_input_names": INPUTS}
    model, tokenizer = load_whole(name, "AutoModel", setting=setting, **options)
    if model.config.is_encoder_decoder:
        raise ValueError(f"{setting} {name!r} is an encoder-decoder; choose an encoder such as bert-base-uncased")
    return model, tokenizer


def load_pretrained(
    name: str, overrides: EncoderSettings, *, revision: str | None = None, setting: str, weights: bool = True
) -> TextEncoder:
    """Load the one encoder of a folder or hub name as it says of itself, with `overrides` in the place of its settings;
    without `weights` it computes nothing, but all that does not depend on them is checked."""
    description = read_description(name, revision, setting=setting)
    settings = overrides.resolve(description.settings)
    model, tokenizer = pretrained(name, revision, setting=setting, weights=weights)
    # An override is not cut, but refused where it is too long.
    most = min(position_limit(model), tokenizer.model_max_length)
    for key in ("question_tokens", "passage_tokens"):
        if getattr(overrides, key) == "auto" and getattr(settings, key) > most:
            settings = settings.model_copy(update={key: most})
    projection = Projection.load(description.dense) if description.dense else None
    return TextEncoder(model, tokenizer, settings, projection)


def load(folder: Path, side: Side, settings: EncoderSettings | None = None) -> TextEncoder:
    """Load the encoder of one side of a model folder, in evaluation mode, with its saved settings where `settings` says
    nothing else. With AUTO it makes one vector of a text, also where tokens are its unit."""
    saved = settings_of(folder)
    path = folder_of(folder, side)
    model, tokenizer = pretrained(str(path))
    dense = read_description(str(path)).dense
    projection = Projection.load(dense) if dense else None
    return TextEncoder(model, tokenizer, settings.resolve(saved) if settings else saved, projection).eval()


def load_pair(folder: Path, settings: EncoderSettings | None = None) -> Encoders:
    """Load both encoders, one object if shared; raises ValueError for a shared one from two different sides."""
    settings = settings or settings_of(folder)
    passage = load(folder, "passage", settings)
    if not settings.shared:
        return Encoders(load(folder, "question", settings), passage)
    if sides_differ(str(folder)):
        raise ValueError(
            f"the encoders of both sides in {folder} differ; set encoder.shared or two_hop.shared to false"
        )
    return Encoders(passage, passage)


def save(folder: Path, question: TextEncoder, passage: TextEncoder) -> None:
    """Write both sides into the existing `folder`: Hugging Face layout, which sentence-transformers reads as well."""
    settings = passage.settings
    write_json(folder / SETTINGS, settings.model_dump(exclude_defaults=True))
    _save_side(folder_of(folder, "question"), question, settings.question_tokens)
    _save_side(folder_of(folder, "passage"), passage, settings.passage_tokens)


def _save_side(folder: Path, encoder: TextEncoder, max_tokens: int) -> None:
    """Write a side and sentence-transformers' files, in the form that its older releases read too."""
    settings, encoder.tokenizer.model_max_length = encoder.settings, max_tokens
    save_whole(folder, encoder.model, encoder.tokenizer)
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    if encoder.projection is not None:
        modules += encoder.projection.save(folder)
    if settings.similarity == "cosine":
        modules.append((f"{len(modules)}_Normalize", "Normalize"))
    prompts = {"query": settings.prompts.question, "document": settings.prompts.passage}
    pooling = {
        "pooling_mode_cls_token": settings.pooling == "cls",
        "pooling_mode_mean_tokens": settings.pooling == "mean",
    }
    if settings.pooling == "last":
        pooling["pooling_mode_lasttoken"] = True
    contents = {
        "modules": [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(modules)
        ],
        "sentence_bert_config": {"max_seq_length": max_tokens, "do_lower_case": settings.lowercase},
        "config_sentence_transformers": {
            "similarity_fn_name": settings.similarity,
            "prompts": prompts if any(prompts.values()) else {},
        },
        "1_Pooling/config": {"word_embedding_dimension": encoder.model.config.hidden_size, **pooling},
    }
    for name, content in contents.items():
        write_json(folder / f"{name}.json", content)
