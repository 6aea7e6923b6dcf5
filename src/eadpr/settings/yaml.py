"""Read params.yaml over the file of defaults, and the files of collections, data/collections/<name>.yaml."""

import copy
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

PARAMS = Path("params.yaml")
DEFAULTS = Path(__file__).with_name("defaults.yaml")  # what params.yaml leaves alone
COLLECTIONS = Path("data/collections")  # from the folder of params.yaml
# Folders of data/ that no collection can have, and their purpose.
TAKEN = {"sources": "where the files of all collections lie", "collections": "where collections are described"}


class SettingError(ValueError):
    """A wrong setting: its dotted `key` in params.yaml, and the `reason`, which names a remedy; `more` are others."""

    def __init__(self, key: str, reason: str, *more: tuple[str, str]) -> None:
        super().__init__("\n".join(_describe(*error) for error in ((key, reason), *more)))
        self.key, self.reason = key, reason


def _describe(key: str, reason: str) -> str:
    """Return the line of an error, which begins with the file of the setting."""
    kind, name, rest = [*key.split(".", 2), "", ""][:3]
    path = COLLECTIONS / f"{name}.yaml"
    if kind != "collections" or not path.is_file() or name in (read_yaml(PARAMS).get("collections") or ()):
        return f"{PARAMS}: {key}: {reason}"
    return f"{path}: {rest}: {reason}"


def load(path: Path) -> dict[str, Any]:
    """Read all settings: params.yaml over the defaults, with the collections that have files beside it."""
    return completed(read_yaml(path), path.parent / COLLECTIONS)


def completed(params: Mapping[str, Any], folder: Path = COLLECTIONS) -> dict[str, Any]:
    """Return the values of params.yaml over the defaults, and those of `collections` over the files of the folder."""
    files = {file.stem: read_yaml(file) for file in sorted(folder.glob("*.yaml"))}
    return merged(merged(read_yaml(DEFAULTS), {"collections": files}), params)


def of_collection(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    if name not in values["collections"]:
        names = ", ".join(values["collections"])
        reason = f"{name!r} is not one of collections ({names}), nor is there a file {COLLECTIONS / name}.yaml;"
        reason += " with the former one named again, its results come back from DVC's cache"
        raise SettingError("collection", reason)
    return values["collections"][name]


def own_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the active collection overrides, by dotted name."""
    return flatten(of_collection(values, values["collection"])["settings"])


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return every value that is no mapping, by dotted name."""
    leaves = {}
    for key, value in values.items():
        nested = isinstance(value, Mapping) and value
        leaves |= flatten(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return leaves


def locked_collection(lock: Path) -> str | None:
    """Return the collection in dvc.lock, None if there is no such file or nothing has run."""
    text = lock.read_text(encoding="utf-8") if lock.exists() else ""
    match = re.search(r"(?m)^ +- path: data/([^/\n]+)/configs$", text)
    return match and match[1]


def read_yaml(path: Path, text: str | None = None) -> dict[str, Any]:
    """Read the mapping in a YAML file, or in `text`, which it once held.

    Raises ValueError naming the file if it is no mapping, no YAML, or has anchors, where `dvc exp run -S` loses values.
    """
    yaml = YAML(typ="safe", pure=True)
    try:
        text = path.read_text(encoding="utf-8") if text is None else text
        anchors = [event for event in yaml.parse(StringIO(text)) if getattr(event, "anchor", None)]
        values = None if anchors else yaml.load(text)
    except (YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:  # dates, lists as keys, brackets
        mark = getattr(error, "problem_mark", None)
        reason = f"line {mark.line + 1}, {error.problem}" if mark else " ".join(str(error).split())
        raise ValueError(f"{path} is not valid YAML: {reason}") from error
    for event in anchors:
        place = f"{path}:{event.start_mark.line + 1}"
        raise ValueError(f"{place}: anchors and aliases (&{event.anchor}) are not allowed; repeat the value")
    if not isinstance(values, dict):
        raise ValueError(f"{path} must be a mapping of sections, found {type(values).__name__}")
    return values


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the values of `over`; mappings merge, all else is replaced."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else copy.deepcopy(value)
    return result
