"""This repository: its root, stages, parameters and studies. The last two take a second, so they are read once."""

import importlib
import itertools
import re
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from eadpr.settings.resolve import load
from eadpr.studies.study import Study, read_studies

ROOT = Path(__file__).resolve().parent.parent


def stage_module(command: str) -> str:
    return re.search(r"-m stages\.(\w+)", command)[1]


def stage_paths(command: str) -> dict[str, Path | None]:
    """The paths that the command of a stage in dvc.yaml stands for; names in ${...} stay as they are."""
    main = importlib.import_module(f"stages.{stage_module(command)}").main
    words = command.partition("-m stages.")[2].split()[1:]
    options = {words[i].removeprefix("--"): words[i + 1] for i in range(len(words)) if words[i].startswith("--")}
    names = [word for previous, word in itertools.pairwise(["", *words]) if "--" not in previous + word]
    return main.locate(dict(zip(main.arguments(), names, strict=True)), dict.fromkeys(main.options()) | options)


def is_code(dep: str) -> bool:
    """Recognise the list of a stage's code, or the code itself, on which `configs` depends."""
    return dep in ("src/eadpr", "stages") or "/configs/code/" in dep


def stages() -> dict[str, dict]:
    """Read the stages of dvc.yaml by name, without `foreach`."""
    pipeline = YAML(typ="safe", pure=True).load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    return {name: stage.get("do", stage) for name, stage in pipeline["stages"].items()}


@cache
def values() -> dict[str, Any]:
    """Read params.yaml once; callers must not change it."""
    return load(ROOT / "params.yaml")


@cache
def studies() -> dict[str, Study]:
    return read_studies(ROOT / "data" / "studies")
