"""`eadpr status`: which settings differ from the commit, and which stages a run would run and why.

Until the stage `configs` has run, `dvc status` knows of an edit of params.yaml only that it is to run. Here its files
are made elsewhere and compared with dvc.lock.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import typer

from eadpr.settings.resolve import write_configs
from eadpr.settings.yaml import PARAMS, completed, locked_collection, read_yaml
from eadpr.studies.overrides import apply_overrides, check_effect, make_overrides
from eadpr.studies.provenance import edits

CONFIGS = "configs"  # the stage that every edit runs; it takes a second


class Step(NamedTuple):
    """A stage of DVC with the md5 sums of its inputs and outputs in dvc.lock, None where it never ran. `reasons`: a
    command or sources that differ from dvc.lock, and outputs that are neither here nor in DVC's cache."""

    name: str
    inputs: Mapping[str, str | None]
    outputs: Mapping[str, str | None]
    reasons: list[str]


def main(set_: list[str] = typer.Option([], "--set", "-S", help="As for dvc exp run: loss.tau1=0.5")) -> str:
    """Say which settings differ from the commit, and which stages a run would run and why. Nothing is touched."""
    params = apply_overrides(set_, read_yaml(PARAMS))
    values = completed(params)
    check_effect(set_, values)
    collection = values["collection"]
    folder = Path("data") / collection / CONFIGS
    with TemporaryDirectory() as temporary:
        write_configs(values, Path(temporary))
        files = {str(folder / path.relative_to(temporary)): path.read_bytes() for path in Path(temporary).rglob("*.*")}
    steps = read_steps(params)
    stale, later = find_stale(steps, {path: md5(content) for path, content in files.items()})
    lines = [f"differs from the commit: {change}" for change in edits(collection)]
    if is_unbuilt(steps, stale):
        lines.append(f"nothing is built for {collection}, or another collection was built since:")
        will = f"will run its {len(steps)} stages; what ran before comes from DVC's cache"
        return "\n".join([*lines, f"{'a run' if set_ else '`eadpr repro`'} {will}"])
    new = [step.name for step in steps if {*step.inputs.values()} == {None}]
    lines += [f"{name} will run: {', '.join(_causes(stale[name], files))}" for name in stale if name not in new]
    if new:
        lines.append(f"{len(new)} will run for the first time: {', '.join(new)}")
    if later:
        lines.append(f"{len(later)} may run, if what these write changes: {', '.join(later)}")
    return "\n".join(lines if stale else [*lines, "no stage will run"])


def find_stale(steps: Iterable[Step], files: Mapping[str, str]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the inputs that each stale stage was not run with, and the stages behind these.

    `steps` come in the order in which they run; `files` are the md5 sums of the config files.
    """
    stale: dict[str, list[str]] = {}
    later: list[str] = []
    current = dict(files)  # with outputs: those of an interrupted run are not what later stages were run with
    written: set[str] = set()  # by stages that will or may run
    for step in steps:
        changed = [path for path, old in step.inputs.items() if old is None or current.get(path, old) != old]
        if changed or step.reasons:
            stale[step.name] = changed + step.reasons
        elif any(overlap(path, output) for path in step.inputs for output in written):
            later.append(step.name)
        else:
            current.update(step.outputs)
            continue
        written.update(step.outputs)
    return stale, later


def unfinished(values: dict[str, Any], names: Iterable[str]) -> list[str]:
    """Return the stages of `names` that the last run, if it was of this collection, has yet to run."""
    if locked_collection(Path("dvc.lock")) != values["collection"]:
        return []
    files = (Path("data") / values["collection"] / CONFIGS).rglob("*.*")
    steps = [step._replace(reasons=[]) for step in read_steps(values)]
    stale, later = find_stale(steps, {str(path): md5(path.read_bytes()) for path in files})
    return [name for name in names if name in (*stale, *later)]


def is_unbuilt(steps: Iterable[Step], stale: Mapping[str, list[str]]) -> bool:
    """Tell whether each stage is stale and either not in dvc.lock or without its outputs."""
    ran = [step for step in steps if None not in step.inputs.values()]
    # Git keeps the outputs in metrics/, which a fresh clone so has.
    built = any(os.path.exists(path) and not overlap(path, "metrics") for step in ran for path in step.outputs)
    return bool(stale) and not built and all(step.name in stale for step in steps)


def read_steps(params: dict[str, Any]) -> list[Step]:
    """Read the stages that dvc.yaml has with `params`, without `configs`, in the order in which they run."""
    from dvc.repo import Repo
    from networkx import topological_sort

    with Repo() as repo, patch("dvc.utils.serialize.load_path", lambda path, fs: params):
        stages = [stage for stage in topological_sort(repo.index.graph.reverse()) if getattr(stage, "cmd", None)]
        outputs = [output.def_path for stage in stages for output in stage.outs]
        steps = []
        for stage in stages:
            if stage.addressing == CONFIGS:
                continue
            sources = [path for path in stage.deps if not any(Path(path.def_path).is_relative_to(o) for o in outputs)]
            absent = [output for output in stage.outs if not output.exists]
            reasons = ["its command"] if stage.cmd_changed else []
            reasons += [path.def_path for path in sources if not path.exists or path.changed_checksum()]
            reasons += [f"{o.def_path} is missing" for o in absent if not o.use_cache or o.changed_cache()]
            inputs = {path.def_path: path.hash_info.value for path in stage.deps}
            written = {output.def_path: output.hash_info.value for output in stage.outs}
            steps.append(Step(stage.addressing, inputs, written, reasons))
        return steps


def overlap(path: str, other_path: str) -> bool:
    return Path(path).is_relative_to(other_path) or Path(other_path).is_relative_to(path)


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _causes(paths: Iterable[str], files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the settings that differ from the config files on disk, and other inputs by their path."""
    for path in paths:
        old, changes = Path(path), []
        if path in files and path.endswith(".json") and old.is_file():
            changes = list(make_overrides(json.loads(old.read_bytes()), json.loads(files[path])))
        yield from (change.removeprefix("++") for change in changes or [path])
