"""Files of questions and answers alone: DPR's `.qa.csv`, and TREC's questions with regular expressions."""

import ast
import json
import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from eadpr.corpus.formats.file_rows import read_table
from eadpr.corpus.rows import GivenQuestion, check_texts, unexpected

_CLOSE = re.compile(r"""['"]\s*[a-zA-Z]?['"]""")  # perhaps two texts without a comma between them


def parse_list(cell: str, where: str, field: str) -> list[Any]:
    """Return a list written as a JSON or Python literal; nothing is ever evaluated.

    numpy's way of writing lists is refused: it has no commas, and Python reads it as one text.
    """
    try:
        try:
            items = json.loads(cell)
        except ValueError:
            items = ast.literal_eval(cell)
            if isinstance(items, list | tuple) and _CLOSE.search(cell) and _count_literals(cell) > len(items):
                raise ValueError from None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise unexpected(where, field, cell, "a list of texts such as [\"a\", 'b']") from None
    if not isinstance(items, list | tuple):
        raise unexpected(where, field, items, "a list of texts")
    return list(items)


def _count_literals(cell: str) -> int:
    return sum(token.type == tokenize.STRING for token in tokenize.generate_tokens(StringIO(cell).readline))


def read_qa_csv(path: Path) -> Iterator[GivenQuestion]:
    """Read DPR's question sets: two cells, question and list of answers, no header, quoted as in CSV."""
    for row in read_table(path, ("question", "answers")):
        answers = check_texts(parse_list(row.fields["answers"], row.where, "answers"), row.where, "answers")
        yield GivenQuestion(row.where, row.number, row.text("question"), answers)


def read_trec(path: Path) -> Iterator[GivenQuestion]:
    """Read id, type, question and one regular expression per line, separated by tabs and never quoted."""
    for row in read_table(path, ("id", "type", "question", "pattern"), quoted=False):
        answers = [row.text("pattern", empty=True)]
        yield GivenQuestion(row.where, row.number, row.text("question"), answers, "regex", type=row.text("type"))
