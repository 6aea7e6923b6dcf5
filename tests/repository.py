"""This repository: its root, the stages of its dvc.yaml, its parameters and studies. The last two take a second
to read, so they are read once."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from eadpr.settings.resolve import checked, load
from eadpr.studies.run import Study

ROOT = Path(__file__).resolve().parent.parent


def stage_module(command: str) -> str:
    return re.search(r"-m stages\.(\w+)", command)[1]


def is_code(dep: str) -> bool:
    """Whether it is code itself (of `configs`) or the list of a stage's code."""
    return dep in ("src/eadpr", "stages") or "/configs/code/" in dep


def stages() -> dict[str, dict]:
    """The stages of dvc.yaml by name, `foreach` unwrapped."""
    pipeline = YAML(typ="safe", pure=True).load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    return {name: stage.get("do", stage) for name, stage in pipeline["stages"].items()}


@cache
def values() -> dict[str, Any]:
    """Of params.yaml; nobody may change them."""
    return load(ROOT / "params.yaml")


@cache
def studies() -> dict[str, Study]:
    path = ROOT / "studies.yaml"
    return {name: checked(Study, found, f"{name}.", path=path) for name, found in load(path).items()}
