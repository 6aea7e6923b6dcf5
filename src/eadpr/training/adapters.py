"""Low-rank adapters of an encoder's linear layers (LoRA, Hu et al., 2022) by peft, and activations computed again.

The weights of the model stay as they are and only the adapters learn, in float32. Where passes compute in bfloat16
(`machine.autocast`) the weights of the adapted layers are kept in it: the same results with half the memory.
"""

import warnings
from pathlib import Path

import torch
from torch.nn import Linear

from eadpr.runtime import machine
from eadpr.runtime.machine import Machine
from eadpr.training import encoder as text_encoder
from eadpr.training.config import Lora, Train
from eadpr.training.encoder import Encoders, TextEncoder

FOLDER = "adapters"  # of a side's folder, in peft's format
warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)  # which peft asks transformers for


def prepare(encoder: TextEncoder, train: Train, hardware: Machine) -> None:
    """Add adapters to an encoder that learns and let it compute activations again, where the settings ask for it."""
    if train.gradient_checkpointing:
        if not encoder.model.supports_gradient_checkpointing:
            raise ValueError(
                f"train.gradient_checkpointing: a {type(encoder.model).__name__} has none; set it to false"
            )
        encoder.model.activation_checkpointing_enable({"use_reentrant": False})
    if train.lora is not None:
        _add(encoder, train.lora, train.seed)
        for part in encoder.model.modules():
            if isinstance(part, Linear) and not part.weight.requires_grad:
                machine.place_model(part, hardware)


def _add(encoder: TextEncoder, lora: Lora, seed: int) -> None:
    from peft import LoraConfig, get_peft_model

    linear = [
        name for name, part in encoder.model.named_modules() if isinstance(part, Linear) and part.weight.requires_grad
    ]
    suffixes = [""] if lora.modules == "auto" else [f".{module}" for module in lora.modules]
    for suffix in suffixes:
        if not any(f".{name}".endswith(suffix) for name in linear):
            kinds = sorted({name.rpartition(".")[2] for name in linear})
            raise ValueError(
                f"train.lora.modules: {suffix[1:]!r} is none of the linear layers that learn: {', '.join(kinds)}"
            )
    # Whole names, since others who load them may have layers in the model that end in the same way, as a pooler.
    targets = sorted(name for name in linear if f".{name}".endswith(tuple(suffixes)))
    config = LoraConfig(r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=targets)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder.model = get_peft_model(encoder.model, config)
    config.target_modules = targets  # peft makes it a set, which is written in another order each time


def save(folder: Path, encoders: Encoders, init: Path) -> None:
    """Write both sides into the existing `folder` as `encoder.save` does.

    Adapters are written too, and merged, in float32, into the weights of the folder `init`, as the encoders then are.
    """
    merged = {}
    for side, encoder in zip(Encoders._fields, encoders, strict=True):
        if hasattr(encoder.model, "peft_config"):
            from peft import PeftModel

            path = text_encoder.folder_of(folder, side) / FOLDER
            encoder.model.save_pretrained(str(path), save_embedding_layers=False)
            (path / "README.md").unlink()  # an empty form
            base = text_encoder.load(init, side).model
            merged[encoder] = PeftModel.from_pretrained(base, str(path)).merge_and_unload(safe_merge=True)
    for encoder, model in merged.items():
        encoder.model = model
    text_encoder.save(folder, *encoders)
