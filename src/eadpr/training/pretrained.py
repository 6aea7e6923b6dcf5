"""Models and tokenizers in Hugging Face's layout, by hub name or folder, loaded whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
import transformers
from safetensors import safe_open
from transformers import AutoConfig, AutoTokenizer, PreTrainedConfig, PreTrainedTokenizerBase

from eadpr.runtime.model_folders import HUB_NAME, is_folder
from eadpr.training.bert import Bert, computes
from eadpr.training.self_description import UNLIMITED

if TYPE_CHECKING:  # importing transformers' models takes seconds
    from transformers import PreTrainedModel

ADAPTERS = "adapter_config.json"  # peft's
Kind = Literal["AutoModel", "AutoModelForSequenceClassification", "AutoModelForSeq2SeqLM"]
OUTPUTS = {"return_dict": True, "output_attentions": False, "output_hidden_states": False}

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()


def load_whole(
    name: str, kind: Kind, *, setting: str, revision: str | None = None, weights: bool = True, **tokenizer_options: Any
) -> "tuple[PreTrainedModel | Bert, PreTrainedTokenizerBase]":
    """Load a model (float32, by its `kind`) and its tokenizer; safetensors only, no code of the model.

    transformers fills missing weights with random numbers, leaves out layers that the config does not count, reads the
    integers of quantised weights as they are, and makes an empty tokenizer if the folder has none. All are refused, and
    weights of another family: ValueError names `setting`, the model and what is wrong. Heads of other tasks may be in
    the file, and a pooler may be missing. What the config says of outputs is set as it is needed here.
    `revision` is a commit or tag of a hub name; None is its main branch. Without `weights` the model is an outline on
    the device meta, as its config.json says, and all but the weights is checked.
    """
    label = f"{setting} {name!r}"
    safe = {"trust_remote_code": False, "revision": revision or "main"}
    model = _load_model(name, kind, label, safe, weights=weights)
    with as_value_error(f"{label}: its tokenizer cannot be loaded"):
        tokenizer = AutoTokenizer.from_pretrained(name, **tokenizer_options, **safe)
    with as_value_error(f"{label} is a {type(model).__name__}, which reads no words; choose an encoder of text"):
        words, rows = len(tokenizer), model.get_input_embeddings().num_embeddings
    if len(tokenizer.get_vocab().keys() - tokenizer.get_added_vocab().keys()) <= 1:  # an empty T5's has the space
        raise ValueError(f"{label} has a tokenizer without words; are its files (tokenizer.json, vocab.txt) there?")
    if tokenizer.cls_token and not any(tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]):
        raise ValueError(f"{label}: its tokenizer writes no {tokenizer.cls_token} into a text; is its file whole?")
    if words > rows:
        raise ValueError(f"{label} has {words:,} tokens, but embeddings of {rows:,}; are they of one model?")
    return model, tokenizer


def save_whole(folder: Path, model: "PreTrainedModel | Bert", tokenizer: PreTrainedTokenizerBase) -> None:
    """Write both in Hugging Face's layout; neither use of the tokenizer nor how it was loaded changes a byte."""
    model.save_pretrained(folder)
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    for key in ("is_local", "local_files_only"):
        tokenizer.init_kwargs.pop(key, None)
    tokenizer.save_pretrained(folder)


