"""Readers on disk, of any kind.

Imports nothing of training, so that an edit there reruns no stage that only reads.
"""

from pathlib import Path

from torch.nn import Module

from eadpr.readers import extractive, fid
from eadpr.readers.config import Reader
from eadpr.runtime import files

# The module that starts, saves and loads a reader of each kind.
MODELS = {"extractive": extractive, "paths": extractive, "fid": fid}
SETTINGS = "reader.json"  # in the folder of a reader's model


def save(folder: Path, reader: Module) -> None:
    """Write the model in Hugging Face's layout and its settings to an existing folder."""
    MODELS[reader.settings.kind].save(folder, reader)
    files.write_json(folder / SETTINGS, reader.settings.model_dump())


def load(folder: Path) -> Module:
    settings = Reader.model_validate_json((folder / SETTINGS).read_bytes())
    return MODELS[settings.kind].load(folder, settings)
