"""Readers on disk, of any kind.

Imports nothing of training, so that an edit there reruns no stage that only reads.
"""

from pathlib import Path

from torch.nn import Module

from eadpr.readers import extractive, fid
from eadpr.readers.config import Reader
from eadpr.runtime import files

# The module that starts, saves and loads a reader.
MODELS = {"extractive": extractive, "paths": extractive, "fid": fid}
SETTINGS = "reader.json"  # beside a reader's model


def save(folder: Path, reader: Module) -> None:
    """Into an existing folder: the model in Hugging Face's layout and the settings that it was trained with."""
    for key in ("is_local", "local_files_only"):  # how the tokenizer was loaded, not what it is
        reader.tokenizer.init_kwargs.pop(key, None)
    MODELS[reader.settings.kind].save(folder, reader)
    files.write_json(folder / SETTINGS, reader.settings.model_dump())


def load(folder: Path) -> Module:
    """A reader in evaluation mode, as `save` left it."""
    settings = settings_of(folder)
    return MODELS[settings.kind].load(folder, settings)


def check_as_trained(folder: Path, settings: Reader) -> None:
    """Raises ValueError where a trained reader in a folder, not to be trained further, would read other inputs than it
    learnt from."""
    if settings.steps != 0 or not (folder / SETTINGS).is_file():
        return
    trained = settings_of(folder)
    for name in ("kind", "tokens", "question_tokens", "lowercase"):
        own, learnt = getattr(settings, name), getattr(trained, name)
        if own != learnt:
            raise ValueError(
                f"{folder} learnt with {name} {learnt}, but {settings.section}.{name} is {own} and"
                f" {settings.section}.steps 0; set it to {learnt}"
            )


def settings_of(folder: Path) -> Reader:
    path = folder / SETTINGS
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give a folder made by the stage `reader`")
    return Reader.model_validate_json(path.read_text(encoding="utf-8"))
