"""Sequence-to-sequence question answerers in Hugging Face's layout, loaded and saved, and the manifest of the
annotator's models: their folders, the prompt, and the questions that each was trained on and so may not annotate."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import transformers
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from eadpr.runtime import files, machine, model_folders
from eadpr.runtime.machine import Machine
from eadpr.runtime.model_folders import ModelFiles
from eadpr.training.pretrained import load_whole

QaModel = tuple[PreTrainedModel, PreTrainedTokenizerBase]
MANIFEST = "annotator.json"


class Prompt(NamedTuple):
    """UnifiedQA's input (methods.md 2.8): lower case, question first, a literal backslash-n between, "(title) text"."""

    form: str
    lowercase: bool

    def input(self, question: str, title: str, text: str) -> str:
        start, end = self.form.split("{question}")
        context = self.context(title, text)
        return self.cased(start.replace("{context}", context) + question + end.replace("{context}", context))

    def context(self, title: str, text: str) -> str:
        return self.cased(f"({title}) {text}" if title else text)

    def cased(self, text: str) -> str:
        return text.lower() if self.lowercase else text


class Model(NamedTuple):
    """A QA model and the questions it was trained on, sorted; `path` is a name, or a folder next to the manifest."""

    path: str
    trained_on: list[str]


class Manifest(NamedTuple):
    """`source` is build, given, or, without models, the setting annotator.model (none). A user's model has
    `hashes` if it is a folder (see `ModelFiles`), and may have a `revision` if it is a name."""

    source: str
    prompt: Prompt
    models: list[Model]
    hashes: dict[str, str]
    revision: str | None = None

    def assign(self, question_ids: Sequence[str]) -> list[int]:
        """Return for each question the index of the first model that was not trained on it."""
        seen = [frozenset(model.trained_on) for model in self.models]
        return [next(index for index, ids in enumerate(seen) if i not in ids) for i in question_ids]


def read_manifest(folder: Path) -> Manifest:
    fields = files.read_json(folder / MANIFEST, *Manifest._fields)
    fields |= {"prompt": Prompt(**fields["prompt"]), "models": [Model(**model) for model in fields["models"]]}
    return Manifest(**{name: fields[name] for name in Manifest._fields})


def write_manifest(folder: Path, manifest: Manifest) -> None:
    models = [model._asdict() for model in manifest.models]
    files.write_json(folder / MANIFEST, manifest._asdict() | {"prompt": manifest.prompt._asdict(), "models": models})


def load(model: str, *, revision: str | None = None, setting: str = "annotator.model") -> QaModel:
    """Load a sequence-to-sequence model by name or folder, ready to score; safetensors only, no code from elsewhere.
    `revision` is a commit or tag of a name; None is its main branch. `setting` is the setting that names the model."""
    loaded, tokenizer = load_whole(model, AutoModelForSeq2SeqLM, setting=setting, revision=revision)
    return loaded.eval(), tokenizer


def load_annotator(folder: Path, manifest: Manifest, index: int) -> QaModel:
    """Load a model of the manifest in `folder`. Raises ValueError if the user's model changed since `configs`."""
    path = manifest.models[index].path
    if manifest.source == "build":
        path = str(folder / path)
    else:
        model_folders.check(path, ModelFiles(sha256=manifest.hashes))
    return load(path, revision=manifest.revision)


def load_scorers(folder: Path, manifest: Manifest, hardware: Machine, indices: Sequence[int]) -> list[QaModel]:
    """Load models of the manifest, ready to score on the device."""
    models = []
    for index in indices:
        model, tokenizer = load_annotator(folder, manifest, index)
        models.append((machine.place_model(model, hardware), tokenizer))
    return models


def save(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write model and tokenizer; earlier use of the tokenizer changes no byte."""
    tokenizer.backend_tokenizer.no_truncation()  # a call leaves its truncation behind, and saving would write it
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
