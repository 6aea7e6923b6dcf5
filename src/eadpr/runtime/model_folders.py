"""Model folders of the user (base.model, annotator.model), which DVC does not track: `configs` passes hashes of their
files to the stages that load them, and a folder that has changed since is refused."""

import os
import re
from pathlib import Path

from eadpr.runtime.files import sha256
from eadpr.runtime.section import Section

SIDES = ("question_encoder", "passage_encoder")  # subfolders of a folder with two encoders
HUB_NAME = re.compile(r"\w[\w.-]{0,95}(/[\w.-]{1,96})?")
READ = (".codes", ".json", ".model", ".safetensors", ".spm", ".txt")  # config, tokenizer and weights; no pickles


class ModelFiles(Section):
    """Hashes of what loading reads by file name, such as `question_encoder/model.safetensors`; none for hub models."""

    sha256: dict[str, str]


NO_FILES = ModelFiles(sha256={})


def is_folder(model: str) -> bool:
    """Tell a folder from a name of the hub; a text too long for a path is no folder."""
    return os.path.isdir(model)


def model_files(model: str) -> ModelFiles:
    """Hash the files of a model folder and its modules, such as 1_Pooling; a name of the hub has none."""
    folder = Path(model)
    if not is_folder(model):
        return NO_FILES
    hashes = {}
    for part in (folder, *(folder / side for side in SIDES)):
        for path in sorted([*part.glob("*"), *part.glob("[0-9]*_*/*")]):
            if path.suffix in READ and path.is_file():
                hashes[path.relative_to(folder).as_posix()] = sha256(path)
    return ModelFiles(sha256=hashes)


def has_two_sides(model: str) -> bool:
    """Recognise a folder with a question and a passage encoder, as `base`, `train` and `eadpr convert` write it."""
    return all(is_folder(f"{model}/{side}") for side in SIDES)


def sides_differ(model: str) -> bool:
    hashes = model_files(model).sha256
    return len({hashes.get(f"{side}/model.safetensors") for side in SIDES}) > 1


def check(model: str, expected: ModelFiles) -> None:
    """Raise ValueError where a file has changed since the stage `configs` hashed it."""
    old, new = expected.sha256, model_files(model).sha256
    changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    if changed:
        names = ", ".join(changed)
        raise ValueError(f"{model}: {names} changed since `configs`; run `dvc repro -f configs` and then `dvc repro`")
