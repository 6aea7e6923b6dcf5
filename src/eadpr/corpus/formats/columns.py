"""Which column of a user's file holds which field: by its own name, a usual other name, or as the user says."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from eadpr.corpus.rows import Row, RowError, join_names

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
        **{
            name: (name,)
            for name in ("grades", "answer_start", "answer_kind", "set", "split", "type", "subject", "relation")
        },
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

# The option by which the user says which columns they are.
OPTIONS = {"passages": "--columns", "questions": "--question-columns", "probed": "--columns"}


def parse_columns(options: Iterable[str]) -> dict[str, str]:
    """Return columns by field from an option of OPTIONS, given again for each column: `text=body`."""
    columns: dict[str, str] = {}
    for option in options:
        field, equals, column = option.partition("=")
        if not equals:
            raise ValueError(f"columns: {option!r} is not FIELD=COLUMN, as in text=body")
        if field in columns:
            raise ValueError(f"columns: {field!r} is said twice; say one column for it")
        columns[field] = column
    return columns


class Columns:
    """Renames the columns of one file to fields. `chosen` maps fields to columns and wins over the usual names; an
    empty column says that the field is in none.

    After reading, `read` maps each field to its column, and `unread` has the columns that are no field.
    """

    def __init__(self, kind: str, chosen: Mapping[str, str]) -> None:
        self.read: dict[str, str] = {}
        self.unread: list[str] = []
        self._kind, self._names, self._chosen, self._option = kind, NAMES[kind], chosen, OPTIONS[kind]
        self._by_header: dict[tuple[str, ...], dict[str, str]] = {}
        if unknown := sorted(chosen.keys() - self._names):
            raise ValueError(f"columns: {kind} have no field {unknown[0]!r}; they have {', '.join(self._names)}")

    def rename(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Rename the fields of rows. Raises ValueError for a column that is missing or could be two things."""
        for where, number, fields in rows:
            header = tuple(fields)
            if header not in self._by_header:
                self._by_header[header] = self._match(where, header)
            yield Row(where, number, {field: fields[column] for field, column in self._by_header[header].items()})

    def _check_missing(self, where: str, header: Collection[str]) -> None:
        """Raise ValueError for columns that are not there, with what to do."""

        def has(field: str) -> bool:
            return field in self._chosen or bool(self._usual(field, header, set(self._chosen.values())))

        missing = [
            f"{column!r} for {field}" for field, column in self._chosen.items() if column and column not in header
        ]
        first, advice = next(iter(self._names)), ""
        if not has(first):
            missing.append(f"for {first}")
            advice = f"; add or rename it, or say which one it is, {self._option} {first}=COLUMN"
        if missing and self._kind == "questions" and not (has("answers") or has("positives")):
            missing.append("for answers or positives")
        if missing:
            there = f"(there are {join_names(header)}){advice}"
            raise ValueError(f"{where}: there is no column {', none '.join(missing)} {there}")

    def _usual(self, field: str, header: Collection[str], taken: Collection[str]) -> list[str]:
        return [name for name in self._names[field] if name in header and name not in taken]

    def _match(self, where: str, header: tuple[str, ...]) -> dict[str, str]:
        """Return the column of each field that a row with these columns has."""
        self._check_missing(where, header)
        columns: dict[str, str] = {}
        for field in self._names:
            usual = self._usual(field, header, {*columns.values(), *self._chosen.values()})
            if field in self._chosen:
                if self._chosen[field]:
                    columns[field] = self._chosen[field]
            elif field in usual or len(usual) == 1:
                columns[field] = field if field in usual else usual[0]
            elif usual:
                either = " or ".join(f"{field}={name}" for name in usual)
                raise RowError(
                    where, "", f"{' and '.join(usual)} may each be the {field}; say which, {self._option} {either}"
                )
        self.read |= columns
        self.unread += [name for name in header if name not in (*columns.values(), *self.unread)]
        return columns
