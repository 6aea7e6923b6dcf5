"""Reading params.yaml and the files of collections beside it, data/collections/<name>.yaml, as plain values."""

import copy
import re
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent

DEEPEST = 50  # mappings and lists within each other
COLLECTIONS = Path("data/collections")  # beside params.yaml
# Folders of data/ that no collection can have, and what they are for.
TAKEN = {"sources": "where the files of all collections lie", "collections": "where collections are described"}


def load(path: Path) -> dict[str, Any]:
    """params.yaml with every collection in `collections`: what its own file says, under what params.yaml says of it."""
    values = read_yaml(path)
    files = sorted((path.parent / COLLECTIONS).glob("*.yaml"))
    own = values.get("collections")
    if isinstance(own, Mapping):  # what else it is, is named where values are checked
        values["collections"] = {**own, **merged({file.stem: read_yaml(file) for file in files}, own)}
    return values


def of_collection(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What `collections` says of the one named."""
    if name not in values["collections"]:
        raise ValueError(
            f"params.yaml: collection: {name!r} is not one of collections ({', '.join(values['collections'])}), nor is"
            f" there a file {COLLECTIONS / name}.yaml"
        )
    return values["collections"][name]


def own_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the active collection has values of its own for, by dotted name; they win over the shared sections."""
    return dict(leaves(of_collection(values, values["collection"])["settings"]))


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """What is no mapping, with its dotted name."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def collection_file(name: str, *, params: Path) -> Path:
    """Where a collection is described that params.yaml itself does not."""
    return params.parent / COLLECTIONS / f"{name}.yaml"


def in_own_file(key: str, value: Any, *, missing: bool) -> str | None:
    """`<file>: <key>` where a collection's own file sets this value, or lacks it (`missing`); None where params.yaml
    does. `key` is dotted, as in params.yaml."""
    kind, name, inner = (*key.split(".", 2), "", "")[:3]
    file = COLLECTIONS / f"{name}.yaml"
    found = _at(file, inner.rpartition(".")[0] if missing else inner) if kind == "collections" else None
    there = found is not None and (found == value or isinstance(value, Mapping))
    return f"{file}: {inner}" if there else None


def decided_by(name: str, said: str) -> str:
    """Adds to a message which of the settings that it names the collection's own file sets, where an edit of
    params.yaml would change nothing."""
    file = COLLECTIONS / f"{name}.yaml"
    keys = [key for key in re.findall(r"\b\w+(?:\.\w+)+", said) if _at(file, f"settings.{key}") is not None]
    return f"; {file} sets {' and '.join(dict.fromkeys(keys))}" if keys else ""


def _at(file: Path, key: str) -> Any:
    """What a file says of a dotted key; None for nothing."""
    found: Any = read_yaml(file) if file.is_file() else None
    for part in filter(None, key.split(".")):
        found = {str(i): item for i, item in enumerate(found)} if isinstance(found, list) else found
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def locked_collection(lock: Path) -> str | None:
    """The collection whose results dvc.lock holds; None where there is no such file, or nothing was run."""
    if not lock.exists():
        return None
    found = re.search(r"(?m)^ +- path: data/([^/\n]+)/configs$", lock.read_text(encoding="utf-8"))
    return found and found[1]


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds.

    Raises ValueError naming the file where it holds something else, is not YAML, or has anchors: `dvc exp run -S`
    silently loses what it sets behind one.
    """
    try:
        text = path.read_text(encoding="utf-8")
        refused = next(_refused(text), None)
        values = YAML(typ="safe", pure=True).load(text) if refused is None else None
    except (YAMLError, ValueError, TypeError) as error:  # of what looks like a date, of digits, of lists as keys
        mark = getattr(error, "problem_mark", None)
        said = f"line {mark.line + 1}, {error.problem}" if mark else " ".join(str(error).split())
        raise ValueError(f"{path} is not valid YAML: {said}") from error
    if refused is not None:
        raise ValueError(f"{path}:{refused}")
    if not isinstance(values, dict):
        raise ValueError(f"{path} must be a mapping of sections, found {type(values).__name__}")
    return values


def _refused(text: str) -> Iterator[str]:
    """Lines and what they hold that must not be there."""
    depth = 0
    for event in YAML(typ="safe", pure=True).parse(StringIO(text)):
        line = event.start_mark.line + 1
        if getattr(event, "anchor", None) is not None:
            yield f"{line}: anchors and aliases (&{event.anchor}) are not allowed; repeat the value"
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEEPEST:  # the parser's time grows with the square of it
            yield f"{line}: nested too deep"


MOST = 2**53  # JSON's numbers are whole up to there, and no setting is near


def beyond(values: Any, key: str = "") -> Iterator[str]:
    """The dotted keys of whole numbers that no library would take."""
    inner = values.items() if isinstance(values, Mapping) else enumerate(values) if isinstance(values, list) else ()
    for name, value in inner:
        yield from beyond(value, f"{key}.{name}".lstrip("."))
    if isinstance(values, int) and abs(values) > MOST:
        yield key


WHOLE = ("forms",)  # shares, which add up to 1


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the leaves of `over` put in; mappings but those of WHOLE merge, everything else is replaced whole."""
    result = dict(base)
    for key, value in over.items():
        both = key not in WHOLE and isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else copy.deepcopy(value)
    return result
