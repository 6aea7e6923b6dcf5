"""What a table of docs/studies was measured with: commit, date and hashes in a line under the command that made it, and
the hashes of each stage's settings and code at its end, so that a table that is behind can be told, and by what."""

import hashlib
import json
import math
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from datetime import date
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from eadpr import stage_code
from eadpr.params_yaml import read_yaml

# Where code and settings come from. What a run writes, dvc.lock, metrics and tables, may differ from the commit.
SOURCES = ("src", "stages", "dvc.yaml", "params.yaml", "studies.yaml", "data/collections")
FOLDER = "FOLDER"  # stands for a path of this machine
_ABSOLUTE = re.compile(r"(?<![\w.:/~-])/[\w./+-]+")
_RUN = re.compile(r"-m stages\.(\w+) --config data/\$\{collection\}/configs/(\S+)")
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
    """Of what the pipeline has just made with the parameters `values`, from the configs and lists of code that its
    stages got; what the command itself adds to their tables is in no hash. `at` is the `commit`. A path of this machine
    among the words becomes FOLDER."""
    folder = Path("data") / values["collection"] / "configs"
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} does not exist; run `dvc repro`")
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.json")}
    configs = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    code = {path.stem: path.read_text(encoding="utf-8") for path in (folder / "code").glob("*.txt")}
    stages = hashes(values, configs, code)
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


def today(values: Mapping[str, Any], configs: Mapping[str, Any]) -> dict[str, StageHashes]:
    """As `hashes`, with the code of this checkout."""
    code = {module: stage_code.listed(Path("stages") / f"{module}.py", Path()) for module in _ran(values)}
    return hashes(values, configs, code)


def times(values: Mapping[str, Any]) -> dict[str, int]:
    """How often each stage of dvc.yaml runs with these parameters, in its order: once, or for every name it is over."""
    found = {}
    for name, stage in read_yaml(Path("dvc.yaml"))["stages"].items():
        over = [stage["foreach"]] if "foreach" in stage else stage.get("matrix", {}).values()
        found[name] = math.prod(len(_value(values, each)) for each in over)
    return found


def _ran(values: Mapping[str, Any]) -> dict[str, set[str]]:
    """Modules of stages/ with the patterns of their config files; without stages over names of which there are none."""
    found: dict[str, set[str]] = {}
    count = times(values)
    for name, stage in read_yaml(Path("dvc.yaml"))["stages"].items():
        if count[name] and (run := _RUN.search(stage.get("do", stage)["cmd"])):
            found.setdefault(run[1], set()).add(re.sub(r"\$\{.*?\}", "*", run[2]))
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
    stages = {stage: StageHashes(*of) for stage, *of in map(str.split, listed[1].splitlines())}
    return Provenance(made[1], shlex.split(made[2]), made[3], stages)


def behind(then: Mapping[str, StageHashes], now: Mapping[str, StageHashes]) -> str:
    """Which stages have other settings and code now, one that only one side has among them; empty where none has."""
    said = []
    for kind in StageHashes._fields:
        changed = [
            stage for stage in sorted({*then, *now})
            if getattr(then.get(stage), kind, None) != getattr(now.get(stage), kind, None)
        ]  # fmt: skip
        said += [f"{kind} of {', '.join(changed)}"] * bool(changed)
    return "; ".join(said)
