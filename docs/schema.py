"""The JSON schemas of params.yaml and of a collection's file, by which editors complete and check them.

`make docs` writes them; a file's first line names its schema.
"""

import json
from typing import Any

from docs import reference
from eadpr.settings.model import Collection, Layout, Settings

FOLDER = reference.ROOT / "docs"


def schema() -> dict[str, Any]:
    """Return one schema of all keys. None is required, since each has a default."""
    parts = [model.model_json_schema() for model in (Settings, Layout)]
    spec = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": parts[0]["properties"] | parts[1]["properties"],
        "$defs": parts[0]["$defs"] | parts[1]["$defs"],
    }
    for section in spec["$defs"].values():
        section.pop("required", None)
    for name, key, default, meaning in reference.meanings():
        keys = spec["$defs"].get(spec["properties"][name].get("$ref", "").rpartition("/")[2], {}).get("properties", {})
        if key in keys:
            if default == "auto":  # settled before types are checked
                keys[key] = {"anyOf": [keys[key], {"const": "auto"}]}
            keys[key]["description"] = meaning
    return spec


def of_collection() -> dict[str, Any]:
    """Return the schema of a file of data/collections, whose settings are sections of params.yaml."""
    params, collection = schema(), Collection.model_json_schema()
    sections = {name: params["properties"][name] for name in Settings.model_fields}
    collection["properties"]["settings"] = {"type": "object", "properties": sections, "additionalProperties": False}
    return collection | {"$schema": params["$schema"], "$defs": params["$defs"] | collection["$defs"]}


def write() -> None:
    for name, spec in (("params", schema()), ("collection", of_collection())):
        (FOLDER / f"{name}.schema.json").write_text(text(spec), encoding="utf-8")


def text(spec: dict[str, Any]) -> str:
    """Return the file's content, a line for each kind of section."""
    kinds = [f"{json.dumps(name)}: {json.dumps(spec['$defs'][name], ensure_ascii=False)}" for name in spec["$defs"]]
    head = json.dumps({name: value for name, value in spec.items() if name != "$defs"})
    return head.removesuffix("}") + ', "$defs": {\n' + ",\n".join(kinds) + "\n}}\n"
