"""This repository: its root, and the stages of its dvc.yaml."""

import re
from pathlib import Path

from ruamel.yaml import YAML

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
