"""DPR's published reader to a folder that `readers.<name>.model` may name, without running what the file may hold.

Its file has the weights of a BERT (`encoder.*`), of the spans (`qa_outputs.*`) and of the passages' selection
(`qa_classifier.*`); Hugging Face's DPRReader has the same below `span_predictor`.
"""

from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModel

from eadpr import files
from eadpr.reading.extractive import HEADS
from eadpr.training.convert import architecture_of, fill, read_weights

HEADS_OF = {  # their name -> ours, outputs
    "qa_outputs.weight": ("spans.weight", 2),
    "qa_outputs.bias": ("spans.bias", 2),
    "qa_classifier.weight": ("passages.weight", 1),
    "qa_classifier.bias": ("passages.bias", 1),
}
PREFIXES = {"encoder.": "", "span_predictor.encoder.bert_model.": "span_predictor."}  # of the encoder -> of the heads


def convert_reader(checkpoint: Path, out: Path, *, architecture: str) -> int:
    """Write the folder `out`, an encoder with heads; returns the number of parameters.

    `architecture`: the model, by hub name or folder, whose config and tokenizer the reader has. Raises ValueError as
    `eadpr.training.convert.convert` does.
    """
    if out.exists():
        raise ValueError(f"{out} exists; delete it, or choose another folder for the converted reader")
    weights = read_weights(checkpoint)
    prefix = next((one for one in PREFIXES if any(key.startswith(one) for key in weights)), "encoder.")
    config, tokenizer = architecture_of(architecture)
    model = AutoModel.from_config(config, trust_remote_code=False, dtype=torch.float32)
    if hasattr(model, "pooler"):
        model.pooler = None  # unused
    heads: dict[str, torch.Tensor] = {}
    for theirs, (ours, size) in HEADS_OF.items():
        name, shape = f"{PREFIXES[prefix]}{theirs}", (size, config.hidden_size) if ours.endswith("weight") else (size,)
        found = tuple(weights[name].shape) if name in weights else "missing"
        if found != shape:
            raise ValueError(f"{checkpoint}: {name} is {found}, and a reader's is {shape}; is it a reader?")
        heads[ours] = weights.pop(name).float().clone()
    own = {key.removeprefix(prefix): value for key, value in weights.items()}
    fill(model, own, str(checkpoint), prefix, architecture)
    with files.new_folder(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        save_file(heads, folder / HEADS)
    return sum(value.numel() for value in [*model.parameters(), *heads.values()])
