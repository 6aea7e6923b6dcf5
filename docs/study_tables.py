"""The page that lists what was measured: the tables of docs/studies, by collection."""

import re
from pathlib import Path

STUDIES = Path(__file__).resolve().parent / "studies"
COMMAND, MEASURED = re.compile(r"(?m)^(`[^`\n]+`)"), re.compile(r"(?m)^Measured at (.*?\))")


def page() -> str:
    parts = ["# Tables of the studies\n\nEvery table that is there, with what it is of, its command and its commit."]
    for folder in sorted(path for path in STUDIES.iterdir() if path.is_dir()):
        rows = ["| table | what | command | measured at |", "|---|---|---|---|"]
        rows += [_row(path) for path in sorted(folder.glob("*.md"))]
        parts.append(f"## {folder.name}\n\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _row(path: Path) -> str:
    text = path.read_text(encoding="utf-8").partition("\n| ")[0]
    about = next((line for line in text.splitlines() if line and not line.startswith("#")), "").replace("|", r"\|")
    command, at = COMMAND.search(text), MEASURED.search(text)
    name = f"[{path.stem}]({path.parent.name}/{path.name})"
    return f"| {name} | {about} | {command[1] if command else ''} | {at[1] if at else 'not said'} |"
