"""Numbers of pages: at most PER_HUNDRED in 100 words stand outside of tables. README's are the commit's own."""

import re
from collections.abc import Mapping

PER_HUNDRED = 6
FIRST_SCREEN = 60  # lines of README before its first ##
HEADLINE = ("top1", "top5", "mrr100", "controlled_aa_evidence", "evidence1")  # the columns of README's table
FIRST = ("bm25", "untrained")  # of its rows; the arms follow by name
# What no reader takes in as a number: tables, code, the targets of links, dates and commits.
PASSED_OVER = re.compile(
    r"(?ms)^```.*?^```|^\|[^\n]*$|`[^`]*`|\]\([^)]*\)|<!--.*?-->|\b\d{4}-\d\d-\d\d\b|\b(?=[a-f]*\d)[a-f\d]{7,8}\b"
)
# Not of names, as in top-1, 001-table2 or Table 2.
NUMBER = re.compile(r"(?<![\w@.-])(?<!Table )(?<!Fig\. )(?<!Python )[-+−]?\d[\d.,]*(?![\w-])")
WORD = re.compile(r"\w+")


def share(text: str) -> float:
    """Return the numbers in 100 words of a page, outside of its tables."""
    plain = PASSED_OVER.sub(" ", text)
    return 100 * len(NUMBER.findall(plain)) / max(100, len(WORD.findall(plain)))


def check_share(page: str, text: str) -> None:
    if (crowd := share(text)) > PER_HUNDRED:
        reason = f"{crowd:.1f} numbers in 100 words outside of tables, at most {PER_HUNDRED}"
        raise ValueError(f"{page}: {reason}; move some into a table")


def check_first_screen(page: str, text: str) -> None:
    if (lines := text.partition("\n## ")[0].count("\n") + 1) > FIRST_SCREEN:
        raise ValueError(f"{page}: {lines} lines stand before the first ##, at most {FIRST_SCREEN}; shorten them")


def check_headline(page: str, text: str, metrics: Mapping[str, Mapping[str, float]]) -> None:
    """Raise ValueError where the page's table of the default run is not what a run of the commit's `metrics` prints."""
    rows = re.findall(r"(?m)^\| ([a-z\d-]+) *\|(.+)\|$", text.partition("\n| %  ")[2].partition("\n\n")[0])
    arms = [arm for arm, values in metrics.items() if HEADLINE[0] in values]
    arms.sort(key=lambda arm: ((FIRST.index(arm) if arm in FIRST else len(FIRST)), arm))
    if (names := [name for name, _ in rows]) != arms:
        raise ValueError(f"{page}: the table of the default run has the rows {names}, the run prints {arms}")
    for row, cells in rows:
        values = [metrics[row].get(metric) for metric in HEADLINE]
        expected = ["–" if value is None else f"{100 * value:.1f}" for value in values]
        if (stated := [cell.strip() for cell in cells.split("|")]) != expected:
            raise ValueError(f"{page}: {row} has {stated}, but metrics/atlas.json {expected}; write these")
