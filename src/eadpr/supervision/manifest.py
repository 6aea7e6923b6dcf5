"""The manifest of the annotator's models: their folders, the prompt, and the questions that each was trained on and so
may not annotate. It is read without the models' libraries."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eadpr.runtime import files

MANIFEST = "annotator.json"
Request = tuple[str, ...]  # input and target; of a model of relevance question, title and text
# (index of a model, requests) -> nll of each; of a model of relevance what stands for it, highest best
Score = Callable[[int, Sequence[Request]], np.ndarray]


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
    `hashes` if it is a folder (see `ModelFiles`), and may have a `revision` if it is a name. `relevance` is how a model
    of relevance (`training.relevance`) chooses, removal or match, and None for a QA model."""

    source: str
    prompt: Prompt
    models: list[Model]
    hashes: dict[str, str]
    revision: str | None = None
    relevance: str | None = None

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
