"""Read params.yaml and the files of collections, data/collections/<name>.yaml, as plain values."""

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

PARAMS = Path("params.yaml")
COLLECTIONS = Path("data/collections")  # from the folder of params.yaml
# Folders of data/ that no collection can have, and their purpose.
TAKEN = {"sources": "where the files of all collections lie", "collections": "where collections are described"}


class SettingError(ValueError):
    """A wrong setting: its dotted `key` in `file`, and the `reason`, which names a remedy; `more` are further lines."""

    def __init__(self, key: str, reason: str, *, file: Path = PARAMS, more: Iterable[str] = ()) -> None:
        super().__init__("\n".join([f"{file}: {key}: {reason}", *more]))
        self.key, self.reason = key, reason


def load(path: Path) -> dict[str, Any]:
    """Read params.yaml; `collections` gets the files of collections too, under the values that params.yaml has."""
    values = read_yaml(path)
    files = sorted((path.parent / COLLECTIONS).glob("*.yaml"))
    collections = values.get("collections")
    if isinstance(collections, Mapping):  # anything else is refused when values are checked
        values["collections"] = {**collections, **merged({file.stem: read_yaml(file) for file in files}, collections)}
    return values


def of_collection(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the description of a collection."""
    if name not in values["collections"]:
        names = ", ".join(values["collections"])
        reason = f"{name!r} is not one of collections ({names}), nor is there a file {COLLECTIONS / name}.yaml"
        raise SettingError("collection", reason)
    return values["collections"][name]


def own_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the active collection overrides, by dotted name."""
    return dict(leaves(of_collection(values, values["collection"])["settings"]))


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value that is no mapping, with its dotted name."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def collection_file(name: str, *, params: Path) -> Path:
    """Return the path of a collection's own file."""
    return params.parent / COLLECTIONS / f"{name}.yaml"


def locate(key: str, value: Any, *, missing: bool = False) -> tuple[Path, str] | None:
    """Return the collection's own file and the key there, if that file sets this value (or lacks it: `missing`).

    `key` is dotted, as in params.yaml. None: params.yaml sets the value.
    """
    kind, name, inner = (*key.split(".", 2), "", "")[:3]
    if kind != "collections":
        return None
    file = COLLECTIONS / f"{name}.yaml"
    in_file = _value_in(file, inner.rpartition(".")[0] if missing else inner)
    if in_file is None or not (in_file == value or isinstance(value, Mapping)):
        return None
    return file, inner


def overridden_in(name: str, message: str) -> str:
    """Return an addition to a message: the settings in it that the collection's own file overrides.

    An edit of them in params.yaml would change nothing.
    """
    file = COLLECTIONS / f"{name}.yaml"
    keys = [key for key in re.findall(r"\b\w+(?:\.\w+)+", message) if _value_in(file, f"settings.{key}") is not None]
    return f"; {file} sets {' and '.join(dict.fromkeys(keys))}" if keys else ""


def _value_in(file: Path, key: str) -> Any:
    """Return the value of a dotted key in a file, None if it has none."""
    value: Any = read_yaml(file) if file.is_file() else None
    for part in filter(None, key.split(".")):
        if isinstance(value, list):
            value = {str(index): item for index, item in enumerate(value)}
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def locked_collection(lock: Path) -> str | None:
    """Return the collection in dvc.lock, None if there is no such file or nothing has run."""
    if not lock.exists():
        return None
    match = re.search(r"(?m)^ +- path: data/([^/\n]+)/configs$", lock.read_text(encoding="utf-8"))
    return match and match[1]


def read_yaml(path: Path) -> dict[str, Any]:
    """Read the mapping in a YAML file.

    Raises ValueError naming the file if it holds something else, is not YAML, or has anchors: `dvc exp run -S`
    silently loses a value that is set behind one.
    """
    try:
        text = path.read_text(encoding="utf-8")
        anchor = _find_anchor(text)
        values = YAML(typ="safe", pure=True).load(text) if anchor is None else None
    except (YAMLError, ValueError, TypeError, RecursionError) as error:  # dates, long numbers, lists as keys, brackets
        mark = getattr(error, "problem_mark", None)
        reason = f"line {mark.line + 1}, {error.problem}" if mark else " ".join(str(error).split())
        raise ValueError(f"{path} is not valid YAML: {reason}") from error
    if anchor is not None:
        line, name = anchor
        raise ValueError(f"{path}:{line}: anchors and aliases (&{name}) are not allowed; repeat the value")
    if not isinstance(values, dict):
        raise ValueError(f"{path} must be a mapping of sections, found {type(values).__name__}")
    return values


def _find_anchor(text: str) -> tuple[int, str] | None:
    """Return line and name of the first anchor or alias."""
    events = YAML(typ="safe", pure=True).parse(StringIO(text))
    anchors = ((event.start_mark.line + 1, event.anchor) for event in events if getattr(event, "anchor", None))
    return next(anchors, None)


WHOLE = ("forms",)  # shares, which add up to 1


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the values of `over`; mappings merge, except WHOLE, and all else is replaced."""
    result = dict(base)
    for key, value in over.items():
        both = key not in WHOLE and isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else copy.deepcopy(value)
    return result
