"""Which pages have more than PER_HUNDRED numbers in 100 words outside their tables: such a page wants a table."""

import re
from collections.abc import Iterable
from pathlib import Path

PER_HUNDRED = 6
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


def crowded(pages: Iterable[Path]) -> list[str]:
    """Return the pages with too many, and how many each has."""
    shares = {page: share(page.read_text(encoding="utf-8")) for page in pages}
    return [f"{page}: {found:.1f}" for page, found in shares.items() if found > PER_HUNDRED]
