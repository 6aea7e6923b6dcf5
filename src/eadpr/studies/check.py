"""`eadpr study --check`: which pages of studies are of the code and settings of this checkout."""

import json
import re
import shlex
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from eadpr.runtime import stage_code
from eadpr.settings.yaml import PARAMS, flatten, load, read_yaml
from eadpr.studies import experiment, provenance
from eadpr.studies.overrides import apply_overrides


def check_pages(pattern: str) -> int:
    """Print what has changed since each page in PAGES was measured; return 1 if anything has, else 0."""
    changes = []
    for path in sorted(experiment.PAGES.glob(f"{pattern}.json")):
        try:
            changes.append(_change(path.parent.name, json.loads(path.read_bytes())))
        except (KeyError, ValueError) as error:
            changes.append(f"cannot be checked: {' '.join(str(error).split())[:200]}")
        typer.echo(f"{path.with_suffix('.md')}: {changes[-1] or 'of this code and these settings'}")
    if not changes:
        raise ValueError(f"{experiment.PAGES} has no {pattern}.json")
    return int(any(changes))


def _change(collection: str, record: Mapping[str, Any]) -> str:
    name, *words = shlex.split(record["command"])
    seeds, set_ = ([words[i + 1] for i, word in enumerate(words) if word == key] for key in ("--seed", "-S"))
    _, overrides = experiment.resolve(name, collection, [*map(int, seeds)], set_)
    values, (commit, _, uncommitted) = apply_overrides(overrides, load(PARAMS)), record["commit"].partition(" ")
    if changed := sorted({line.split()[-1] for line in _code("", values) - _code(commit, values)}):
        return f"{len(changed)} files of code changed since {commit}: {', '.join(changed[:3])}"
    if record.get("settings") != experiment.settings_md5(values):
        return f"settings changed since {commit}" if "settings" in record else "settings not recorded"
    return f"measured {uncommitted}" if uncommitted else ""


def _code(commit: str, values: Mapping[str, Any]) -> set[str]:
    """Return commands and lines of `stage_code` of a run's stages, of the files here where `commit` is empty."""
    settings = flatten(values)
    return {line for names, lines in _stages(commit) if all(settings.get(key, True) for key in names) for line in lines}


@cache
def _stages(commit: str) -> list[tuple[list[str], list[str]]]:
    """Return the settings for whose entries each stage runs, with its command and its lines of `stage_code`."""
    with TemporaryDirectory() as folder:
        root = Path(folder) if commit else Path()
        if commit:
            provenance.git("archive", f"--output={folder}/code.zip", commit, "src", "stages", "dvc.yaml")
            shutil.unpack_archive(f"{folder}/code.zip", folder)
        lists, stages = dict(stage_code.lists(root)), []
        for stage in read_yaml(root / "dvc.yaml")["stages"].values():
            names = re.findall(r"\$\{([\w.]+)\}", f"{stage.get('foreach')} {stage.get('matrix')}")
            command = stage.get("do", stage)["cmd"]
            module = re.search(r"stages\.(\w+)", command)[1]
            if module not in ("configs", "explore"):  # which change no figure
                stages.append((names, [f"{command} of dvc.yaml", *lists.get(module, "").splitlines()]))
        return stages
