"""Published DPR checkpoints to a model folder, without running code that a checkpoint may hold.

`convert` reads DPR's `.cp` (a pickled `CheckpointState`; the first field is the weights, `question_model.*` and
`ctx_model.*`) and Hugging Face's DPRQuestionEncoder and DPRContextEncoder (`.bin` or `.safetensors`, one file a side).
`convert_folder` turns the pickled weights (`pytorch_model*.bin`) of a model folder into safetensors; readers of
Fusion-in-Decoder have T5's in two more wrappers (`encoder.encoder.block.0.module.layer`).
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
from eadpr.training.config import ResolvedSettings
from eadpr.training.encoder import INPUTS, Side, TextEncoder, save

DPR = ResolvedSettings(pooling="cls", shared=False, question_tokens=256, passage_tokens=256)  # all of them
PREFIXES: dict[Side, tuple[str, ...]] = {
    "question": ("question_model.", "question_encoder.bert_model."),
    "passage": ("ctx_model.", "ctx_encoder.bert_model."),
}
UNUSED = re.compile(r"pooler\.|embeddings\.position_ids$")  # DPR takes the first state itself; ids are 0, 1, 2, …
TOKENIZERS, TOKENIZER_FILES = (".model", ".spm"), ("tokenizer.json", "vocab.txt", "vocab.json")
LISTED = 5  # keys that an error names; it counts the rest
# torch's reader raises these for bytes that are no pickle, or are cut off.
UNREADABLE = (
    pickle.UnpicklingError, RuntimeError, EOFError, LookupError, ValueError, TypeError, AttributeError, struct.error,
)  # fmt: skip


class CheckpointState(tuple):
    """Takes the place of DPR's class of this name: its fields in order, without its code."""

    def __new__(cls, *fields: Any) -> Self:
        return super().__new__(cls, fields)


def convert(checkpoints: Sequence[Path], out: Path, *, architecture: str) -> int:
    """Write the folder `out` from one file with both sides, or one for each; return the number of parameters.

    `architecture`: the model, by hub name or folder, with the encoders' config and tokenizer; its weights are not read.
    Memory: the files whole, a `.cp` with the state of its optimiser. Raises ValueError for a file with anything but
    tensors and plain values in it, and for weights that are missing, not known, or of another shape.
    """
    _refuse_existing(out)
    weights: dict[str, Tensor] = {}
    for path in checkpoints:
        more = read_weights(path)
        if twice := sorted(weights.keys() & more.keys()):
            raise ValueError(f"{path} holds weights that an earlier file holds too: {list_keys(twice)}")
        weights |= more
    source = ", ".join(map(str, checkpoints))
    prefixes = {side: _prefix(side, weights, source) for side in PREFIXES}
    if unknown := sorted(key for key in weights if not key.startswith(tuple(prefixes.values()))):
        expected = " and ".join(prefixes.values())
        raise ValueError(f"{source}: unknown weights {list_keys(unknown)}; expected {expected}*")
    config, tokenizer = load_architecture(architecture)
    encoders = []
    for side, prefix in prefixes.items():
        model = AutoModel.from_config(config, trust_remote_code=False, dtype=torch.float32)
        encoders.append(TextEncoder(model, tokenizer, DPR, side))  # before the weights: it takes the pooler away
        side_weights = {key.removeprefix(prefix): value for key, value in weights.items() if key.startswith(prefix)}
        fill_weights(model, side_weights, source, prefix, architecture)
    with files.new_folder(out) as folder:
        save(folder, *encoders)
    return sum(parameter.numel() for encoder in encoders for parameter in encoder.parameters())


def convert_folder(source: Path, out: Path, architecture: str | None = None) -> int:
    """Copy the model folder `source` to `out` with its `*.bin` weights as safetensors; return the number of parameters.

    A folder without a tokenizer, as FiD's, gets that of the `architecture`. Memory: the largest file twice. Errors are
    those of `convert`; missing weights are found when the folder is loaded.
    """
    _refuse_existing(out)
    parts = sorted(source.glob("pytorch_model*.bin"))
    if not parts or not (source / "config.json").is_file():
        raise ValueError(f"{source} is no model folder with pickled weights: config.json and pytorch_model*.bin")
    if (source / "modules.json").exists():
        raise ValueError(f"{source} is sentence-transformers' own; load it there and save it anew, as safetensors")
    kind = json.loads((source / "config.json").read_text(encoding="utf-8")).get("model_type")
    tokenizer = _missing_tokenizer(source, kind, architecture)
    with files.new_folder(out) as folder:
        for path in sorted(source.iterdir()):
            if path.suffix in READ and path.suffix != ".safetensors" and not path.name.endswith(".bin.index.json"):
                shutil.copyfile(path, folder / path.name)
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)
        return _write_parts(parts, folder, wrapped=kind == "t5")


def _refuse_existing(out: Path) -> None:
    if out.exists():
        raise ValueError(f"{out} exists; delete it, or choose another folder for the converted model")


