"""Conversion of the published readers of DPR and MDR to folders for `readers.<name>.model`; no code in a file is run.

Either file has the weights of an encoder (`encoder.*`), BERT or ELECTRA, and of heads: DPR's select spans and passages
(Hugging Face's DPRReader has both below `span_predictor`), MDR's select spans, paths (from a pooled first token) and
sentences.
"""

from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModel

from eadpr.readers.extractive import HEADS, find_marks
from eadpr.runtime import files
from eadpr.training.convert import fill_weights, list_keys, load_architecture, read_weights

# Their head -> our head and its number of outputs, None: equal to its inputs.
DPR: dict[str, tuple[str, int | None]] = {"qa_outputs": ("spans", 2), "qa_classifier": ("passages", 1)}
MDR: dict[str, tuple[str, int | None]] = {
    "qa_outputs": ("spans", 2),
    "rank": ("passages", 1),
    "pooler.dense": ("pooler", None),
    "sp": ("sentences", 1),
}
PREFIXES = {  # of the encoder -> of the heads
    "encoder.": "",
    "module.encoder.": "module.",
    "span_predictor.encoder.bert_model.": "span_predictor.",
}
TYPES = "embeddings.token_type_embeddings.weight"
ARCHITECTURES = {"DPR": "bert-base-uncased", "MDR": "google/electra-large-discriminator"}


def convert_reader(checkpoint: Path, out: Path, architecture: str | None = None) -> int:
    """Write the folder `out`, an encoder with heads; return the number of parameters.

    `architecture` is a model, by hub name or folder, with the reader's config and tokenizer; by default the published
    reader's. Raises ValueError as `eadpr.training.convert.convert` does.
    """
    if out.exists():
        raise ValueError(f"{out} exists; delete it, or choose another folder for the converted reader")
    weights = read_weights(checkpoint)
    prefix = next((name for name in PREFIXES if any(key.startswith(name) for key in weights)), "encoder.")
    head_prefix = PREFIXES[prefix]
    is_mdr = any(key.startswith((f"{head_prefix}rank.", f"{head_prefix}sp.")) for key in weights)
    architecture = architecture or ARCHITECTURES["MDR" if is_mdr else "DPR"]
    config, tokenizer = load_architecture(architecture)
    if is_mdr:
        find_marks(tokenizer)
    heads: dict[str, torch.Tensor] = {}
    for theirs, (ours, outputs) in (MDR if is_mdr else DPR).items():
        size = outputs or config.hidden_size
        for part, shape in (("weight", (size, config.hidden_size)), ("bias", (size,))):
            name = f"{head_prefix}{theirs}.{part}"
            actual = tuple(weights[name].shape) if name in weights else "missing"
            if actual != shape:
                raise ValueError(f"{checkpoint}: {name} is {actual}, and a reader's is {shape}; is it a reader?")
            heads[f"{ours}.{part}"] = weights.pop(name).float().clone()
    if unknown := sorted(key for key in weights if not key.startswith(prefix)):
        raise ValueError(f"{checkpoint}: unknown weights {list_keys(unknown)}; is it a reader?")
    encoder = {key.removeprefix(prefix): value for key, value in weights.items()}
    if not is_mdr and TYPES in encoder:  # DPR's reader gives all tokens type 0
        config.type_vocab_size, encoder[TYPES] = 1, encoder[TYPES][:1]
    model = AutoModel.from_config(config, trust_remote_code=False, dtype=torch.float32)
    if hasattr(model, "pooler"):
        model.pooler = None  # unused
    fill_weights(model, encoder, str(checkpoint), prefix, architecture)
    with files.new_folder(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        save_file(heads, folder / HEADS)
    return sum(value.numel() for value in [*model.parameters(), *heads.values()])
