"""Model folders of a user's own (base.model, annotator.model), which DVC does not know.

The stage `configs` hands the hashes of their files to the stages that load them, so that other files rerun those, and
loading refuses a folder that has changed since.
"""

import os
from pathlib import Path

from eadpr.runtime.files import sha256
from eadpr.runtime.section import Section

SIDES = ("question_encoder", "passage_encoder")  # subfolders of a folder with two encoders
READ = (".codes", ".json", ".model", ".safetensors", ".spm", ".txt")  # config, tokenizer and weights; no pickles


class ModelFiles(Section):
    """Name -> sha256 of the files that loading reads, those of two encoders as `question_encoder/model.safetensors`;
    empty where the model is no folder."""

    sha256: dict[str, str]


NO_FILES = ModelFiles(sha256={})


def is_folder(model: str) -> bool:
    """False, too, of what is too long to be a path."""
    return os.path.isdir(model)


def model_files(model: str) -> ModelFiles:
    """Those of a folder, relative to the repository's root, where stages run; none for a hub name."""
    folder = Path(model)
    if not is_folder(model):
        return NO_FILES
    found = [path for part in (folder, *(folder / side for side in SIDES)) for path in sorted(part.glob("*"))]
    read = [path for path in found if path.suffix in READ and path.is_file()]
    return ModelFiles(sha256={path.relative_to(folder).as_posix(): sha256(path) for path in read})


def has_two_sides(model: str) -> bool:
    """Whether it is a folder as `base`, `train` and `stages.convert` write it."""
    return all(is_folder(f"{model}/{side}") for side in SIDES)


def sides_differ(model: str) -> bool:
    """Whether it is a folder of two encoders with unlike weights."""
    found = model_files(model).sha256
    return len({found.get(f"{side}/model.safetensors") for side in SIDES}) > 1


def check(model: str, given: ModelFiles) -> None:
    """Raise ValueError naming the files that are not as they were when the stage `configs` read them."""
    then, now = given.sha256, model_files(model).sha256
    changed = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
    if changed:
        raise ValueError(
            f"{model}: {', '.join(changed)} changed, came or went since the stage `configs` read the folder; run"
            " `dvc repro -f configs` and then `dvc repro`"
        )
