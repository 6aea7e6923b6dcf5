"""What the stage `annotator` tells those who use its models: which there are, how they are asked, and which questions
each was trained on and so may not annotate."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eadpr.runtime import files

NAME = "annotator.json"


class Prompt(NamedTuple):
    """UnifiedQA's input (methods.md 2.8): lower case, question first, a literal backslash-n between, "(title) text"."""

    form: str
    lowercase: bool

    def input(self, question: str, title: str, text: str) -> str:
        before, after = self.form.split("{question}")
        context = self.context(title, text)
        return self.cased(before.replace("{context}", context) + question + after.replace("{context}", context))

    def start(self, question: str, title: str) -> int:
        """Where the text begins in the input."""
        before = self.form.split("{context}")[0].replace("{question}", question)
        return len(self.cased(before) + self.context(title, ""))

    def context(self, title: str, text: str) -> str:
        return self.cased(f"({title}) {text}" if title else text)

    def cased(self, text: str) -> str:
        return text.lower() if self.lowercase else text


class Model(NamedTuple):
    """A QA model and the questions it was trained on, sorted; `path` is a name, or a folder beside the manifest."""

    path: str
    trained_on: list[str]


class Manifest(NamedTuple):
    """There are no models where annotator.model is none or endpoint, which `source` then is. A model given by folder
    has `hashes` (see `ModelFiles`), one given by name may have a `revision`."""

    source: str
    prompt: Prompt
    models: list[Model]
    hashes: dict[str, str]
    revision: str | None = None

    def model_for(self, question_id: str, seen: Sequence[frozenset[str]]) -> int:
        """Index of the first model that was not trained on the question; `seen` are the models' trained_on as sets."""
        for index, trained_on in enumerate(seen):
            if question_id not in trained_on:
                return index
        raise ValueError(f"every annotator was trained on question {question_id!r}; run `dvc repro annotator`")

    def seen(self) -> list[frozenset[str]]:
        return [frozenset(model.trained_on) for model in self.models]


def read_manifest(folder: Path) -> Manifest:
    path = folder / NAME
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `dvc repro annotator`")
    found = files.read_json(path, *Manifest._fields)
    models = [Model(**model) for model in found["models"]]
    return Manifest(found["source"], Prompt(**found["prompt"]), models, found["hashes"], found["revision"])


def write_manifest(folder: Path, manifest: Manifest) -> None:
    models = [model._asdict() for model in manifest.models]
    files.write_json(folder / NAME, manifest._asdict() | {"prompt": manifest.prompt._asdict(), "models": models})
