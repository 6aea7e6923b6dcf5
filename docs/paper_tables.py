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


def own(table: Table, sets: Sequence[str], arm: str | None, metric: str) -> str:
    """Our figure. A set or metric that the table has of no arm was not measured; an arm that it lacks is a mistake."""
    question_set = table.choose_set(sets)
    if arm is None or question_set is None:
        return NONE
    arm = table.arm_of(question_set, arm)
    if arm not in table.figures[question_set]:
        known = ", ".join(sorted(table.figures[question_set]))
        raise ValueError(f"docs/papers.yaml: a row names the arm {arm}; {table.path} has of {question_set}: {known}")
    return table.figure(question_set, arm, metric) or NONE


def columns_of(paper: Mapping[str, Any]) -> list[tuple[str, Sequence[str], str]]:
    """Of each column what it is called, our sets and our metric; a row has a figure for each, or none at all."""
    for said, _, *figures in paper["rows"]:
        if len(figures) not in (0, len(paper["columns"])):
            wanted = f"give one for each of the {len(paper['columns'])} columns, or none"
            raise ValueError(f"docs/papers.yaml: {paper['title']}: {said} has {len(figures)} figures; {wanted}")
    parts = [(column, *column.split(" ", 1)) for column in paper["columns"]]
    return [(metric if len(paper["sets"]) == 1 else column, paper["sets"][of], metric) for column, of, metric in parts]


def difference(one: float | None, other: float | None) -> str:
    return NONE if one is None or other is None else f"{one - other:+.1f}"


def figures(paper: Mapping[str, Any], tables: Sequence[Table]) -> Iterator[list[str]]:
    """Metric, row, the paper's figure, and of each table ours and ours less theirs."""
    for place, (column, sets, metric) in enumerate(columns_of(paper)):
        lines = []
        for said, arm, *all_theirs in paper["rows"]:
            theirs = all_theirs[place] if all_theirs else None
            line = [column, said, NONE if theirs is None else str(theirs)]
            for text in (own(table, sets, arm, metric) for table in tables):
                line += [text, NONE if text == NONE else difference(float(text.split()[0]), theirs)]
            lines.append(line)
        missing = all(text == NONE for line in lines for text in line[3::2])
        if missing and any(table.choose_set(sets) for table in tables):
            raise ValueError(f"docs/papers.yaml: {paper['title']}: no table has a figure for the column {column}")
        if not missing or any(line[2] != NONE for line in lines):
            yield from lines


def change(table: Table, question_set: str | None, one: str, other: str, metric: str) -> str:
    """Return our difference of two arms, with its interval where the table has one; nothing of a pair that it does not
    compare."""
    if question_set is None:
        return NONE
    one, other = table.arm_of(question_set, one), table.arm_of(question_set, other)
    cells = table.differences.get(question_set, {}).get(f"{one} − {other}")
    if cells is None:
        return NONE
    if metric in cells:
        return cells[metric]
    a, b = (table.figure(question_set, arm, metric) or NONE for arm in (one, other))
    return NONE if NONE in (a, b) else f"{float(a.split()[0]) - float(b.split()[0]):+.1f}"


def changes(paper: Mapping[str, Any], tables: Sequence[Table]) -> Iterator[list[str]]:
    """Two rows that a table of ours compares, metric, the paper's difference, ours."""
    rows = {arm: (said, theirs) for said, arm, *theirs in paper["rows"] if arm}
    for place, (column, sets, metric) in enumerate(columns_of(paper)):
        for one, other in itertools.permutations(rows, 2):
            texts = [change(table, table.choose_set(sets), one, other, metric) for table in tables]
            if any(text != NONE for text in texts):
                (said, theirs), (less, those) = rows[one], rows[other]
                of_paper = difference(theirs[place], those[place]) if theirs and those else NONE
                yield [f"{said} − {less}", column, of_paper, *texts]


def verdict(lines: Sequence[Sequence[str]], place: int) -> list[int]:
    """How many intervals of ours lie on the paper's side of 0, on the other side, on neither."""
    counts = [0, 0, 0]
    for line in lines:
        if line[2] != NONE and float(line[2]) and (bounds := BOUNDS.search(line[place])):
            low, high = sorted(float(bound) * math.copysign(1, float(line[2])) for bound in bounds.groups())
            counts[0 if low > 0 else 1 if high < 0 else 2] += 1
    return counts


def page(paper: Mapping[str, Any], tables: Sequence[Table]) -> str:
    shown, found, names = list(figures(paper, tables)), list(changes(paper, tables)), _names(tables)
    parts = [f"# {paper['title']}", paper["asks"], LARGE]
    parts += [_table(MEASURED_WITH, [_measured(table, paper["sets"]) for table in tables])]
    parts += [f"On the paper's own data: `eadpr study {paper['again']}`."]
    if found:
        parts += ["## What a method changes", _table(("difference", "metric", "the paper", *names), found)]
    if all(line[2] == NONE for line in shown):
        parts += ["## Figures", "The paper shows a picture and prints no figures."]
        shown = [[*line[:3], *line[3::2]] for line in shown]
    else:
        parts += ["## Figures"]
        names = [text for name in names for text in (name, f"{name} − paper")]
    parts += [_table(("metric", "row", "the paper", *names), shown)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _names(tables: Sequence[Table]) -> list[str]:
    folders = [table.name for table in tables]
    return [table.name if folders.count(table.name) == 1 else table.path.stem for table in tables]


def _measured(table: Table, sets: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    name = f"[{table.name}, {table.path.stem}](../studies/{table.name}/{table.path.stem}.md)"
    asked = ", ".join(f"{theirs}: {table.choose_set(ours) or NONE}" for theirs, ours in sets.items())
    return name, table.passages, asked, table.command, table.measured


def index(papers: Mapping[str, Mapping[str, Any]]) -> str:
    """Every page, and on which collections ours change as the paper's do."""
    rows = []
    for name, paper in papers.items():
        tables = tables_of(name, paper)
        found = list(changes(paper, tables))
        for place, said in enumerate(_names(tables), 3):
            counts = verdict(found, place)
            rows.append((f"[{paper['title']}]({name}.md)", said, *(str(n) if any(counts) else NONE for n in counts)))
    return f"{INDEX}\n\n{_table(('page', 'ours', *VERDICTS), rows)}\n"


def tables_of(name: str, paper: Mapping[str, Any]) -> list[Table]:
    found = [sorted(STUDIES.glob(f"{pattern}.json")) for pattern in paper["tables"]]
    if not any(found):
        raise ValueError(f"docs/papers.yaml: {name}: no file of docs/studies is one of {paper['tables']}")
    return [read(path) for paths in found for path in paths]


def pages() -> dict[str, str]:
    """By place in the site."""
    papers = YAML(typ="safe", pure=True).load(PAPERS.read_text(encoding="utf-8"))
    made = {f"papers/{name}.md": page(paper, tables_of(name, paper)) for name, paper in papers.items()}
    return {"papers/index.md": index(papers), **made}
