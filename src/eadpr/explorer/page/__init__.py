"""The page: one HTML file with data, code and styles inside. It loads nothing: its Content-Security-Policy allows the
one script and the one style sheet that stand in it, told by their hashes.

The JavaScript files are ES modules. A page opened from disk may not import files, so they are joined into one script:
names are unique across them, and lines of import and words of export go.
"""

import base64
import hashlib
import html
import re
from pathlib import Path

from eadpr.explorer.packing import PackedPage

MODULES = (
    "dom.js", "data.js", "state.js", "select.js", "plots.js", "overview.js", "table.js", "question.js", "main.js",
)  # fmt: skip
TEMPLATE, STYLE = "page.html", "style.css"
_FIELD = re.compile(r"\{\{(\w+)\}\}")


def page(title: str, packed: PackedPage) -> bytes:
    script, style = _script(), _read(STYLE)
    blocks = [("columns", packed.columns), ("words", packed.words)]
    blocks += [(f"details{i}", block) for i, block in enumerate(packed.details)]
    blocks += [(f"texts{i}", block) for i, block in enumerate(packed.texts)]
    data = "\n".join(f'<script type="text/plain" id="{name}">{block.decode()}</script>' for name, block in blocks)
    fields = {
        "title": html.escape(title),
        "script_hash": _hash(script),
        "style_hash": _hash(style),
        "style": style,
        "script": script,
        "data": data,
    }
    return _FIELD.sub(lambda match: fields[match[1]], _read(TEMPLATE)).encode()


def _script() -> str:
    parts = [re.sub(r"^import .*;\n|^export (?=\w)", "", _read(name), flags=re.MULTILINE) for name in MODULES]
    return "\n".join(parts)


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
