"""Pages of the papers' tables: their figures (papers.yaml) beside ours, read from the JSON files of docs/studies."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from docs.reference import _table
from docs.study_tables import STUDIES, Table, read

PAPERS = Path(__file__).resolve().parent / "papers.yaml"
BOUNDS = re.compile(r"\[(.+), (.+)\]")
NONE = "–"
VERDICTS = ("as in the paper", "the other way", "open")
MEASURED_WITH = ("ours", "passages", "the paper's sets, ours", "command", "measured at")
LARGE = (
    "A small encoder on a small collection, most often of generated text, cannot match the paper's figures. Compare"
    " what a method changes ([how to read this](index.md))."
)
INDEX = """# The papers' tables beside ours

Does what a method changes in the papers change here too? The papers train encoders of BERT-base's size and search
millions of passages. We train small encoders on small collections, and atlas is generated text, so our figures cannot
match theirs. What can be compared is the difference of two rows. Each page has the paper's beside ours, with our 95 %
interval where our table has one; \\* is that table's own test ([two intervals](../methods.md#two-intervals)).

This table counts the intervals. Those as in the paper lie on the same side of 0 as the paper's difference, those the
other way on the other side; open ones hold 0."""


def our_figure(table: Table, sets: Sequence[str], arm: str | None, metric: str) -> str:
    """Our figure. A set or metric that the table has of no arm was not measured; an arm that it lacks is a mistake."""
    question_set = table.choose_set(sets)
    if arm is None or question_set is None:
        return NONE
    arm = table.arm_of(question_set, arm)
    if arm not in table.figures[question_set]:
        arms = ", ".join(sorted(table.figures[question_set]))
        raise ValueError(f"docs/papers.yaml: a row names the arm {arm}; {table.path} has of {question_set}: {arms}")
    return table.figure(question_set, arm, metric) or NONE


def columns_of(paper: Mapping[str, Any]) -> list[tuple[str, Sequence[str], str]]:
    """Return each column's name, our sets and our metric; a row has a figure for each, or none at all."""
    for label, _, *figures in paper["rows"]:
        if len(figures) not in (0, len(paper["columns"])):
            hint = f"give one for each of the {len(paper['columns'])} columns, or none"
            raise ValueError(f"docs/papers.yaml: {paper['title']}: {label} has {len(figures)} figures; {hint}")
    parts = [(column, *column.split(" ", 1)) for column in paper["columns"]]
    return [(metric if len(paper["sets"]) == 1 else name, paper["sets"][key], metric) for name, key, metric in parts]


def difference(first: float | None, second: float | None) -> str:
    return NONE if first is None or second is None else f"{first - second:+.1f}"


def figures(paper: Mapping[str, Any], tables: Sequence[Table]) -> Iterator[list[str]]:
    """Metric, row, the paper's figure, and of each table ours and ours less theirs."""
    for place, (column, sets, metric) in enumerate(columns_of(paper)):
        lines = []
        for label, arm, *all_theirs in paper["rows"]:
            theirs = all_theirs[place] if all_theirs else None
            line = [column, label, NONE if theirs is None else str(theirs)]
            for text in (our_figure(table, sets, arm, metric) for table in tables):
                line += [text, NONE if text == NONE else difference(float(text.split()[0]), theirs)]
            lines.append(line)
        missing = all(text == NONE for line in lines for text in line[3::2])
        if missing and any(table.choose_set(sets) for table in tables):
            raise ValueError(f"docs/papers.yaml: {paper['title']}: no table has a figure for the column {column}")
        if not missing or any(line[2] != NONE for line in lines):
            yield from lines


def change(table: Table, question_set: str | None, first: str, second: str, metric: str) -> str:
    """Return our difference of two arms, with its interval where the table has one; nothing of a pair that it does not
    compare."""
    if question_set is None:
        return NONE
    first, second = table.arm_of(question_set, first), table.arm_of(question_set, second)
    cells = table.differences.get(question_set, {}).get(f"{first} − {second}")
    if cells is None:
        return NONE
    if metric in cells:
        return cells[metric]
    a, b = (table.figure(question_set, arm, metric) or NONE for arm in (first, second))
    return NONE if NONE in (a, b) else f"{float(a.split()[0]) - float(b.split()[0]):+.1f}"


