"""Published DPR checkpoints to a model folder, without running anything that a checkpoint may hold.

A model folder with pickled weights (`pytorch_model.bin`, whole or in parts) becomes one with safetensors; those of
Fusion-in-Decoder's readers lie in two wrappers more than T5's (`encoder.encoder.block.0.module.layer`).
It reads DPR's own `.cp` (a pickled `CheckpointState`, first of whose fields are the weights, `question_model.*` and
`ctx_model.*`) and Hugging Face's DPRQuestionEncoder and DPRContextEncoder (`.bin` or `.safetensors`, one file a side).
"""

import json
import pickle
import re
import shutil
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoConfig, AutoModel, AutoTokenizer, PretrainedConfig, PreTrainedTokenizerBase

from eadpr.runtime import files
from eadpr.runtime.model_folders import READ
from eadpr.training.config import EncoderSettings
from eadpr.training.encoder import INPUTS, Side, TextEncoder, save

DPR = EncoderSettings(
    pooling="cls", shared=False, question_tokens=256, passage_tokens=256
)  # as all of them were trained
PREFIXES: dict[Side, tuple[str, ...]] = {
    "question": ("question_model.", "question_encoder.bert_model."),
    "passage": ("ctx_model.", "ctx_encoder.bert_model."),
}
UNUSED = re.compile(r"pooler\.|embeddings\.position_ids$")  # DPR takes the first state itself; ids are 0, 1, 2, …
TOKENIZERS, TOKENIZER_FILES = (".model", ".spm"), ("tokenizer.json", "vocab.txt", "vocab.json")
SHOWN = 5  # keys that an error names; it counts the others
# What torch's reader raises for bytes that are no pickle, or are cut off.
UNREADABLE = (
    pickle.UnpicklingError, RuntimeError, EOFError, LookupError, ValueError, TypeError, AttributeError, struct.error,
)  # fmt: skip


class CheckpointState(tuple):
    """What DPR's class of this name is loaded as: its fields in order, without its code."""

    def __new__(cls, *fields: Any) -> Self:
        return super().__new__(cls, fields)


def convert(checkpoints: Sequence[Path], out: Path, *, architecture: str) -> int:
    """Write the folder `out` from one file with both sides, or one for each; returns the number of parameters.

    `architecture`: the model, by hub name or folder, whose config and tokenizer the encoders have; its weights are not
    read. Memory: the files whole, a `.cp` with the state of its optimiser. Raises ValueError for a file with anything
    but tensors and plain values in it, and for weights that are missing, not known, or of another shape.
    """
    if out.exists():
        raise ValueError(f"{out} exists; delete it, or choose another folder for the converted encoders")
    found: dict[str, Tensor] = {}
    for path in checkpoints:
        weights = read_weights(path)
        if twice := sorted(found.keys() & weights.keys()):
            raise ValueError(f"{path} holds weights that an earlier file holds too: {named(twice)}")
        found |= weights
    said = ", ".join(map(str, checkpoints))
    prefix_of = {side: _prefix(side, found, said) for side in PREFIXES}
    if unknown := sorted(key for key in found if not key.startswith(tuple(prefix_of.values()))):
        raise ValueError(f"{said}: unknown weights {named(unknown)}; expected {' and '.join(prefix_of.values())}*")
    config, tokenizer = architecture_of(architecture)
    encoders = []
    for side, prefix in prefix_of.items():
        model = AutoModel.from_config(config, trust_remote_code=False, dtype=torch.float32)
        encoder = TextEncoder(model, tokenizer, DPR, side)
        own = {key.removeprefix(prefix): value for key, value in found.items() if key.startswith(prefix)}
        fill(encoder.model, own, said, prefix, architecture)
        encoders.append(encoder)
    with files.new_folder(out) as folder:
        save(folder, *encoders)
    return sum(parameter.numel() for encoder in encoders for parameter in encoder.parameters())


