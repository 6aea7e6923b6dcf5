"""Sequence-to-sequence question answerers in Hugging Face's layout."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from eadpr.runtime import machine, model_folders
from eadpr.supervision.manifest import Manifest
from eadpr.training import relevance
from eadpr.training.pretrained import load_whole

QaModel = tuple[PreTrainedModel, PreTrainedTokenizerBase]


def load(model: str, *, revision: str | None = None, setting: str = "annotator.model") -> QaModel:
    """Load a sequence-to-sequence model by name or folder, ready to score; safetensors only, no code from elsewhere.
    `revision` is a commit or tag of a name; None is its main branch. `setting` is the setting that names the model."""
    loaded, tokenizer = load_whole(model, "AutoModelForSeq2SeqLM", setting=setting, revision=revision)
    return loaded.eval(), tokenizer


def load_annotator(folder: Path, manifest: Manifest, index: int) -> Any:
    """Load a model of the manifest in `folder`. Raises ValueError if the user's model changed since `configs`."""
    path = manifest.models[index].path
    if manifest.source == "build":
        path = str(folder / path)
    else:
        model_folders.check(path, model_folders.ModelFiles(sha256=manifest.hashes))
    return (relevance.load if manifest.relevance else load)(path, revision=manifest.revision)


def load_scorers(folder: Path, manifest: Manifest, hardware: machine.Machine, indices: Sequence[int]) -> list[Any]:
    models = [load_annotator(folder, manifest, index) for index in indices]
    for model in models:
        machine.place_model(model[0] if isinstance(model, tuple) else model, hardware, inference=True)
    return models