def _missing_tokenizer(source: Path, kind: str, architecture: str | None) -> PreTrainedTokenizerBase | None:
    """Load the tokenizer of the architecture if the folder has none."""
    if any(path.suffix in TOKENIZERS or path.name in TOKENIZER_FILES for path in source.iterdir()):
        return None
    if architecture is None:
        raise ValueError(f"{source} has no tokenizer; name the model that it was trained from (--architecture)")
    config, tokenizer = load_architecture(architecture)
    if config.model_type != kind:
        raise ValueError(f"{source} is a {kind}, and {architecture} (--architecture) a {config.model_type}")
    return tokenizer


def _write_parts(parts: Sequence[Path], folder: Path, *, wrapped: bool) -> int:
    """Write each file of weights as safetensors, and an index of several; return the number of parameters."""
    index: dict[str, str] = {}
    count = 0
    for number, path in enumerate(parts, 1):
        name = f"model-{number:05d}-of-{len(parts):05d}.safetensors" if len(parts) > 1 else "model.safetensors"
        weights = read_weights(path)
        if wrapped:
            weights = {_unwrap(key): value for key, value in weights.items()}
        # Tied weights are views of one tensor, which safetensors does not write.
        save_file({key: value.clone() for key, value in weights.items()}, folder / name, {"format": "pt"})
        index |= dict.fromkeys(weights, name)
        count += sum(value.numel() for value in weights.values())
    if len(parts) > 1:
        files.write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": index})
    return count


def _unwrap(key: str) -> str:
    """Return T5's name of a weight of FiD's encoder; every other name as it is."""
    inner = key.removeprefix("encoder.")
    return re.sub(r"\.block\.(\d+)\.module\.", r".block.\1.", inner) if inner.startswith("encoder.") else key


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read the weights by name; the other fields of a `CheckpointState` are dropped."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file")
    content = _load(path)
    if isinstance(content, CheckpointState):
        content = content[0] if content else None
    elif isinstance(content, Mapping) and "model_dict" in content:
        content = content["model_dict"]
    advice = "give DPR's .cp or a state dict"
    if not isinstance(content, Mapping) or not content:
        raise ValueError(f"{path} holds no weights by name, but {type(content).__name__}; {advice}")
    for key, value in content.items():
        if not isinstance(value, Tensor):
            raise ValueError(f"{path}: {key} is {type(value).__name__}, expected a tensor; {advice}")
    return dict(content)


def _load(path: Path) -> Any:
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
        if code := re.search(r"GLOBAL:? (?:GLOBAL )?([\w.]+)", str(error), re.IGNORECASE):
            raise ValueError(
                f"{path} holds {code[1]}, which is neither a tensor nor a plain value and could run code; where the"
                " file was made, save the weights alone: torch.save(model.state_dict(), FILE)"
            ) from error
        raise ValueError(f"{unreadable} (torch.load with weights_only=True); is the download complete?") from error


def _prefix(side: Side, weights: Mapping[str, Tensor], source: str) -> str:
    for prefix in PREFIXES[side]:
        if any(key.startswith(prefix) for key in weights):
            return prefix
    expected = " or ".join(f"{prefix}*" for prefix in PREFIXES[side])
    raise ValueError(
        f"{source}: no weights of a {side} encoder ({expected}), but {list_keys(sorted(weights))}; give both sides'"
        " files"
    )


def load_architecture(name: str) -> tuple[PretrainedConfig, PreTrainedTokenizerBase]:
    try:
        config = AutoConfig.from_pretrained(name, trust_remote_code=False)
        return config, AutoTokenizer.from_pretrained(name, model_input_names=INPUTS, trust_remote_code=False)
    except (OSError, ImportError) as error:
        raise ValueError(f"no config and tokenizer could be loaded from {name!r}: {error}") from error


def fill_weights(
    model: torch.nn.Module, weights: dict[str, Tensor], source: str, prefix: str, architecture: str
) -> None:
    """Load the weights into the model; raises ValueError, naming `source`, for missing, unknown or misshapen ones."""
    expected = model.state_dict()
    weights = {key: value for key, value in weights.items() if not UNUSED.match(key)}
    missing, unknown = expected.keys() - weights.keys(), weights.keys() - expected.keys()
    for kind, keys in (("missing", missing), ("unknown", unknown)):
        if keys:
            listed = list_keys(sorted(prefix + key for key in keys))
            raise ValueError(f"{source}: {kind} weights {listed}; is it a {architecture}? (--architecture)")
    for key, value in weights.items():
        shape, needed = tuple(value.shape), tuple(expected[key].shape)
        if shape != needed:
            raise ValueError(
                f"{source}: {prefix}{key} has shape {shape}, in {architecture} {needed};"
                " name the model that it was trained from (--architecture)"
            )
    model.load_state_dict(weights)


def list_keys(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - LISTED:,} more" if len(keys) > LISTED else ""
    return ", ".join(keys[:LISTED]) + more