def convert_folder(source: Path, out: Path, architecture: str | None = None) -> int:
    """Write the folder `out` as `source` is, config and tokenizer, with its `*.bin` weights as safetensors; returns the
    number of parameters. Memory: the largest file twice. Errors are those of `convert`.

    Where the folder has no tokenizer, as FiD's have not, it gets that of the `architecture`. What loads the folder
    tells whether the weights are all there.
    """
    if out.exists():
        raise ValueError(f"{out} exists; delete it, or choose another folder for the converted model")
    parts = sorted(source.glob("pytorch_model*.bin"))
    if not parts or not (source / "config.json").is_file():
        raise ValueError(f"{source} is no model folder with pickled weights: config.json and pytorch_model*.bin")
    if (source / "modules.json").exists():
        raise ValueError(f"{source} is sentence-transformers' own; load it there and save it anew, as safetensors")
    kind = json.loads((source / "config.json").read_text(encoding="utf-8")).get("model_type")
    tokenizer = None
    if not any(path.suffix in TOKENIZERS or path.name in TOKENIZER_FILES for path in source.iterdir()):
        if architecture is None:
            raise ValueError(f"{source} has no tokenizer; name the model that it was trained from (--architecture)")
        of, tokenizer = architecture_of(architecture)
        if of.model_type != kind:
            raise ValueError(f"{source} is a {kind}, and {architecture} (--architecture) a {of.model_type}")
    index: dict[str, str] = {}
    count = 0
    with files.new_folder(out) as folder:
        for path in sorted(source.iterdir()):
            if path.suffix in READ and path.suffix != ".safetensors" and not path.name.endswith(".bin.index.json"):
                shutil.copyfile(path, folder / path.name)
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)
        for number, path in enumerate(parts, 1):
            name = f"model-{number:05d}-of-{len(parts):05d}.safetensors" if len(parts) > 1 else "model.safetensors"
            weights = read_weights(path)
            if kind == "t5":
                weights = {_unwrapped(key): value for key, value in weights.items()}
            # Tied weights are views of one tensor, which safetensors does not write.
            save_file({key: value.clone() for key, value in weights.items()}, folder / name, {"format": "pt"})
            index |= dict.fromkeys(weights, name)
            count += sum(value.numel() for value in weights.values())
        if len(parts) > 1:
            listed = {"metadata": {}, "weight_map": index}
            files.write_json(folder / "model.safetensors.index.json", listed)
    return count


def _unwrapped(key: str) -> str:
    """T5's name of a weight of FiD's encoder; every other name as it is."""
    inner = key.removeprefix("encoder.")
    return key if not inner.startswith("encoder.") else re.sub(r"\.block\.(\d+)\.module\.", r".block.\1.", inner)


def read_weights(path: Path) -> dict[str, Tensor]:
    """The weights by name; what stands beside them in a `CheckpointState` is dropped."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file")
    found = _loaded(path)
    if isinstance(found, CheckpointState):
        found = found[0] if found else None
    elif isinstance(found, Mapping) and "model_dict" in found:
        found = found["model_dict"]
    if not isinstance(found, Mapping) or not found:
        raise ValueError(f"{path} holds no weights by name, but {type(found).__name__}; give DPR's .cp or a state dict")
    for key, value in found.items():
        if not isinstance(value, Tensor):
            raise ValueError(
                f"{path}: {key} is {type(value).__name__}, expected a tensor; give DPR's .cp or a state dict"
            )
    return dict(found)


def _loaded(path: Path) -> Any:
    unreadable = f"{path} is not a checkpoint that can be read safely"
    if path.suffix == ".safetensors":
        try:
            return load_file(path)
        except SafetensorError as error:
            raise ValueError(f"{unreadable}: {error}") from error
    try:
        with torch.serialization.safe_globals([(CheckpointState, "dpr.utils.model_utils.CheckpointState")]):
            return torch.load(path, map_location="cpu", weights_only=True)
    except UNREADABLE as error:
        if named := re.search(r"GLOBAL:? (?:GLOBAL )?([\w.]+)", str(error), re.IGNORECASE):
            raise ValueError(
                f"{path} holds {named[1]}, which is neither a tensor nor a plain value and could run code; where the"
                " file was made, save the weights alone: torch.save(model.state_dict(), FILE)"
            ) from error
        raise ValueError(f"{unreadable} (torch.load with weights_only=True); is the download complete?") from error


def _prefix(side: Side, found: Mapping[str, Tensor], said: str) -> str:
    for prefix in PREFIXES[side]:
        if any(key.startswith(prefix) for key in found):
            return prefix
    expected = " or ".join(f"{prefix}*" for prefix in PREFIXES[side])
    raise ValueError(
        f"{said}: no weights of a {side} encoder ({expected}), but {named(sorted(found))}; give both sides' files"
    )


def architecture_of(name: str) -> tuple[PretrainedConfig, PreTrainedTokenizerBase]:
    safe = {"trust_remote_code": False}
    try:
        return AutoConfig.from_pretrained(name, **safe), AutoTokenizer.from_pretrained(
            name, model_input_names=INPUTS, **safe
        )
    except (OSError, ImportError) as error:
        raise ValueError(f"no config and tokenizer could be loaded from {name!r}: {error}") from error


def fill(model: torch.nn.Module, weights: dict[str, Tensor], said: str, prefix: str, architecture: str) -> None:
    expected = model.state_dict()
    given = {key: value for key, value in weights.items() if not UNUSED.match(key)}
    for kind, keys in (("missing", expected.keys() - given.keys()), ("unknown", given.keys() - expected.keys())):
        if keys:
            raise ValueError(
                f"{said}: {kind} weights {named(sorted(prefix + key for key in keys))}; is it a {architecture}?"
                " (--architecture)"
            )
    for key, value in given.items():
        if value.shape != expected[key].shape:
            raise ValueError(
                f"{said}: {prefix}{key} has shape {tuple(value.shape)}, in {architecture} {tuple(expected[key].shape)};"
                " name the model that it was trained from (--architecture)"
            )
    model.load_state_dict(given)


def named(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - SHOWN:,} more" if len(keys) > SHOWN else ""
    return ", ".join(keys[:SHOWN]) + more
