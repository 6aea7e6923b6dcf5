"""Files of questions and answers alone: DPR's `.qa.csv`."""

import ast
import json
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from eadpr.corpus.formats.file_rows import read_table
from eadpr.corpus.rows import GivenQuestion, unexpected


def parse_list(cell: str, where: str, field: str) -> list[Any]:
    """Return a list written as a JSON or Python literal; nothing is ever evaluated.

    numpy's way of writing lists is refused: it has no commas, and Python reads it as one text.
    """
    try:
        items = json.loads(cell)
    except (ValueError, RecursionError):
        try:
            items = ast.literal_eval(cell)
            literals = sum(token.type == tokenize.STRING for token in tokenize.generate_tokens(StringIO(cell).readline))
        except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
            items, literals = None, 0
        if isinstance(items, list | tuple) and literals > len(items):
            items = None
    if not isinstance(items, list | tuple):
        raise unexpected(where, field, cell, "a list of texts such as [\"a\", 'b']")
    return list(items)


def read_qa_csv(path: Path) -> Iterator[GivenQuestion]:
    """Read DPR's question sets: two cells, question and list of answers, no header, quoted as in CSV."""
    for row in read_table(path, ("question", "answers")):
        row.fields["answers"] = parse_list(row.fields["answers"], row.where, "answers")
        yield GivenQuestion(row.where, row.number, row.text("question"), row.texts("answers"))
