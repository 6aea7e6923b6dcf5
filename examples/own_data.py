"""Bring passages and questions of one's own into the pipeline: python examples/own_data.py NAME ROWS

ROWS is a JSONL file of `question`, `answers`, `text` and perhaps `title`: the passage of a row answers its question.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

name, rows, *options = sys.argv[1:]
passages: dict[tuple[str, str], str] = {}  # ids by title and text
questions = []
for line in Path(rows).read_text(encoding="utf-8").rstrip("\n").split("\n"):
    row = json.loads(line)
    key = passages.setdefault((row.get("title", ""), row["text"]), f"p{len(passages) + 1}")
    questions.append({"question": row["question"], "answers": row["answers"], "positives": [key]})

with tempfile.TemporaryDirectory() as folder:
    files = {
        "passages.jsonl": [{"id": key, "title": title, "text": text} for (title, text), key in passages.items()],
        "questions.jsonl": questions,
    }
    paths = [Path(folder) / file for file in files]
    for path in paths:
        path.write_text("".join(json.dumps(row) + "\n" for row in files[path.name]), encoding="utf-8")
    subprocess.run(["eadpr", "add", name, *paths, *options], check=True)
