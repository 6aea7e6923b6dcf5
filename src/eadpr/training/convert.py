"""Published DPR checkpoints to a model folder, without running code that a checkpoint may hold.

`convert` reads DPR's `.cp` (a pickled `CheckpointState`; the first field is the weights, `question_model.*` and
`ctx_model.*`) and Hugging Face's DPRQuestionEncoder and DPRContextEncoder (`.bin` or `.safetensors`, one file a side).
`convert_folder` turns the pickled weights (`pytorch_model*.bin`) of a model folder into safetensors.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoConfig, AutoModel, AutoTokenizer

from eadpr.runtime import files
from eadpr.runtime.model_folders import READ
from eadpr.training.config import ResolvedSettings
from eadpr.training.encoder import INPUTS, Side, TextEncoder, save
from eadpr.training.pretrained import as_value_error

DPR = ResolvedSettings(pooling="cls", shared=False, question_tokens=256, passage_tokens=256)  # all of them
PREFIXES: dict[Side, tuple[str, ...]] = {
    "question": ("question_model.", "question_encoder.bert_model."),
    "passage": ("ctx_model.", "ctx_encoder.bert_model."),
}
UNUSED = re.compile(r"\.pooler\.|embeddings\.position_ids$")  # DPR takes the first state itself; ids are 0, 1, 2, …


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
    weights = _read_all(checkpoints)
    source = ", ".join(map(str, checkpoints))
    with as_value_error(f"no config and tokenizer could be loaded from {architecture!r}"):
        config = AutoConfig.from_pretrained(architecture, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(architecture, model_input_names=INPUTS, trust_remote_code=False)
    encoders = []
    for side, prefixes in PREFIXES.items():
        keys = [key for key in weights if key.startswith(prefixes)]
        if not keys:
            expected = " or ".join(f"{prefix}*" for prefix in prefixes)
            raise ValueError(f"{source}: no weights of a {side} encoder ({expected}); give the files of both sides")
        prefix = next(prefix for prefix in prefixes if keys[0].startswith(prefix))
        model = AutoModel.from_config(config, trust_remote_code=False, dtype=torch.float32)
        encoders.append(TextEncoder(model, tokenizer, DPR))  # before the weights: it takes the pooler away
        side_weights = {key.removeprefix(prefix): weights.pop(key) for key in keys if not UNUSED.search(key)}
        with as_value_error(f"{source}: these are no weights of a {architecture} (--architecture)"):
            model.load_state_dict(side_weights)
    if unknown := sorted(key for key in weights if not UNUSED.search(key)):
        raise ValueError(f"{source}: unknown weights {', '.join(unknown)}; is it DPR's?")
    with files.new_folder(out) as folder:
        save(folder, *encoders)
    return sum(parameter.numel() for encoder in encoders for parameter in encoder.parameters())


def convert_folder(source: Path, out: Path) -> int:
    """Copy the model folder `source` to `out` with its `*.bin` weights as safetensors; return the number of parameters.

    Memory: the weights twice. What is missing, or not right, is found when the folder is loaded.
    """
    _refuse_existing(out)
    parts = sorted(source.glob("pytorch_model*.bin"))
    if not parts or not (source / "config.json").is_file():
        raise ValueError(f"{source} is no model folder with pickled weights: config.json and pytorch_model*.bin")
    if (source / "modules.json").exists():
        raise ValueError(f"{source} is sentence-transformers' own; load it there and save it again, as safetensors")
    blobs = source.resolve().parent.with_name("blobs")  # where the links of a snapshot in the hub's cache lead
    # Tied weights are views of one tensor, and transposed ones have strides; safetensors writes neither.
    weights = {key: value.clone(memory_format=torch.contiguous_format) for key, value in _read_all(parts).items()}
    with files.new_folder(out) as folder:
        for path in source.iterdir():
            if path.suffix in READ and not path.name.endswith((".safetensors", ".bin.index.json")):
                if not any(map(path.resolve().is_relative_to, (source.resolve(), blobs))):
                    raise ValueError(f"{path} is a link to a file outside of {source}; put the file itself there")
                shutil.copyfile(path, folder / path.name)
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return sum(value.numel() for value in weights.values())


def _refuse_existing(out: Path) -> None:
    if out.exists():
        raise ValueError(f"{out} exists; delete it, or choose another folder for the converted model")


def _read_all(paths: Sequence[Path]) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = {}
    for path in paths:
        part = read_weights(path)
        if twice := sorted(weights.keys() & part.keys()):
            raise ValueError(f"{path} holds {twice[0]}, as another file does; give one of them")
        weights |= part
    return weights


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read the weights by name; the other fields of a `CheckpointState` are dropped."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the weights in it, as {path / 'pytorch_model.bin'}")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with torch.serialization.safe_globals([(CheckpointState, "dpr.utils.model_utils.CheckpointState")]):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise
    except Exception as error:  # torch's reader raises many kinds for bytes that are no pickle, or are cut off
        code = re.search(r"GLOBAL:? (?:GLOBAL )?([\w.]+)", str(error), re.IGNORECASE)
        reason = f"{code[1]} could run code, save the weights alone" if code else "is the download complete?"
        raise ValueError(f"{path} is not a checkpoint of tensors and plain values: {reason}") from error
    if isinstance(content, CheckpointState):
        content = content[0]
    elif isinstance(content, Mapping):
        content = content.get("model_dict", content)
    pairs = content.items() if isinstance(content, Mapping) else [(None, None)]
    if not all(isinstance(name, str) and isinstance(value, Tensor) for name, value in pairs):
        raise ValueError(f"{path} holds no weights by name; give DPR's .cp or a state dict")
    return dict(content)
