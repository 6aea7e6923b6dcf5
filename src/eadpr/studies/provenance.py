"""What a table of docs/studies was measured with: commit, date and hashes in a line under the command that made it, and
the hashes of each stage's settings and code at its end, so that a table that is behind can be told, and by what."""

import hashlib
import json
import math
import re
import shlex
import subprocess
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from eadpr.runtime import stage_code
from eadpr.settings.yaml import read_yaml

# Where code and settings come from. What a run writes, dvc.lock, metrics and tables, may differ from the commit.
SOURCES = ("src", "stages", "dvc.yaml", "params.yaml", "studies.yaml", "data/collections")
STUDY = "study"  # the command that runs the pipeline; others look at what it made
EXPLORE = "explore"  # shows what the other stages found
FOLDER = "FOLDER"  # stands for a path of this machine
_ABSOLUTE = re.compile(r"(?<![\w.:/~-])/[\w./+-]+")
_RUN = re.compile(r"-m stages\.(\w+) ")
_COMMAND = re.compile(r"(?m)^`python -m stages\.(\w+) ?(.*)`\n\n(Measured at .*)")
_LIST = re.compile(r"<!-- settings and code of each stage:\n(.*?)-->", re.DOTALL)


class StageHashes(NamedTuple):
    settings: str
    code: str


class Provenance(NamedTuple):
    """`command` is the module of stages/ that wrote the table, `words` what it was given on the command line; `said`
    stands in the table, `stages` are those that ran."""

    command: str
    words: list[str]
    said: str
    stages: dict[str, StageHashes]


def commit() -> str:
    """Of the checkout that this process runs in, with a word where code or settings are not as it has them."""
    name = _git("rev-parse", "--short=7", "HEAD")
    return f"{name} with uncommitted changes" if _git("status", "--porcelain", "--", *SOURCES) else name


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"a table names its commit; run in a checkout. git {arguments[0]} says: {done.stderr.strip()}")
    return done.stdout.strip()


def of_run(command: str, words: Sequence[str], at: str, values: Mapping[str, Any]) -> Provenance:
    """Of what the pipeline has made with the parameters `values`, from the configs and lists of code that its stages
    got. `at` is the `commit`. A path of this machine among the words becomes FOLDER.

    Raises ValueError where a command that only looks finds lists of other code than that of the commit.
    """
    folder = Path("data") / values["collection"] / "configs"
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} does not exist; run `dvc repro`")
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.json")}
    configs = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    code = {path.stem: path.read_text(encoding="utf-8") for path in (folder / "code").glob("*.txt")}
    if command != STUDY and (other := [stage for stage in sorted(_ran(values)) if code.get(stage) != _listed(stage)]):
        raise ValueError(f"{folder} is of other code of {', '.join(other)}; run `dvc repro`")
    stages = hashes(values, configs, code) | _own(command)
    settings, codes = (_hash([list(stages), list(column)]) for column in zip(*stages.values(), strict=True))
    said = f"Measured at {at} ({date.today().isoformat()}); settings {settings}, code {codes}."
    return Provenance(command, [_ABSOLUTE.sub(FOLDER, word) for word in words], said, stages)


def hashes(values: Mapping[str, Any], configs: Mapping[str, Any], code: Mapping[str, str]) -> dict[str, StageHashes]:
    """Of every module that the pipeline runs with these parameters: its config files, by name, and its list of code.

    Where a model's folder lies, and the hashes of its files, are left out: no check has them on another machine.
    """
    found = {}
    for module, patterns in sorted(_ran(values).items()):
        own = {name: config for name, config in configs.items() if any(fnmatch(name, each) for each in patterns)}
        found[module] = StageHashes(_hash(_anywhere(own)), _hash(code[module]))
    return found


def today(command: str, values: Mapping[str, Any], configs: Mapping[str, Any]) -> dict[str, StageHashes]:
    """As `hashes`, with the code of this checkout, that of a command that only looks included."""
    return hashes(values, configs, {module: _listed(module) for module in _ran(values)}) | _own(command)


def _own(command: str) -> dict[str, StageHashes]:
    """What a study adds to the pipeline's tables is in no hash: its code runs all stages, so each edit would change
    it."""
    return {} if command == STUDY else {command: StageHashes("-", _hash(_listed(command)))}


def _listed(module: str) -> str:
    return stage_code.listed(Path("stages") / f"{module}.py", Path())


