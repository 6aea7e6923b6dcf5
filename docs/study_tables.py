"""What was measured: the JSON files of docs/studies, and the page that lists their pages by collection."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

STUDIES = Path(__file__).resolve().parent / "studies"
COMMAND, MEASURED = re.compile(r"(?m)^(`[^`\n]+`)"), re.compile(r"(?m)^Measured at (.*?\))")
PAIRS = re.compile(r" \(n=[^)]*\)$")


class Table(NamedTuple):
    """The numbers of a study: `figures` by question set, arm and metric, `differences` by set, "a − b" and metric."""

    path: Path
    passages: str
    command: str
    measured_at: str
    figures: dict[str, dict[str, dict[str, str]]]
    differences: dict[str, dict[str, dict[str, str]]]

    @property
    def name(self) -> str:
        return self.path.parent.name

    def choose_set(self, names: Sequence[str]) -> str | None:
        """Return the first of the question sets that was evaluated; none where the collection has none of them."""
        return next((name for name in names if name in self.figures), None)

    def arm_of(self, question_set: str, arm: str) -> str:
        """Return the arm itself, or where each set has one of its own, as dpr-trec, that of this set."""
        arms = self.figures[question_set]
        own_arms = (name for name in arms if name.rpartition("-")[0] == arm and name.rpartition("-")[2] in question_set)
        return arm if arm in arms else next(own_arms, arm)

    def figure(self, question_set: str, arm: str, metric: str) -> str | None:
        """Return a figure as the report shows it, without the number of pairs behind it."""
        text = self.figures[question_set].get(arm, {}).get(metric)
        return None if text is None else PAIRS.sub("", text)


def read(path: Path) -> Table:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    command, measured_at = f"`eadpr study {record['command']}`", f"{record['commit']} ({record['date']})"
    return Table(path, record["passages"], command, measured_at, record["figures"], record["differences"])


def page() -> str:
    parts = ["# Tables of the studies\n\nEvery table that is there, with its question, its command and its commit."]
    for folder in sorted(path for path in STUDIES.iterdir() if path.is_dir()):
        rows = ["| table | question | command | measured at |", "|---|---|---|---|"]
        rows += [_row(path) for path in sorted(folder.glob("*.md"))]
        parts.append(f"## {folder.name}\n\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _row(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    about = next(line for line in text.splitlines() if line and not line.startswith(("#", "`"))).replace("|", r"\|")
    command, commit = COMMAND.search(text), MEASURED.search(text)
    name = f"[{path.stem}]({path.parent.name}/{path.name})"
    return f"| {name} | {about} | {command[1] if command else ''} | {commit[1] if commit else 'not said'} |"
