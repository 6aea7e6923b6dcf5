"""params.yaml and a collection's own file, as the stage `configs` reads them."""

import copy
import json
import os
from pathlib import Path

from ruamel.yaml import YAML

from benchmarks.faults.formats import Format
from benchmarks.faults.plain import Reading
from eadpr.settings import resolve as params
from eadpr.settings import yaml as params_yaml

ROOT = Path(__file__).resolve().parents[2]
COLLECTIONS = ("atlas", "hotpot-sample", "squad-open", "wiki18-trex")
_PARSED = {}  # what a file of this content holds: most are not the one that was changed
_read_yaml = params_yaml.read_yaml


def _remembered(path: Path):
    content = path.read_bytes()
    if content in UNCHANGED and content not in _PARSED:
        _PARSED[content] = _read_yaml(path)
    return copy.deepcopy(_PARSED[content]) if content in UNCHANGED else _read_yaml(path)


def _read(folder: Path) -> Reading:
    old_folder, params_yaml.read_yaml = os.getcwd(), _remembered
    os.chdir(folder)  # messages name files from there
    try:
        values = params.load(Path("params.yaml"))
        configs = params.configs(values)
    finally:
        params_yaml.read_yaml = _read_yaml
        os.chdir(old_folder)
    json.dumps(configs, allow_nan=False)
    return {"values": [values]}


def _plain(folder: Path) -> Reading:
    """Read with the reader of YAML that keeps its form, which builds its values in another way."""
    files = [folder / "params.yaml", *sorted((folder / "data/collections").iterdir())]
    first, *rest = (YAML(typ="rt", pure=True).load(path.read_text("utf-8")) for path in files)
    collections = {path.stem: values for path, values in zip(files[1:], rest, strict=True)}
    beneath = _read_yaml(params_yaml.DEFAULTS) | {"collections": collections}
    return {"values": [params_yaml.merged(beneath, first)]}


def _same(reading: Reading, plain: Reading) -> bool:
    def as_json(values: Reading) -> str:
        return json.dumps(values, sort_keys=True, default=float)

    return as_json(reading) == as_json(plain)


def _bare(path: Path) -> bytes:
    """Return a file without comments, which are most of it."""
    return b"".join(line for line in path.read_bytes().splitlines(keepends=True) if not line.lstrip().startswith(b"#"))


PARAMS = _bare(ROOT / "params.yaml")
OWN = {f"data/collections/{name}.yaml": _bare(ROOT / f"data/collections/{name}.yaml") for name in COLLECTIONS}
OTHER = PARAMS.replace(b"collection: atlas", b"collection: squad-open")
UNCHANGED = {PARAMS, OTHER, *OWN.values(), params_yaml.DEFAULTS.read_bytes()}
SETTINGS = (
    Format("params.yaml", {"params.yaml": PARAMS} | OWN, _read, _plain, _same, ("params.yaml",)),
    Format(
        "a collection's file", {"params.yaml": OTHER} | OWN, _read, _plain, _same, ("data/collections/squad-open.yaml",)
    ),
)
