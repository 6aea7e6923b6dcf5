"""Run a study as an experiment of DVC, and write its page and numbers."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from eadpr.runtime import files
from eadpr.settings.model import Layout
from eadpr.settings.resolve import configs, load
from eadpr.studies import page, provenance
from eadpr.studies.overrides import apply_overrides, check_effect, make_overrides
from eadpr.studies.status import md5
from eadpr.studies.study import STUDIES, Study, expand, read_studies, with_seeds

PARAMS, PAGES = Path("params.yaml"), Path("docs/studies")
UNTRACKED = ("ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z")


def resolve(
    name: str, collection: str | None, seeds: Sequence[int], overrides: Sequence[str]
) -> tuple[Study, list[str]]:
    """Return the study, and the overrides that make its parameters; raises ValueError where it cannot run."""
    values, studies = load(PARAMS), read_studies(STUDIES)
    if name not in studies:
        near = [study for study in studies if Path(name).stem in study] or get_close_matches(name, studies) or studies
        raise ValueError(f"{STUDIES} has no study {name!r}; try {', '.join(near)}")
    study = studies[name]
    if collection is not None:
        study = study.model_copy(update={"settings": study.settings | {"collection": collection}})
    if seeds:
        study = with_seeds(study, seeds)
    expanded = expand(study, values, overrides)
    configs(expanded)  # refuses wrong settings
    check_effect(overrides, expanded)
    return study, list(make_overrides(values, expanded))


def settings_md5(values: Mapping[str, Any]) -> str:
    """Return a hash of what a run's stages are given and in which order they run; FOLDER stands for a path."""
    hidden = json.loads(provenance.hide_paths([json.dumps(values)])[0])
    graph = {key: hidden[key] for key in Layout.model_fields if key not in ("arms", "collections")}
    return md5(json.dumps([graph, configs(hidden)], sort_keys=True).encode())


def experiment_command(overrides: Sequence[str], *options: str) -> list[str]:
    return ["dvc", "exp", "run", "--temp", *options, *(word for change in overrides for word in ("-S", change))]


def run_experiment(name: str, study: Study, overrides: Sequence[str], words: Sequence[str]) -> Path:
    """Run the experiment in a copy of the tree, and write page and numbers; `words` are the command line's."""
    values, commit = apply_overrides(overrides, load(PARAMS)), provenance.commit()
    collection, settings = values["collection"], settings_md5(values)
    experiment = f"{name}-{collection}-{datetime.now():%Y%m%d-%H%M%S}"
    options = ["-n", experiment]
    for path in filter(None, provenance.git(*UNTRACKED).split("\0")):  # DVC's copy of the tree has tracked files alone
        options += ["-C", path.rstrip("/")]
    if code := subprocess.run(experiment_command(overrides, *options), check=False).returncode:
        raise typer.Exit(code)  # DVC has said why
    text, md5 = read_report(experiment, collection)
    record = {
        "about": study.about, "command": shlex.join(provenance.hide_paths(words)), "commit": commit,
        "date": f"{datetime.now():%Y-%m-%d}", "overrides": provenance.hide_paths(overrides), "report": md5,
        "settings": settings,
    } | page.parse_report(text)  # fmt: skip
    path = PAGES / collection / f"{name}.md"
    earlier = page.VERDICT.search(path.read_text(encoding="utf-8")) if path.exists() else None
    verdict = earlier[0] if earlier else page.UNDECIDED
    files.write_json(path.with_suffix(".json"), record)
    files.write_text(path, page.write_page(f"{name}, {collection}", record, verdict))
    typer.echo(f"study: the whole report: dvc get . reports/{collection} --rev {experiment} -o FOLDER")
    return path


def read_report(experiment: str, collection: str) -> tuple[str, str]:
    """Return the Markdown of an experiment's report and its md5, by which DVC keeps it."""
    from dvc.api import DVCFileSystem

    tree, path = DVCFileSystem(rev=experiment), f"reports/{collection}/table.md"
    return tree.read_text(path, encoding="utf-8"), tree.info(path)["md5"]
