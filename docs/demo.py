"""Write the data of `eadpr demo` from the page of a run: python -m docs.demo reports/atlas.html"""

import base64
import json
import re
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from docs.numbers import HEADLINE
from eadpr.explorer.command import DATA

QUESTIONS, DEPTH = 60, 10  # of the page; passages of each ranking
COLUMNS = ("ids", "questions", "answers", "hops", "types", "hop_types", "relations")  # a value for each question
Page = tuple[dict[str, Any], list[Any], list[Any]]  # columns, details of questions, texts of passages
PACKED = re.compile(r'<script type="text/plain" id="([a-z]+)(\d*)">([^<]*)</script>')


def read(page: Path) -> Page:
    """Return what `eadpr.explorer.page` packed into a page."""
    parts: dict[str, list[Any]] = {"columns": [], "details": [], "texts": []}
    for kind, _, packed in PACKED.findall(page.read_text(encoding="utf-8")):
        value = json.loads(zlib.decompress(base64.b64decode(packed)))
        parts[kind] += [value] if kind == "columns" else value
    return parts["columns"][0], parts["details"], parts["texts"]


def shorten(page: Page) -> Page:
    """Return the page of some questions, evenly spaced, with the first passages of their rankings."""
    columns, details, texts = page
    count = len(columns["ids"])
    sample = range(0, count, max(1, count // QUESTIONS))[:QUESTIONS]
    short = columns | {name: [columns[name][i] for i in sample] for name in COLUMNS}
    short |= {
        "depth": DEPTH,
        "sets": {name: [n for n, i in enumerate(sample) if i in set(rows)] for name, rows in columns["sets"].items()},
        "first": [[ranks[i] for i in sample] for ranks in columns["first"]],
        "values": {
            metric: [[[part[i] for i in sample] for part in of_arm] for of_arm in arms]
            for metric, arms in columns["values"].items()
        },
    }
    note = f"**A demonstration**: {len(sample)} of {count:,} questions can be looked at; the figures above are of all."
    short["notes"] = columns["notes"] | {"collection": [note, *columns["notes"]["collection"]]}
    chosen, numbers = [details[i] for i in sample], {}
    for question in chosen:
        question["ranked"] = [ranking[:DEPTH] for ranking in question["ranked"]]
        ranked = [row[0] for ranking in question["ranked"] for row in ranking]
        for number in [*ranked, *(positive["passage"] for positive in question["positives"])]:
            numbers.setdefault(number, len(numbers))
        question["ranked"] = [[[numbers[row[0]], *row[1:]] for row in ranking] for ranking in question["ranked"]]
        question["hits"] = [[numbers[n], edges] for n, edges in question["hits"] if n in numbers]
        question["relevant"] = [numbers[n] for n in question["relevant"] if n in numbers]
        for positive in question["positives"]:
            positive["passage"] = numbers[positive["passage"]]
    return short, chosen, [texts[number] for number in numbers]


def check(metrics: Mapping[str, Mapping[str, float]]) -> None:
    """Raise ValueError where `eadpr demo` shows other figures than the commit's `metrics`."""
    columns, *_ = json.loads(zlib.decompress(DATA.read_bytes()))
    means = columns["overview"]["atlas/test"]["means"]
    for arm in sorted({*means, *(arm for arm, values in metrics.items() if HEADLINE[0] in values)}):
        demo = [means.get(arm, {}).get(name, [None])[0] for name in HEADLINE]
        expected = [metrics.get(arm, {}).get(name) for name in HEADLINE]
        # Both are rounded, the page's to five digits; None stands for a figure that an arm lacks.
        if not np.allclose(np.array(demo, float), np.array(expected, float), rtol=0, atol=1e-5, equal_nan=True):
            reason = f"{arm} has {demo}, but metrics/atlas.json {expected}; run python -m docs.demo reports/atlas.html"
            raise ValueError(f"{DATA.name}: {reason}")


if __name__ == "__main__":
    text = json.dumps(shorten(read(Path(sys.argv[1]))), ensure_ascii=False, separators=(",", ":"))
    DATA.write_bytes(zlib.compress(text.encode(), 9))
    print(f"{DATA}: {DATA.stat().st_size:,} bytes")
