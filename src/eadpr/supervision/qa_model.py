"""A sequence-to-sequence question answerer and its tokenizer in Hugging Face's layout: loading and saving."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)


def load(
    model: str, *, revision: str | None = None, setting: str = "annotator.model"
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A sequence-to-sequence model by name or folder, ready to score; safetensors only, no code from elsewhere.

    `revision` is a commit or tag of a name; None is its main branch. `setting` is where the model is named.
    """
    transformers.utils.logging.disable_progress_bar()
    options = {"trust_remote_code": False, "revision": revision or "main"}
    try:
        tokenizer = AutoTokenizer.from_pretrained(model, **options)
        loaded = AutoModelForSeq2SeqLM.from_pretrained(model, use_safetensors=True, dtype=torch.float32, **options)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{setting} {model!r} is not a sequence-to-sequence model with safetensors weights, by name or"
            f" folder; convert other weights with save_pretrained first ({error})"
        ) from error
    return loaded.eval(), tokenizer


def save(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    """In the bytes of `tokenizer` nothing is left of how it was used."""
    tokenizer.backend_tokenizer.no_truncation()  # a call leaves its truncation behind, and saving would write it
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