def unmoved(found: Provenance, lock: Path = Path("dvc.lock")) -> set[str]:
    """The stages whose outputs in the lock, which are of params.yaml as it is, are those of the table's commit though
    their code may not be. None that were not run with today's code, or where git does not know the commit."""
    made = re.match(r"Measured at ([0-9a-f]+) \(", found.said)
    if not made or not lock.is_file():
        return set()
    then, now = _locked_at(made[1], lock.name), _locked(lock.read_text(encoding="utf-8"))
    same = {module for module in then.keys() & now.keys() if then[module].made == now[module].made}
    return {module for module in same if now[module].codes == {_md5(_listed(module))}}


def _md5(text: str) -> str:
    """As DVC has it of a file."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


class Locked(NamedTuple):
    """What dvc.lock has of the stages of one module: hashes of its list of code, and by stage those of its outputs."""

    codes: set[str]
    made: dict[str, list[tuple[str, str]]]


@cache
def _locked_at(sha: str, name: str) -> dict[str, Locked]:
    try:
        return _locked(_git("show", f"{sha}:./{name}"))
    except ValueError:  # a shallow clone has not all commits
        return {}


@cache
def _locked(lock: str) -> dict[str, Locked]:
    found: dict[str, Locked] = {}
    for name, stage in YAML(typ="safe").load(lock)["stages"].items():
        run = re.search(r"-m stages\.(\w+) ", stage["cmd"])
        codes = [dep["md5"] for dep in stage.get("deps", ()) if "/configs/code/" in dep["path"]]
        if run and codes:
            of = found.setdefault(run[1], Locked(set(), {}))
            of.codes.update(codes)
            of.made[name] = [(out["path"], out["md5"]) for out in stage["outs"]]
    return found


def times(values: Mapping[str, Any]) -> dict[str, int]:
    """How often each stage of dvc.yaml runs with these parameters, in its order: once, or for every name it is over."""
    found = {}
    for name, stage in read_yaml(Path("dvc.yaml"))["stages"].items():
        over = [stage["foreach"]] if "foreach" in stage else stage.get("matrix", {}).values()
        found[name] = math.prod(len(_value(values, each)) for each in over)
    return found


def _ran(values: Mapping[str, Any]) -> dict[str, set[str]]:
    """Modules of stages/ with the patterns of their config files; without stages over names of which there are none,
    and without the one that shows what the others found."""
    found: dict[str, set[str]] = {}
    count = times(values)
    for name, stage in read_yaml(Path("dvc.yaml"))["stages"].items():
        stage = stage.get("do", stage)
        if count[name] and name != EXPLORE and (run := _RUN.search(stage["cmd"])):
            config = next(dep for dep in stage["deps"] if "/configs/" in dep).partition("/configs/")[2]
            found.setdefault(run[1], set()).add(re.sub(r"\$\{.*?\}", "*", config))
    return found


def _value(values: Mapping[str, Any], name: str) -> Any:
    """Of `${a.b}`."""
    found: Any = values
    for key in name.strip("${}").split("."):
        found = found[key]
    return found


def _anywhere(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _anywhere(item) for key, item in value.items() if not key.endswith("_files")}
    if isinstance(value, list):
        return [_anywhere(item) for item in value]
    return FOLDER if isinstance(value, str) and value.startswith("/") else value


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


def written(about: str, found: Provenance, table: str) -> str:
    """The text of a table; `read` finds in it what was `found`."""
    command = shlex.join([f"stages.{found.command}", *found.words])
    rows = "".join(f"{stage} {of.settings} {of.code}\n" for stage, of in found.stages.items())
    return (
        f"{about}\n\n`python -m {command}`\n\n{found.said}\n\n{table.rstrip()}\n\n"
        f"<!-- settings and code of each stage:\n{rows}-->\n"
    )


def read(text: str) -> Provenance | None:
    """None where a table does not say what it was measured with."""
    made, listed = _COMMAND.search(text), _LIST.search(text)
    if not made or not listed:
        return None
    stages = {stage: StageHashes(*of) for stage, *of in map(str.split, listed[1].splitlines()) if stage != EXPLORE}
    return Provenance(made[1], shlex.split(made[2]), made[3], stages)


def behind(
    then: Mapping[str, StageHashes], now: Mapping[str, StageHashes], same: Collection[str] = ()
) -> tuple[str, list[str]]:
    """Which stages have other settings and code now, one that only one side has among them, as words that are empty
    where none has; and which of `same` have only other code."""
    changed = {
        kind: [
            stage for stage in sorted({*then, *now})
            if getattr(then.get(stage), kind, None) != getattr(now.get(stage), kind, None)
        ]
        for kind in StageHashes._fields
    }  # fmt: skip
    recoded = [stage for stage in changed["code"] if stage in same and stage not in changed["settings"]]
    changed["code"] = [stage for stage in changed["code"] if stage not in recoded]
    return "; ".join(f"{kind} of {', '.join(of)}" for kind, of in changed.items() if of), recoded
