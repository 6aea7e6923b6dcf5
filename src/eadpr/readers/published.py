"""Published readers, DPR's and MDR's, to a folder that `readers.<name>.model` may name, without running what a file may
hold.

A file of either has the weights of an encoder (`encoder.*`), a BERT's or an ELECTRA's, and of heads: DPR's those of the
spans and of the passages' selection (Hugging Face's DPRReader has both below `span_predictor`), MDR's those of the
spans, the path's rank on a pooled first token, and the sentences.
"""

from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModel

from eadpr.readers.extractive import HEADS, marks_of
from eadpr.runtime import files
from eadpr.training.convert import architecture_of, fill, named, read_weights

# Their head -> ours, its outputs; None: as many as its inputs.
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
    """Write the folder `out`, an encoder with heads; returns the number of parameters.

    `architecture`: the model, by hub name or folder, whose config and tokenizer the reader has; None: that of the
    published one. Raises ValueError as `eadpr.training.convert.convert` does.
    """
    if out.exists():
        raise ValueError(f"{out} exists; delete it, or choose another folder for the converted reader")
    weights = read_weights(checkpoint)
    prefix = next((one for one in PREFIXES if any(key.startswith(one) for key in weights)), "encoder.")
    of_heads = PREFIXES[prefix]
    is_mdr = any(key.startswith((f"{of_heads}rank.", f"{of_heads}sp.")) for key in weights)
    architecture = architecture or ARCHITECTURES["MDR" if is_mdr else "DPR"]
    config, tokenizer = architecture_of(architecture)
    if is_mdr:
        marks_of(tokenizer)
    heads: dict[str, torch.Tensor] = {}
    for theirs, (ours, outputs) in (MDR if is_mdr else DPR).items():
        size = outputs or config.hidden_size
        for part, shape in (("weight", (size, config.hidden_size)), ("bias", (size,))):
            name = f"{of_heads}{theirs}.{part}"
            found = tuple(weights[name].shape) if name in weights else "missing"
            if found != shape:
                raise ValueError(f"{checkpoint}: {name} is {found}, and a reader's is {shape}; is it a reader?")
            heads[f"{ours}.{part}"] = weights.pop(name).float().clone()
    if unknown := sorted(key for key in weights if not key.startswith(prefix)):
        raise ValueError(f"{checkpoint}: unknown weights {named(unknown)}; is it a reader?")
    own = {key.removeprefix(prefix): value for key, value in weights.items()}
    if not is_mdr and TYPES in own:  # DPR's reader gives all tokens type 0
        config.type_vocab_size, own[TYPES] = 1, own[TYPES][:1]
    model = AutoModel.from_config(config, trust_remote_code=False, dtype=torch.float32)
    if hasattr(model, "pooler"):
        model.pooler = None  # unused
    fill(model, own, str(checkpoint), prefix, architecture)
    with files.new_folder(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        save_file(heads, folder / HEADS)
    return sum(value.numel() for value in [*model.parameters(), *heads.values()])
