"""Models and tokenizers in Hugging Face's layout, by hub name or folder, loaded whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

NAMED = 5  # of weights, in a message

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()


def load_whole(
    name: str, kind: Any, *, setting: str, revision: str | None = None, **tokenizer_options: Any
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A model (float32, of the `kind` AutoModel...) and its tokenizer; safetensors only, no code from elsewhere.

    transformers fills weights that a folder lacks with random numbers, leaves out layers that its config does not
    count, and makes an empty tokenizer where there is none. All three are refused: ValueError names `setting`, the
    model and the weights. Heads of other tasks may lie in the file, and a pooler may be missing.
    `revision` is a commit or tag of a hub name; None is its main branch.
    """
    said = f"{setting} {name!r}"
    if Path(name).is_dir() and not any(Path(name).glob("*.safetensors")):
        raise ValueError(
            f"{said} holds no *.safetensors; other weights can run code when loaded, convert them first:"
            f" python -m stages.convert {name} --out NEW"
        )
    safe = {"trust_remote_code": False, "revision": revision or "main"}
    whole = {"use_safetensors": True, "output_loading_info": True, "ignore_mismatched_sizes": True}
    with _said(f"{said} cannot be loaded by {kind.__name__}"):
        model, found = kind.from_pretrained(name, dtype=torch.float32, **whole, **safe)
    _check_weights(model, found, said)
    with _said(f"{said}: its tokenizer cannot be loaded"):
        tokenizer = AutoTokenizer.from_pretrained(name, **tokenizer_options, **safe)
    _check_tokenizer(tokenizer, model, said)
    return model, tokenizer


@contextmanager
def _said(what: str) -> Iterator[None]:
    """What lies beneath transformers raises what it likes, `Exception` itself among it."""
    try:
        yield
    except Exception as error:
        raise ValueError(f"{what} ({' '.join(f'{type(error).__name__}: {error}'.split())[:300]})") from error


def _check_weights(model: PreTrainedModel, found: dict[str, Any], said: str) -> None:
    parts = {name for name, _ in model.base_model.named_children()} - {"pooler"}

    def own(key: str) -> bool:
        """Whether it is a weight of the model itself; buffers of positions were once kept with them."""
        path = key.removeprefix(f"{model.base_model_prefix}.").split(".")
        return path[0] in parts and path[-1] != "position_ids"

    wrong = {
        "lacks weights that its config.json asks for": [
            key for key in found["missing_keys"] if "pooler" not in key.split(".")
        ],
        "has weights of another shape than its config.json says": [
            f"{key} ({tuple(is_)}, not {tuple(needed)})" for key, is_, needed in found["mismatched_keys"]
        ],
        "has weights that its config.json does not know": list(filter(own, found["unexpected_keys"])),
    }
    for what, keys in wrong.items():
        if keys:
            more = f" and {len(keys) - NAMED} more" if len(keys) > NAMED else ""
            named = f"{', '.join(sorted(keys)[:NAMED])}{more}"
            raise ValueError(f"{said} {what}: {named}; is the folder whole, and of one model?")


def _check_tokenizer(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel, said: str) -> None:
    words, rows = len(tokenizer), model.get_input_embeddings().num_embeddings
    if len(tokenizer.get_vocab().keys() - tokenizer.get_added_vocab().keys()) <= 1:  # an empty T5's has the space
        raise ValueError(f"{said} has a tokenizer without words; are its files (tokenizer.json, vocab.txt) there?")
    if words > rows:
        of = f"a tokenizer of {words:,} tokens, but embeddings of {rows:,}"
        raise ValueError(f"{said} has {of}; are they of one model?")
