"""Which column of a user's file holds which field: by its own name, a usual other name, or as the user says."""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from eadpr.corpus.formats.file_rows import listed

# By kind of file: the names that a field usually has, its own first. Of the first field every file needs a column.
NAMES = {
    "passages": {
        "text": ("text", "contents", "content", "body", "passage", "document"),
        "id": ("id", "_id", "docid", "doc_id", "docno", "pid", "passage_id"),
        "title": ("title", "headline"),
    },
    "questions": {
        "question": ("question", "query", "text"),
        "id": ("id", "_id", "qid", "query_id", "query-id", "question_id"),
        "answers": ("answers", "answer"),
        "positives": ("positives", "positive", "positive_ids"),
        "grades": ("grades",),
        **{name: (name,) for name in ("answer_kind", "set", "split", "type", "subject", "relation")},
    },
}
# Rows of question and passage, which no collection has.
NAMES["probed"] = {
    "question": ("question", "query"),
    **{name: NAMES["questions"][name] for name in ("id", "answers", "answer_kind")},
    "text": ("text", "contents", "context", "passage", "positive"),
    "title": NAMES["passages"]["title"],
    "passage_id": ("passage_id", "docid", "doc_id", "pid"),
}

# By which the user says what a column is.
OPTIONS = {"passages": "--columns", "questions": "--question-columns", "probed": "--columns"}
_LIKE_AN_ID = re.compile(r"(^|[_-])(id|no|nr|key|uuid|guid|identifier)$|id$", re.IGNORECASE)
_MISSPELT = 0.8  # difflib's ratio, from which a name is taken for another one misspelt


def by_field(said: Iterable[str]) -> dict[str, str]:
    """Of an option of OPTIONS, given again for each column: `text=body`."""
    pairs = [one.partition("=") for one in said]
    for field, equals, _ in pairs:
        if not equals:
            raise ValueError(f"columns: {field!r} is not FIELD=COLUMN, as in text=body")
    fields = [field for field, _, _ in pairs]
    if twice := [field for field in fields if fields.count(field) > 1]:
        raise ValueError(f"columns: {twice[0]} is said twice; say one column for it")
    return {field: column for field, _, column in pairs}


class Columns:
    """Renames the columns of one file to fields. `said` maps fields to columns and wins over the usual names; an empty
    column says that the field is in none.

    After reading, `read` maps each field to its column, and `unread` has the columns that are no field.
    """

    def __init__(self, kind: str, said: Mapping[str, str]) -> None:
        self.read: dict[str, str] = {}
        self.unread: list[str] = []
        self._kind, self._names, self._said = kind, NAMES[kind], said
        self._known: dict[tuple[str, ...], dict[str, str]] = {}
        if unknown := sorted(said.keys() - self._names):
            raise ValueError(f"columns: {kind} have no field {unknown[0]!r}; they have {', '.join(self._names)}")

    def renamed(self, rows: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Rows with their places. Raises ValueError for a column that is missing, could be two things, or looks like an
        id that nothing reads."""
        for where, row in rows:
            there = tuple(row)
            if there not in self._known:
                self._known[there] = self._found(where, there)
            yield where, {field: row[column] for field, column in self._known[there].items()}

    def missing(self, where: str, there: Collection[str]) -> str:
        """All columns that are not there, and what to do; empty if there are all."""

        def has(field: str) -> bool:
            taken = self._said.values()
            return field in self._said or any(name in there and name not in taken for name in self._names[field])

        lacking = [f"{column!r} for {field}" for field, column in self._said.items() if column and column not in there]
        first, say = next(iter(self._names)), ""
        if not has(first):
            lacking.append(f"for {first}")
            say = f"; {self._say('add or rename it, or say which one it is', f'{first}=COLUMN')}"
        if lacking and self._kind == "questions" and not (has("answers") or has("positives")):
            lacking.append("for answers or positives")
        if not lacking:
            return ""
        return f"{where}: there is no column {', none '.join(lacking)} (there are {listed(there)}){say}"

    def _found(self, where: str, there: tuple[str, ...]) -> dict[str, str]:
        if missing := self.missing(where, there):
            raise ValueError(missing)
        found: dict[str, str] = {}
        for field in self._names:
            taken = {*found.values(), *self._said.values()}
            if (column := self._column(where, field, there, taken)) is not None:
                found[field] = column
        unread = [name for name in there if name not in found.values()]
        self._check(where, found, unread)
        self.read |= found
        self.unread += [name for name in unread if name not in self.unread]
        return found

    def _column(self, where: str, field: str, there: tuple[str, ...], taken: set[str]) -> str | None:
        if (said := self._said.get(field)) is not None:
            return said or None
        usual = [name for name in self._names[field] if name in there and name not in taken]
        if field in usual or len(usual) == 1:
            return field if field in usual else usual[0]
        if usual:
            either = " or ".join(f"{field}={name}" for name in usual)
            raise ValueError(
                f"{where}: {' and '.join(usual)} may each be the {field}; {self._say('say which', either)}"
            )
        return None

    def _check(self, where: str, found: Mapping[str, str], unread: list[str]) -> None:
        for name in unread:
            named = self._kind != "probed" and "id" not in found and "id" not in self._said
            if named and _LIKE_AN_ID.search(name):
                say = self._say("say so", f"id={name}", "or number them", "id=")
                raise ValueError(
                    f"{where}: column {name!r} may be the id, by which other files name these {self._kind}; {say}"
                )
            fields = [field for field in self._names if field not in found and field not in self._said]
            if near := difflib.get_close_matches(name.lower(), fields, n=1, cutoff=_MISSPELT):
                say = self._say(f"if it is {near[0]}, say so", f"{near[0]}={name}", "else", f"{near[0]}=")
                raise ValueError(f"{where}: unknown column {name!r}; known are {', '.join(self._names)}; {say}")

    def _say(self, first: str, *rest: str) -> str:
        """What to do, with the option for it where there is one."""
        words = [listed([one]) for one in (first, *rest)]
        return ", ".join(
            f"{said}, {OPTIONS[self._kind]} {value}" for said, value in zip(words[::2], words[1::2], strict=True)
        )
