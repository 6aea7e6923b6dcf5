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

from eadpr.runtime import stage_code
from eadpr.settings.yaml import PARAMS, flatten, load, read_yaml
from eadpr.studies import experiment, provenance
from eadpr.studies.overrides import apply_overrides

NO_FIGURES = {"configs", "explore"}  # stages that change no figure of a page


def check_pages(folder: Path, study: str) -> dict[Path, str]:
    """Return for each page of a study, "*" for all, what has changed since it was measured, "" if nothing has."""
    paths = sorted(folder.glob(f"*/{study}.json"))
    return {path.with_suffix(".md"): _change(json.loads(path.read_bytes())) for path in paths}


def _change(record: Mapping[str, Any]) -> str:
    name, *words = shlex.split(record["command"])
    options = list(zip(words[::2], words[1::2], strict=True))
    seeds, set_ = ([value for option, value in options if option == key] for key in ("--seed", "-S"))
    try:
        _, overrides = experiment.resolve(name, dict(options).get("--collection"), [*map(int, seeds)], set_)
    except ValueError as error:
        return f"its command is refused now: {str(error).partition(';')[0]}"
    values, (commit, _, uncommitted) = apply_overrides(overrides, load(PARAMS)), record["commit"].partition(" ")
    code = _code(values)
    if changed := code - _code(values, commit):
        return f"{len(changed)} of {len(code)} files of code have changed since {commit}"
    if record.get("settings") != experiment.settings_md5(values):
        return f"its settings have changed since {commit}, or are not recorded"
    return uncommitted


def _code(values: Mapping[str, Any], commit: str | None = None) -> set[str]:
    """Return the lines of `stage_code` for the stages that a run has, of a commit or of the files here."""
    settings, lines = flatten(values), set()
    for stage in read_yaml(Path("dvc.yaml"))["stages"].values():
        repeated = re.findall(r"\$\{([\w.]+)\}", f"{stage.get('foreach')} {stage.get('matrix')}")
        module = re.search(r"stages\.(\w+)", stage.get("do", stage)["cmd"])[1]
        if module not in NO_FIGURES and all(settings.get(name, True) for name in repeated):
            lines.update(_lists(commit).get(module, "").splitlines())
    return lines


@cache
def _lists(commit: str | None) -> dict[str, str]:
    if commit is None:
        return dict(stage_code.lists())
    with TemporaryDirectory() as folder:
        archive = f"{folder}/code.tar"
        provenance.git("archive", f"--output={archive}", commit, "src", "stages")
        shutil.unpack_archive(archive, folder, filter="data")
        return dict(stage_code.lists(Path(folder)))
