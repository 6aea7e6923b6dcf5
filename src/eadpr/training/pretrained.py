"""Models and tokenizers in Hugging Face's layout, by hub name or folder, loaded whole or not at all."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

NAMED = 5  # weights that a message names
ADAPTERS = "adapter_config.json"  # peft's
MERGE = "give a folder that they are merged into, as peft's merge_and_unload does"

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()


def load_whole(
    name: str, kind: Any, *, setting: str, revision: str | None = None, weights: bool = True, **tokenizer_options: Any
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a model (float32, of the `kind` AutoModel...) and its tokenizer; safetensors only, no code of the model.

    transformers fills missing weights with random numbers, leaves out layers that the config does not count, and makes
    an empty tokenizer if the folder has none. All three are refused: ValueError names `setting`, the model and the
    weights. Heads of other tasks may be in the file, and a pooler may be missing.
    `revision` is a commit or tag of a hub name; None is its main branch. Without `weights` the model is an outline on
    the device meta, as its config.json says, and all but the weights is checked.
    """
    label = f"{setting} {name!r}"
    _check_adapters(Path(name) / ADAPTERS, label)
    if Path(name).is_dir() and not any(Path(name).glob("*.safetensors")):
        raise ValueError(
            f"{label} holds no *.safetensors; other weights can run code when loaded, convert them first:"
            f" eadpr convert {name} --out NEW"
        )
    safe = {"trust_remote_code": False, "revision": revision or "main"}
    with _as_value_error(f"{label} cannot be loaded by {kind.__name__}"):
        model, info = _load(name, kind, safe) if weights else (_outline(name, kind, safe), None)
    if getattr(model, "_hf_peft_config_loaded", False):  # of a hub name
        raise ValueError(f"{label} holds adapters ({ADAPTERS}); {MERGE}")
    if info is not None:
        _check_weights(model, info, label)
    with _as_value_error(f"{label}: its tokenizer cannot be loaded"):
        tokenizer = AutoTokenizer.from_pretrained(name, **tokenizer_options, **safe)
    _check_tokenizer(tokenizer, model, label)
    return model, tokenizer


def _load(name: str, kind: Any, safe: dict[str, Any]) -> tuple[PreTrainedModel, dict[str, Any]]:
    checks = {"use_safetensors": True, "output_loading_info": True, "ignore_mismatched_sizes": True}
    return kind.from_pretrained(name, dtype=torch.float32, **checks, **safe)


def _outline(name: str, kind: Any, safe: dict[str, Any]) -> PreTrainedModel:
    with torch.device("meta"):
        return kind.from_config(AutoConfig.from_pretrained(name, **safe))


def _check_adapters(path: Path, label: str) -> None:
    """Raise ValueError for a folder of adapters, which transformers would put on the base that they name, wherever that
    is, and leave out without peft."""
    if path.exists():
        with _as_value_error(f"{label}: {ADAPTERS} cannot be read"):
            base = json.loads(path.read_bytes())["base_model_name_or_path"]
        raise ValueError(f"{label} holds adapters ({ADAPTERS}) of {base!r}; {MERGE}")


@contextmanager
def _as_value_error(failure: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the libraries below transformers raise `Exception` itself, too
        raise ValueError(f"{failure} ({' '.join(f'{type(error).__name__}: {error}'.split())[:300]})") from error


def _check_weights(model: PreTrainedModel, info: dict[str, Any], label: str) -> None:
    parts = {name for name, _ in model.base_model.named_children()} - {"pooler"}

    def of_model(key: str) -> bool:
        """Tell the model's weights from those of a head, and from buffers of positions that old files hold."""
        path = key.removeprefix(f"{model.base_model_prefix}.").split(".")
        return path[0] in parts and path[-1] != "position_ids"

    wrong = {
        "lacks weights that its config.json asks for": [
            key for key in info["missing_keys"] if "pooler" not in key.split(".")
        ],
        "has weights of another shape than its config.json says": [
            f"{key} ({tuple(shape)}, not {tuple(needed)})" for key, shape, needed in info["mismatched_keys"]
        ],
        "has weights that its config.json does not know": list(filter(of_model, info["unexpected_keys"])),
    }
    for problem, keys in wrong.items():
        if keys:
            more = f" and {len(keys) - NAMED} more" if len(keys) > NAMED else ""
            listed = f"{', '.join(sorted(keys)[:NAMED])}{more}"
            raise ValueError(f"{label} {problem}: {listed}; is the folder whole, and of one model?")


def _check_tokenizer(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel, label: str) -> None:
    words, rows = len(tokenizer), model.get_input_embeddings().num_embeddings
    if len(tokenizer.get_vocab().keys() - tokenizer.get_added_vocab().keys()) <= 1:  # an empty T5's has the space
        raise ValueError(f"{label} has a tokenizer without words; are its files (tokenizer.json, vocab.txt) there?")
    if words > rows:
        raise ValueError(
            f"{label} has a tokenizer of {words:,} tokens, but embeddings of {rows:,}; are they of one model?"
        )
