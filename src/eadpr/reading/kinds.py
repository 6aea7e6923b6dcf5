"""The kinds of readers: modules with `start`, `load`, `save`, `terms`, `Examples` and `Answerer`, whatever they read
with; and what a folder of a reader says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

from torch.nn import Module

from eadpr import files
from eadpr.reading import extractive, fid
from eadpr.reading.config import Reader

KINDS: dict[str, ModuleType] = {"extractive": extractive, "fid": fid}
SETTINGS = "reader.json"


def save(folder: Path, reader: Module) -> None:
    """Into an existing folder: the model in Hugging Face's layout and the settings that it was trained with."""
    KINDS[reader.settings.kind].save(folder, reader)
    files.write_json(folder / SETTINGS, reader.settings.model_dump())


def load(folder: Path) -> Module:
    """A reader in evaluation mode, as `save` left it."""
    return KINDS[(settings := settings_of(folder)).kind].load(folder, settings)


def settings_of(folder: Path) -> Reader:
    path = folder / SETTINGS
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give a folder made by the stage `reader`")
    return Reader.model_validate(json.loads(path.read_text(encoding="utf-8")))