def _load_model(name: str, kind: Kind, label: str, safe: dict[str, Any], *, weights: bool) -> "PreTrainedModel | Bert":
    adapters = f"{label} holds adapters ({ADAPTERS}); merge them first, as peft's merge_and_unload does"
    if (Path(name) / ADAPTERS).exists():  # transformers would load the base that they name, or leave them out
        raise ValueError(adapters)
    if not is_folder(name) and not HUB_NAME.fullmatch(name):
        raise ValueError(f"{label} is neither a folder nor a name of the Hub, such as bert-base-uncased")
    if is_folder(name) and not any(Path(name).glob("*.safetensors")):
        raise ValueError(f"{label} holds no *.safetensors; other weights can run code: eadpr convert {name} --out NEW")
    with as_value_error(f"{label} cannot be loaded by {kind}"):
        config = AutoConfig.from_pretrained(name, **OUTPUTS, **safe)
        if (attention := config._attn_implementation) not in (None, "eager", "sdpa"):
            raise ValueError(f"its config.json has attn_implementation {attention!r}; take it out")
        _check_kinds(Path(name), config)
        if not weights:
            with torch.device("meta"):
                ours = kind == "AutoModel" and computes(config)
                return Bert(config) if ours else getattr(transformers, kind).from_config(config)
        if kind == "AutoModel" and (bert := Bert.load(Path(name), config)):
            return bert
        checks = {"use_safetensors": True, "output_loading_info": True, "ignore_mismatched_sizes": True}
        load = getattr(transformers, kind).from_pretrained
        model, info = load(name, config=config, dtype=torch.float32, **checks, **safe)
    if getattr(model, "_hf_peft_config_loaded", False):  # of a hub name
        raise ValueError(adapters)
    _check_weights(model, info, label)
    return model


def position_limit(model: "PreTrainedModel | Bert") -> int:
    """Return the longest input that the model has positions for; RoBERTa keeps the first rows for padding."""
    limit = getattr(model.config, "max_position_embeddings", None) or UNLIMITED
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return limit - module.padding_idx - 1
    return limit


def check_positions(model: "PreTrainedModel | Bert", key: str, tokens: int) -> None:
    """Raise ValueError where the setting `key` asks for more tokens than the model has positions."""
    if tokens > (limit := position_limit(model)):
        name = model.name_or_path or "the encoder"
        raise ValueError(f"{key} must not exceed the {limit} positions of {name}, found {tokens}")


@contextmanager
def as_value_error(failure: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the libraries below transformers raise `Exception` itself, too
        raise ValueError(f"{failure} ({' '.join(f'{type(error).__name__}: {error}'.split())[:300]})") from error


def _check_kinds(folder: Path, config: PreTrainedConfig) -> None:
    """Refuse what would be loaded as something else: weights of another family, or integers as numbers."""
    family = type(config).__name__.removesuffix("Config")
    # A class of another family is imported, which takes seconds.
    for name in (name for name in config.architectures or [] if not name.startswith(family)):
        if getattr(getattr(transformers, name, None), "config_class", type(config)) is not type(config):
            raise ValueError(f"its config.json has the weights of {name}, but model_type {config.model_type}")
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            kinds = {key: file.get_slice(key).get_dtype() for key in file.keys()}  # noqa: SIM118
        for key, kind in kinds.items():
            masks = ("BOOL", "U8") * key.endswith("bias")  # of GPT-2 and its kin
            if key.endswith(("weight", "bias")) and kind not in ("F16", "BF16", "F32", "F64", *masks):
                raise ValueError(f"{key} in {path.name} is of type {kind}; give the model before it was quantised")


def _check_weights(model: "PreTrainedModel", info: dict[str, Any], label: str) -> None:
    parts = {name for name, _ in model.base_model.named_children()} - {"pooler"}
    unknown = [key.removeprefix(f"{model.base_model_prefix}.") for key in info["unexpected_keys"]]
    wrong = {
        "has less weights": [key for key in info["missing_keys"] if "pooler" not in key.split(".")],
        "has weights of another shape": [key for key, *_ in info["mismatched_keys"]],
        # Those of heads, and buffers of positions in old files, may be there.
        "has more weights": [key for key in unknown if key.split(".")[0] in parts and "position_ids" not in key],
    }
    for problem, keys in wrong.items():
        if keys:
            listed = f"{', '.join(sorted(keys)[:5])} ({len(keys)} in all)"
            raise ValueError(f"{label} {problem} than its config.json says: {listed}; is the folder whole?")
