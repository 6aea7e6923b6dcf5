"""Readers on disk, of any kind. A kind has a model (here), what it learns (`learning.LEARNING`) and what it answers
(`answering.ANSWERING`)."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from torch.nn import Module

from eadpr import files
from eadpr.reading import extractive, fid
from eadpr.reading.config import Reader

MODELS: dict[str, ModuleType] = {"extractive": extractive, "paths": extractive, "fid": fid}
SETTINGS = "reader.json"


def save(folder: Path, reader: Module) -> None:
    """Into an existing folder: the model in Hugging Face's layout and the settings that it was trained with."""
    MODELS[reader.settings.kind].save(folder, reader)
    files.write_json(folder / SETTINGS, reader.settings.model_dump())


def load(folder: Path) -> Module:
    """A reader in evaluation mode, as `save` left it."""
    return MODELS[(settings := settings_of(folder)).kind].load(folder, settings)


def settings_of(folder: Path) -> Reader:
    path = folder / SETTINGS
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give a folder made by the stage `reader`")
    return Reader.model_validate_json(path.read_text(encoding="utf-8"))
