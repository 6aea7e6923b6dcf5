"""The manifest of the annotator's models: their folders, the prompt, and the questions that each was trained on and so
may not annotate."""

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
        start, end = self.form.split("{question}")
        context = self.context(title, text)
        return self.cased(start.replace("{context}", context) + question + end.replace("{context}", context))

    def start(self, question: str, title: str) -> int:
        """Return the position in the input where the text begins."""
        prefix = self.form.split("{context}")[0].replace("{question}", question)
        return len(self.cased(prefix) + self.context(title, ""))

    def context(self, title: str, text: str) -> str:
        return self.cased(f"({title}) {text}" if title else text)

    def cased(self, text: str) -> str:
        return text.lower() if self.lowercase else text


class Model(NamedTuple):
    """A QA model and the questions it was trained on, sorted; `path` is a name, or a folder next to the manifest."""

    path: str
    trained_on: list[str]


class Manifest(NamedTuple):
    """`source` is build, given, or, without models, the setting annotator.model (none or endpoint). A user's model has
    `hashes` if it is a folder (see `ModelFiles`), and may have a `revision` if it is a name."""

    source: str
    prompt: Prompt
    models: list[Model]
    hashes: dict[str, str]
    revision: str | None = None

    def model_for(self, question_id: str, seen: Sequence[frozenset[str]]) -> int:
        """Return the index of the first model not trained on the question; `seen` are the sets of trained_on."""
        return next(index for index, trained_on in enumerate(seen) if question_id not in trained_on)

    def seen(self) -> list[frozenset[str]]:
        return [frozenset(model.trained_on) for model in self.models]


def read_manifest(folder: Path) -> Manifest:
    path = folder / NAME
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `dvc repro annotator`")
    fields = files.read_json(path, *Manifest._fields)
    fields |= {"prompt": Prompt(**fields["prompt"]), "models": [Model(**model) for model in fields["models"]]}
    return Manifest(**{name: fields[name] for name in Manifest._fields})


def write_manifest(folder: Path, manifest: Manifest) -> None:
    models = [model._asdict() for model in manifest.models]
    files.write_json(folder / NAME, manifest._asdict() | {"prompt": manifest.prompt._asdict(), "models": models})
