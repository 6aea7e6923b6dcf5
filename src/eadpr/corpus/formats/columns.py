"""Which column of a user's file holds which field: by its own name, a usual other name, or as the user says."""

import ast
import json
import tokenize
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from eadpr.corpus.rows import Row, RowError, join_names, unexpected

NAMES = tomllib.loads(Path(__file__).with_name("columns.toml").read_text(encoding="utf-8"))
# The option by which the user says which columns they are.
OPTIONS = {"passages": "--columns", "questions": "--question-columns", "probed": "--columns"}


def parse_columns(options: Iterable[str]) -> dict[str, str]:
    """Return columns by field from an option of OPTIONS, given again for each column: `text=body`."""
    columns: dict[str, str] = {}
    for option in options:
        field, equals, column = option.partition("=")
        if not equals:
            raise ValueError(f"columns: {option!r} is not FIELD=COLUMN, as in text=body")
        if columns.setdefault(field, column) != column:
            raise ValueError(f"columns: {field} is {columns[field]!r} and {column!r}; give one column for each field")
    return columns


class Columns:
    """Renames a file's columns to fields. `chosen` (field -> column, empty for none) wins over the usual names.

    After reading, `read` maps each field to its column, and `unread` has the columns that are no field.
    """

    def __init__(self, kind: str, chosen: Mapping[str, str]) -> None:
        self.read: dict[str, str] = {}
        self.unread: list[str] = []
        self._names, self._chosen, self._option = NAMES[kind], chosen, OPTIONS[kind]
        self._by_header: dict[tuple[str, ...], dict[str, str]] = {}
        if unknown := sorted(chosen.keys() - self._names):
            raise ValueError(f"columns: {kind} have no field {unknown[0]!r}; they have {', '.join(self._names)}")

    def rename(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Rename the fields of rows. Raises RowError for a column that is missing or could be two things."""
        for where, number, fields in rows:
            header = tuple(fields)
            if header not in self._by_header:
                self._by_header[header] = self._match(where, header)
            yield Row(where, number, {field: fields[column] for field, column in self._by_header[header].items()})

    def _match(self, where: str, header: tuple[str, ...]) -> dict[str, str]:
        """Return the column of each field that a row with these columns has."""
        columns: dict[str, str] = {}
        for field, names in self._names.items():
            used_columns = {*columns.values(), *self._chosen.values()}
            usual = [name for name in names if name in header and name not in used_columns]
            if field in usual:
                usual = [field]
            if field not in self._chosen and len(usual) > 1:
                either = " or ".join(f"{field}={name}" for name in usual)
                reason = f"{' and '.join(usual)} may each be the {field}; say which, {self._option} {either}"
                raise RowError(where, "", reason)
            column = self._chosen.get(field, next(iter(usual), ""))
            if column and column in header:
                columns[field] = column
            elif column or not columns:  # every file needs the first field
                missing = f"{column!r} for {field}" if column else f"for {field}"
                advice = f"add or rename it, or say which one it is, {self._option} {field}=COLUMN"
                raise RowError(where, "", f"there is no column {missing} (there are {join_names(header)}); {advice}")
        self.read |= columns
        unread = [join_names([name]) for name in header if name not in columns.values()]
        self.unread += [name for name in unread if name not in self.unread]
        return columns


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
