"""What a source's JSON held besides the records, kept as JSON with null where a record has the value.

So DPR JSON -> records -> DPR JSON loses nothing: neither keys, nor their order, nor numbers that float32 cannot hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

ROLE_OF = {
    "positive_ctxs": "positive", "negative_ctxs": "negative", "hard_negative_ctxs": "hard_negative", "ctxs": "positive",
}  # fmt: skip
ID_KEYS = ("passage_id", "psg_id")

_dumped = json.JSONEncoder(separators=(",", ":"), allow_nan=True).encode


def item_key(item: dict[str, Any], *, answers_kept: bool) -> str:
    """A question's object without question, answers and lists of contexts."""
    elsewhere = {"question", *ROLE_OF} | ({"answers"} if answers_kept else set())
    return _dumped({key: None if key in elsewhere else value for key, value in item.items()})


def context_key(fields: dict[str, Any], *, same_text: bool) -> str:
    """A context's object without its id and, where the corpus has the same, its title and text."""
    elsewhere = {"title", "text"} if same_text else set()
    id_key = next((key for key in ID_KEYS if isinstance(fields.get(key), str)), None)
    return _dumped({key: None if key in elsewhere or key == id_key else value for key, value in fields.items()})


def item(key: str, question: str, answers: list[str], contexts: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The source's object again; `contexts` by role. What an object of another form lacks comes in DPR's fields."""
    values = {"question": question, "answers": answers, **{name: contexts[role] for name, role in ROLE_OF.items()}}
    fields = _filled(json.loads(key), values)
    if answers:
        fields.setdefault("answers", answers)
    placed = {ROLE_OF.get(name) for name in fields}
    return fields | {f"{role}_ctxs": found for role, found in contexts.items() if found and role not in placed}


def context(key: str, passage_id: str, title: str, text: str) -> dict[str, Any]:
    return _filled(json.loads(key), {"title": title, "text": text, **dict.fromkeys(ID_KEYS, passage_id)})


def _filled(fields: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: values[key] if value is None and key in values else value for key, value in fields.items()}
