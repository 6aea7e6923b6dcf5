"""The page of a study, at most 40 lines of Markdown, and the JSON of its numbers. Both are taken from the tables of the
report (`table.md`), which itself stays an output of DVC."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from eadpr.report import markdown as md
from eadpr.studies.study import Grid

LINES = 40
ROWS = 21  # of all tables of a page together
HEADLINES = (
    "top-1", "top-5", "R-all@2", "R-all@20", "MRR@100", "controlled AA", "controlled AA-evidence", "placebo (words)",
)  # fmt: skip
OF_READER = re.compile(r"# Answers of the reader (?:of paths )?(\S+)")
VERDICT = re.compile(r"(?m)^\*\*Verdict\.\*\* .*$")
UNDECIDED = "**Verdict.** Not written yet."
Cells = dict[str, dict[str, dict[str, str]]]  # question set, then arm or "a − b", then metric


def parse_report(text: str) -> dict[str, Any]:
    """Return the numbers of a report's Markdown, as they stand there: `passages`, `figures` and `differences`.

    Tables of figures are those by arm, by question type and of mean scores. Where two tables have the same metric of an
    arm, the first counts: it is of all questions. A metric of answers begins with its reader's name.
    """
    numbers: dict[str, Any] = {"passages": "", "caption": "", "questions": {}, "figures": {}, "differences": {}}
    question_set = caption = reader = ""
    for block in text.split("\n\n"):
        if block.startswith("## "):
            question_set, _, size = block[3:].partition(": ")
            numbers["questions"].setdefault(question_set, size)
        elif block.startswith("# "):
            answers = OF_READER.match(block)
            reader = f"{answers[1]} " if answers else ""
            numbers["passages"] = numbers["passages"] or block.partition(": ")[2].removesuffix(" passages")
        elif not block.startswith("|"):
            caption = block
        else:
            kind = "differences" if block.startswith("| difference ") else "figures"
            if kind == "differences" and not numbers["caption"]:
                numbers["caption"] = caption
            for row, metric, cell in _cells(block, caption):
                numbers[kind].setdefault(question_set, {}).setdefault(row, {}).setdefault(reader + metric, cell)
    return numbers


def _cells(block: str, caption: str) -> list[tuple[str, str, str]]:
    """Return row, metric and text of the cells of a table."""
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines())
    cells = []
    for first, *rest in rows:
        if head[0] in ("%", "difference"):
            cells += [(first, metric, cell) for metric, cell in zip(head[1:], rest, strict=True)]
        elif head[0] == "type":
            kind = caption.partition(" (")[0]
            cells += [(arm, f"{kind}, {first}", cell) for arm, cell in zip(head[2:], rest[1:], strict=True)]
        elif head[:2] == ["arm", "behind"]:
            cells += [(first, f"{rest[0]}, {text}", cell) for text, cell in zip(head[2:], rest[1:], strict=True)]
    return cells


def write_page(title: str, record: Mapping[str, Any], grid: Grid | None = None, verdict: str = UNDECIDED) -> str:
    """Return the Markdown: question, main table, differences, verdict, command and commit. `record` is the JSON; its
    first question set is shown, in a grid where the study has one."""
    question_set = next(iter(record["figures"]))
    figures, differences = record["figures"][question_set], record["differences"].get(question_set, {})
    # Those of arms, without those of single trainings.
    differences = {
        pair: cells for pair, cells in differences.items() if all(arm in figures for arm in pair.split(" − "))
    }
    size = record["questions"][question_set]
    parts = [f"# {title}", record["about"], f"## {question_set}: {size}, {record['passages']} passages"]
    if grid:
        tables = [_grid_table(figures, grid, metric) for metric in grid.metrics]
        parts += tables[: ROWS // (len(grid.row_values) + 3) or 1]
    else:
        columns = _columns(figures)
        row_count = max(ROWS - len(differences), ROWS // 2)
        parts.append(_table("%", figures, columns, row_count))
        columns = [metric for metric in columns if any(metric in cells for cells in differences.values())]
        if columns:
            room = ROWS - min(len(figures), row_count)
            parts += [record["caption"], _table("difference", differences, columns, room)]
    command = f"`eadpr study {record['command']}`"
    provenance = (
        f"Measured at {record['commit']} ({record['date']}); report md5 {record['report']}. All sets and metrics:"
    )
    name = title.partition(",")[0]
    parts += [verdict, command, f"{provenance} [{name}.json]({name}.json)."]
    text = "\n\n".join(parts) + "\n"
    if (lines := text.count("\n")) > LINES:
        raise ValueError(f"the page of {title} has {lines} lines; at most {LINES} fit")
    return text


def _columns(figures: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the headline metrics and the answers' metrics; the first six if there are no headlines."""
    metrics = list(dict.fromkeys(metric for cells in figures.values() for metric in cells))
    headlines = [metric for metric in metrics if metric in HEADLINES or re.search(r" (answer )?EM\b", metric)]
    return headlines[:9] or metrics[:6]


def _table(head: str, rows: Mapping[str, Mapping[str, str]], columns: Sequence[str], most: int) -> str:
    body = [[name, *(cells.get(metric, md.NONE) for metric in columns)] for name, cells in rows.items()]
    more = len(body) - most
    if more > 0:
        head, body = f"{head} ({more + 1} more in the JSON)", body[: most - 1]
    return md.table([head, *columns], body)


def _grid_table(figures: Mapping[str, Mapping[str, str]], grid: Grid, metric: str) -> str:
    title = md.title(metric)
    head = [f"{title} (%), {grid.rows} ↓ {grid.columns} →", *(f"{value:g}" for value in grid.column_values)]
    cells = [[figures.get(arm, {}).get(title, md.NONE) for arm in arms] for arms in grid.names()]
    return md.table(head, [[f"{value:g}", *row] for value, row in zip(grid.row_values, cells, strict=True)])
