"""What was measured: the tables of docs/studies, read, and the page that lists them by collection."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

STUDIES = Path(__file__).resolve().parent / "studies"
COMMAND, MEASURED = re.compile(r"(?m)^(`[^`\n]+`)"), re.compile(r"(?m)^Measured at (.*?\))")
READER = re.compile(r"# Answers of the reader (?:of paths )?(\S+)")


@dataclass
class Table:
    """What a file of docs/studies says: texts by set, arm and metric; differences by set, two arms and metric."""

    path: Path
    passages: str = ""
    command: str = ""
    measured: str = ""
    figures: dict[tuple[str, str, str], str] = field(default_factory=dict)
    differences: dict[tuple[str, str, str, str], str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.parent.name

    def set_of(self, sets: Sequence[str]) -> str:
        there = {key[0] for key in self.figures}
        if not (found := [one for one in sets if one in there]):
            raise ValueError(f"docs/papers.yaml: {self.path} has none of the sets {', '.join(sets)}; it has {there}")
        return found[0]

    def arm(self, arm: str) -> str:
        """A table that does not say when it was measured is of the days when `eadpr` was EADPR as published."""
        return arm if self.measured else arm.replace("eadpr-paper", "eadpr")


def read(path: Path) -> Table:
    text = path.read_text(encoding="utf-8")
    command, measured = COMMAND.search(text), MEASURED.search(text)
    table = Table(path, command=command[1] if command else "–", measured=measured[1] if measured else "")
    set_name = caption = reader = ""
    for block in text.split("\n\n"):
        if block.startswith("## "):
            set_name = block[3:].partition(":")[0]
        elif block.startswith("# "):
            reader = f"{found[1]} " if (found := READER.match(block)) else ""
            table.passages = table.passages or block.partition(": ")[2].removesuffix(" passages")
        elif not block.startswith("|"):
            caption = block
        elif block.startswith("| difference "):
            for a, b, metric, said in _changes(block):
                table.differences.setdefault((set_name, a, b, reader + metric), said)
        else:  # of tables of one kind the first is of all questions
            for arm, metric, said in _figures(block, caption):
                table.figures.setdefault((set_name, arm, reader + metric), said)
    return table


def _cells(block: str) -> tuple[list[str], list[list[str]]]:
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines())
    return head, rows


def _changes(block: str) -> Iterator[tuple[str, str, str, str]]:
    head, rows = _cells(block)
    for pair, *own in rows:
        if pair.count(" − ") == 1:
            yield from ((*pair.split(" − "), metric, said) for metric, said in zip(head[1:], own, strict=True))


def _figures(block: str, caption: str) -> Iterator[tuple[str, str, str]]:
    head, rows = _cells(block)
    for first, *rest in rows:
        named = list(zip(head, [first, *rest], strict=True))
        if head[0] == "%":
            yield from ((first, metric, said.partition(" (")[0]) for metric, said in named[1:])
        elif head[0] == "type":
            yield from ((arm, f"{caption.partition(' (')[0]}, {first}", said) for arm, said in named[2:])
        elif head[:2] == ["arm", "behind"]:
            yield from ((first, f"{rest[0]}, {of}", said) for of, said in named[2:])


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
