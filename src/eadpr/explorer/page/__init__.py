"""The page: one HTML file with data, code and styles inside; its Content-Security-Policy allows only these, by hash.

The data stands in blocks of JSON, compressed, in base64, unpacked when needed. The JavaScript files are ES modules, but
a page from disk may not import, so they are joined into one script: names are unique, imports and words of export go.
"""

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

MODULES = (
    "dom.js", "data.js", "state.js", "select.js", "plot.js", "overview.js", "facets.js", "table.js", "question.js",
    "main.js",
)  # fmt: skip
TEMPLATE, STYLE = "page.html", "style.css"
QUESTIONS, PASSAGES = 128, 512  # unpacked together
_FIELD = re.compile(r"\{\{(\w+)\}\}")


def make_page(title: str, date: str, columns: dict[str, Any], details: Iterable[Any], texts: Iterable[Any]) -> bytes:
    """Return the HTML: `columns` of all questions, `details` of each question, `texts` of each passage."""
    columns = columns | {"blocks": {"details": QUESTIONS, "texts": PASSAGES}}
    scripts = [f'<script type="text/plain" id="columns">{pack(columns)}</script>']
    for kind, values, size in (("details", details, QUESTIONS), ("texts", texts, PASSAGES)):
        remaining, count = iter(values), 0
        while block := list(islice(remaining, size)):
            scripts.append(f'<script type="text/plain" id="{kind}{count}">{pack(block)}</script>')
            count += 1
    script = "\n".join(re.sub(r"(?m)^import .*;\n|^export (?=\w)", "", _read(name)) for name in MODULES)
    style = _read(STYLE)
    fields = {
        "title": html.escape(" · ".join(filter(None, ["eadpr", title, date]))),
        "collection": html.escape(title),
        "script_hash": _hash(script),
        "style_hash": _hash(style),
        "style": style,
        "script": script,
        "data": "\n".join(scripts),
    }
    return _FIELD.sub(lambda match: fields[match[1]], _read(TEMPLATE)).encode()


def pack(value: Any) -> str:
    """Compress JSON; NaN is refused, since no browser reads it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
