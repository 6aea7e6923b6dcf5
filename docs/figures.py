"""A figure for each claim of docs/findings.md, drawn of the claim's own table: differences with their intervals."""

import html
import re
from typing import NamedTuple

CLAIM = re.compile(r"(?m)^## \d+\. .*$")
DETAILS = re.compile(r"\n<details|\n## ")  # behind a claim's own table
CELL = re.compile(r"([+−]?\d+\.\d)(?: \[([+−]?\d+\.\d), ([+−]?\d+\.\d)\])?")
TAG = re.compile(r"\[([^\]]*)\]\([^)]*\)|<[^>]+>|`")  # of Markdown and HTML
WIDTH, ROW, MARGIN = 420, 44, 10  # pixels; narrow, so that labels can be read on a telephone


class Bar(NamedTuple):
    label: str
    value: float
    low: float
    high: float


def with_figures(text: str) -> str:
    """Return the page with a figure above the table of each claim, which stands before its details."""
    for head in CLAIM.findall(text):
        prefix, _, rest = text.partition(head)
        above, start, table = DETAILS.split(rest, maxsplit=1)[0].partition("\n| ")
        if not (bars := read(start.lstrip("\n") + table.partition("\n\n")[0])):
            reason = "its figure needs a table of differences, such as +1.0 [−0.5, +2.5], before the details"
            raise ValueError(f"docs/findings.md: {head}: {reason}")
        text = f"{prefix}{head}{above}\n{draw(bars)}\n{rest.removeprefix(above)}"
    return text


def read(table: str) -> list[Bar]:
    """Read the cells of a table that are differences; a label is row and column, without marks."""
    head, _, *rows = ([TAG.sub(r"\1", cell).strip() for cell in line.split("|")[1:-1]] for line in table.splitlines())
    bars = []
    for name, *cells in rows:
        for column, cell in zip(head[1:], cells, strict=True):
            if match := CELL.fullmatch(cell):
                value, low, high = (float((bound or match[1]).replace("−", "-")) for bound in match.groups())
                bars.append(Bar(f"{name}, {column}" if len(head) > 2 else name, value, low, high))
    return bars


def draw(bars: list[Bar]) -> str:
    """Return an SVG in the page's own colours: a point and its interval for each, and a line at 0."""
    low, high = min(0, *(bar.low for bar in bars)), max(0, *(bar.high for bar in bars))

    def x_of(value: float) -> float:
        return round(MARGIN + (value - low) / (high - low) * (WIDTH - 2 * MARGIN), 1)

    parts = []
    for row, bar in enumerate(bars):
        y = ROW * row + 30
        parts.append(f'<text x="{MARGIN}" y="{y - 14}">{html.escape(bar.label)}</text>')
        parts.append(f'<line x1="{x_of(0)}" x2="{x_of(0)}" y1="{y - 9}" y2="{y + 9}" stroke-dasharray="3"/>')
        parts.append(f'<line x1="{x_of(bar.low)}" x2="{x_of(bar.high)}" y1="{y}" y2="{y}" stroke-width="2"/>')
        parts.append(f'<circle cx="{x_of(bar.value)}" cy="{y}" r="5"/>')
    return (
        f'<svg class="claim" role="img" aria-label="The table below as points with intervals; the dashed line is 0"'
        f' viewBox="0 0 {WIDTH} {ROW * len(bars)}">{"".join(parts)}</svg>'
    )
