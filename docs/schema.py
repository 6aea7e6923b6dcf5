"""The JSON schema of params.yaml, by which editors complete and check it; `make docs` writes it."""

import json
from typing import Any

from docs import reference
from eadpr.settings.model import Layout, Settings

FILE = reference.ROOT / "docs" / "params.schema.json"


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


def text() -> str:
    """Return the file's content, a line for each kind of section."""
    made = schema()
    kinds = [f"{json.dumps(name)}: {json.dumps(made['$defs'][name], ensure_ascii=False)}" for name in made["$defs"]]
    head = json.dumps({name: value for name, value in made.items() if name != "$defs"})
    return head.removesuffix("}") + ', "$defs": {\n' + ",\n".join(kinds) + "\n}}\n"
