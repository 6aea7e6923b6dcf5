"""The page of a study, and the JSON of its numbers, both taken from the tables of the report (`table.md`)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eadpr.report import markdown as md

ROWS = 21  # of all tables of a page together, so that it keeps to 40 lines
# The first columns of a page, in this order.
HEADLINES = (
    "top-1 by id", "top-1", "top-5", "R-all@2", "R-all@20", "MRR@100", "controlled AA-evidence",
    "evidence@1", "evidence top-1", "controlled AA", "placebo (words)",
)  # fmt: skip
OF_READER = re.compile(r"# Answers of the reader (?:of paths )?(\S+)")
VERDICT = re.compile(r"(?ms)^\*\*Verdict\.\*\* .*?(?=\n\n|\Z)")
UNDECIDED = "**Verdict.** Not written yet."


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
            if kind == "differences":
                numbers["caption"] = numbers["caption"] or caption
            for row, metric, cell in _cells(block, caption):
                numbers[kind].setdefault(question_set, {}).setdefault(row, {}).setdefault(reader + metric, cell)
    return numbers


def _cells(block: str, caption: str) -> Iterator[tuple[str, str, str]]:
    """Yield row, metric and text of the cells of a table."""
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines())
    kind = caption.partition(" (")[0]
    for first, *rest in rows:
        for column, cell in zip(head[1:], rest, strict=True):
            if head[0] in ("%", "difference"):
                yield first, column, cell
            elif head[0] == "type" and column != head[1]:
                yield column, f"{kind}, {first}", cell
            elif head[:2] == ["arm", "behind"] and column != head[1]:
                yield first, f"{rest[0]}, {column}", cell


def write_page(title: str, record: Mapping[str, Any], verdict: str = UNDECIDED) -> str:
    """Return the Markdown: question, main table and differences of the first set, verdict, command, commit."""
    question_set, figures = next(iter(record["figures"].items()))
    heading = f"## {question_set}: {record['questions'][question_set]}, {record['passages']} passages"
    # Of arms, without those of near-duplicates.
    measured = record["differences"].get(question_set, {})
    differences = {pair: cells for pair, cells in measured.items() if {*pair.split(" − ")} <= figures.keys()}
    columns, rows = _columns(figures), max(ROWS - len(differences), ROWS // 2)
    parts = [f"# {title}", record["about"], heading, _table("%", figures, columns, rows)]
    columns = [metric for metric in columns if any(metric in cells for cells in differences.values())]
    if columns:
        parts += [record["caption"], _table("difference", differences, columns, ROWS - min(len(figures), rows))]
    name = title.partition(",")[0]
    source = f"Measured at {record['commit']} ({record['date']}); report md5 {record['report']}."
    source += f" All sets and metrics: [{name}.json]({name}.json)."
    return "\n\n".join([*parts, verdict, f"`eadpr study {record['command']}`", source]) + "\n"


def _columns(figures: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the headline metrics and the answers' metrics; the first six if there are no headlines."""
    metrics = list(dict.fromkeys(metric for cells in figures.values() for metric in cells))
    answers = [metric for metric in metrics if re.search(r" (answer )?EM\b", metric)]
    return [*(metric for metric in HEADLINES if metric in metrics), *answers][:9] or metrics[:6]


def _table(head: str, rows: Mapping[str, Mapping[str, str]], columns: Sequence[str], most: int) -> str:
    body = [[name, *(cells.get(metric, md.NONE) for metric in columns)] for name, cells in rows.items()]
    if len(body) > most:
        head, body = f"{head} ({len(body) - most + 1} more in the JSON)", body[: most - 1]
    return md.table([head, *columns], body)
