"""Overrides in the grammar of `dvc exp run -S` (Hydra's): making, applying and checking them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eadpr.settings.yaml import DEFAULTS, PARAMS, flatten, merged, own_settings, read_yaml

PLAIN = re.compile(r"(?!(?:null|true|false|nan|inf)$)[A-Za-z_][\w/-]*", re.IGNORECASE)  # needs no quotes
FILE = re.compile(r"(?s)(?:([^=]+\.ya?ml):)?(.*)")  # before the key, as DVC takes it


def make_overrides(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key in old:
        if key not in new:
            yield f"~{prefix}{key}"
    for key, value in new.items():
        if isinstance(value, Mapping) and isinstance(old.get(key), Mapping):
            yield from make_overrides(old[key], value, f"{prefix}{key}.")
        elif key not in old or value != old[key]:
            yield f"++{prefix}{key}={_literal(value)}"  # most keys are not in params.yaml


def apply_overrides(overrides: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that `dvc exp run -S` makes of `values`. Raises ValueError where DVC refuses an override."""
    from dvc.exceptions import InvalidArgumentError
    from dvc.utils import hydra

    with TemporaryDirectory() as folder:
        path = Path(folder) / "params.json"  # YAML takes a second
        path.write_text(json.dumps(values), encoding="utf-8")
        try:
            hydra.apply_overrides(path, list(overrides))
        except InvalidArgumentError as error:
            for override in overrides:
                _check_place(override, values)
            keys = flatten(merged(read_yaml(DEFAULTS), values))
            near = [get_close_matches(key, keys, 1, 0.9) for key in map(override_key, overrides) if key not in keys]
            meant = "".join(f"; did you mean {name}?" for names in near for name in names)
            raise ValueError(f"{error}: {error.__cause__}{meant}") from error
        return json.loads(path.read_text(encoding="utf-8"))


def _check_place(override: str, values: Mapping[str, Any]) -> None:
    """Raise ValueError with what works where an override has no value, names a file, or names a key that is no setting
    or is in the file of defaults."""
    file, change = FILE.match(override).groups()
    key, all_values = override_key(change), merged(read_yaml(DEFAULTS), values)
    section, name = [*key.split("."), ""][:2]
    names = all_values.get(section)
    plain = isinstance(names, Mapping) and not all(isinstance(value, Mapping) for value in names.values())
    if not change.startswith("~") and not change.partition("=")[1]:
        raise ValueError(f"-S {override}: it has no value; write KEY=VALUE, as in loss.tau1=0.5")
    if names is None or (plain and name and name not in names):  # of a section that is not plain users name the entries
        keys = flatten(all_values)
        near = [name for name in [*flatten(values), *keys] if name.endswith(f".{key}")][:1]
        advice = f"{PARAMS} and src/eadpr/settings/{DEFAULTS.name} have all"
        if near := near or get_close_matches(key, keys, 3, 0.75):
            advice = f"did you mean {' or '.join(sorted(near))}?"
        raise ValueError(f"-S {override}: no setting {key}; {advice}")
    if file or (key == override.partition("=")[0] and key in flatten(all_values).keys() - flatten(values)):
        place = "a key stands here without its file" if file else f"{key} stands in {DEFAULTS.name}, not in {PARAMS}"
        works = change if change.startswith("~") else f"++{change.lstrip('+')}"
        raise ValueError(f"-S {override}: {place}; write -S {works}")


def override_key(override: str) -> str:
    return override.lstrip("+~").partition("=")[0]


def check_effect(overrides: Sequence[str], values: Mapping[str, Any]) -> None:
    """Raise ValueError where an override has no effect, since the active collection sets the same."""
    collection, local = values["collection"], own_settings(values)
    for override in overrides:
        if wins := [name for name in local if f"{name}.".startswith(f"{override_key(override)}.")]:
            reason = f"nothing reads it, as the collection {collection} has its own {', '.join(wins)}"
            works = f"-S ++collections.{collection}.settings.{override.lstrip('+~')}"
            raise ValueError(f"-S {override}: {reason}; write {works}")


def _literal(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, str) and not PLAIN.fullmatch(value):
        return "'" + value.replace("'", "\\'") + "'"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)