def changes(paper: Mapping[str, Any], tables: Sequence[Table]) -> Iterator[list[str]]:
    """Two rows that a table of ours compares, metric, the paper's difference, ours."""
    rows = {arm: (label, theirs) for label, arm, *theirs in paper["rows"] if arm}
    for place, (column, sets, metric) in enumerate(columns_of(paper)):
        for first, second in itertools.permutations(rows, 2):
            texts = [change(table, table.choose_set(sets), first, second, metric) for table in tables]
            if any(text != NONE for text in texts):
                (label, theirs), (less, those) = rows[first], rows[second]
                of_paper = difference(theirs[place], those[place]) if theirs and those else NONE
                yield [f"{label} − {less}", column, of_paper, *texts]


def verdict(lines: Sequence[Sequence[str]], place: int) -> list[int]:
    """Count the intervals of ours that lie on the paper's side of 0, on the other side, on neither."""
    counts = [0, 0, 0]
    for line in lines:
        if line[2] != NONE and float(line[2]) and (bounds := BOUNDS.search(line[place])):
            low, high = sorted(float(bound) * math.copysign(1, float(line[2])) for bound in bounds.groups())
            counts[0 if low > 0 else 1 if high < 0 else 2] += 1
    return counts


def page(paper: Mapping[str, Any], tables: Sequence[Table]) -> str:
    figure_rows, change_rows, names = list(figures(paper, tables)), list(changes(paper, tables)), _names(tables)
    parts = [f"# {paper['title']}", paper["asks"], LARGE]
    parts += [_table(MEASURED_WITH, [_provenance(table, paper["sets"]) for table in tables])]
    parts += [f"On the paper's own data: `eadpr study {paper['again']}`."]
    if change_rows:
        parts += ["## What a method changes", _table(("difference", "metric", "the paper", *names), change_rows)]
    if all(line[2] == NONE for line in figure_rows):
        parts += ["## Figures", "The paper shows a picture and prints no figures."]
        figure_rows = [[*line[:3], *line[3::2]] for line in figure_rows]
    else:
        parts += ["## Figures"]
        names = [text for name in names for text in (name, f"{name} − paper")]
    parts += [_table(("metric", "row", "the paper", *names), figure_rows)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _names(tables: Sequence[Table]) -> list[str]:
    folders = [table.name for table in tables]
    return [table.name if folders.count(table.name) == 1 else table.path.stem for table in tables]


def _provenance(table: Table, sets: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    name = f"[{table.name}, {table.path.stem}](../studies/{table.name}/{table.path.stem}.md)"
    pairing = ", ".join(f"{theirs}: {table.choose_set(ours) or NONE}" for theirs, ours in sets.items())
    return name, table.passages, pairing, table.command, table.measured_at


def index(papers: Mapping[str, Mapping[str, Any]]) -> str:
    """Every page, and on which collections ours change as the paper's do."""
    rows = []
    for name, paper in papers.items():
        tables = tables_of(name, paper)
        lines = list(changes(paper, tables))
        for place, label in enumerate(_names(tables), 3):
            counts = verdict(lines, place)
            rows.append((f"[{paper['title']}]({name}.md)", label, *(str(n) if any(counts) else NONE for n in counts)))
    return f"{INDEX}\n\n{_table(('page', 'ours', *VERDICTS), rows)}\n"


def tables_of(name: str, paper: Mapping[str, Any]) -> list[Table]:
    groups = [sorted(STUDIES.glob(f"{pattern}.json")) for pattern in paper["tables"]]
    if not any(groups):
        raise ValueError(f"docs/papers.yaml: {name}: no file of docs/studies is one of {paper['tables']}")
    return [read(path) for paths in groups for path in paths]


def pages() -> dict[str, str]:
    """Return the pages by their place in the site."""
    papers = YAML(typ="safe", pure=True).load(PAPERS.read_text(encoding="utf-8"))
    paper_pages = {f"papers/{name}.md": page(paper, tables_of(name, paper)) for name, paper in papers.items()}
    return {"papers/index.md": index(papers), **paper_pages}
