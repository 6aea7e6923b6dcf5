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
    made = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": parts[0]["properties"] | parts[1]["properties"],
        "$defs": parts[0]["$defs"] | parts[1]["$defs"],
    }
    for section in made["$defs"].values():
        section.pop("required", None)
    for name, key, default, meaning in reference.meanings():
        own = made["$defs"].get(made["properties"][name].get("$ref", "").rpartition("/")[2], {}).get("properties", {})
        if key in own:
            if default == "auto":  # settled before types are checked
                own[key] = {"anyOf": [own[key], {"const": "auto"}]}
            own[key]["description"] = meaning
    return made


def of_collection() -> dict[str, Any]:
    """Return the schema of a file of data/collections, whose settings are sections of params.yaml."""
    whole, made = schema(), Collection.model_json_schema()
    sections = {name: whole["properties"][name] for name in Settings.model_fields}
    made["properties"]["settings"] = {"type": "object", "properties": sections, "additionalProperties": False}
    return made | {"$schema": whole["$schema"], "$defs": whole["$defs"] | made["$defs"]}


def write() -> None:
    for name, made in (("params", schema()), ("collection", of_collection())):
        (FOLDER / f"{name}.schema.json").write_text(text(made), encoding="utf-8")


def text(made: dict[str, Any]) -> str:
    """Return the file's content, a line for each kind of section."""
    kinds = [f"{json.dumps(name)}: {json.dumps(made['$defs'][name], ensure_ascii=False)}" for name in made["$defs"]]
    head = json.dumps({name: value for name, value in made.items() if name != "$defs"})
    return head.removesuffix("}") + ', "$defs": {\n' + ",\n".join(kinds) + "\n}}\n"
