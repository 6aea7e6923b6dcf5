"""A user's own passages and questions: CSV or TSV with a header, JSONL or Parquet, by the file's name."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from eadpr.corpus.formats.columns import Columns, parse_list
from eadpr.corpus.formats.file_rows import read_objects, read_parquet, read_table
from eadpr.corpus.rows import (
    LARGEST,
    GivenContext,
    GivenGold,
    GivenPassage,
    GivenQuestion,
    Row,
    RowError,
    check_id,
    excerpt,
    is_offset,
    unexpected,
)
from eadpr.corpus.sources import NAME
from eadpr.text.answers import KINDS

DELIMITERS = {".tsv": "\t", ".csv": ",;\t"}  # what may separate the cells
LISTS = ("answers", "positives", "evidence")
TEXTS = ("answer_kind", "set", "split", "type", "subject", "relation")
_NAME = (NAME, "lower-case letters, digits, '.', '_' and '-'")
# Patterns that a field must match, and what messages say of them.
ALLOWED = {"answer_kind": ("|".join(KINDS), f"one of {', '.join(KINDS)}"), "set": _NAME, "split": _NAME}
# A list as Python or numpy writes it, or another literal, which `parse_list` refuses.
_LITERAL = re.compile(r"""(array\()?\s*[\[{(]\s*['"].*[\]})]""", re.DOTALL)


class OwnFiles(NamedTuple):
    """Passages, and questions by split. Columns are by field, for passages and for questions, where they are not the
    usual ones. `description` says in words what they were made of."""

    passages: Path
    questions: Mapping[str, Path]
    columns: Mapping[str, str] = {}
    question_columns: Mapping[str, str] = {}
    description: str = ""

    @property
    def paths(self) -> list[Path]:
        return [self.passages, *self.questions.values()]


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    return path


def read_raw(path: Path) -> Iterator[Row]:
    """Read rows by the file's own columns."""
    ending = _ending(path)
    if ending in DELIMITERS:
        return read_table(path, delimiters=DELIMITERS[ending])
    if ending in (".jsonl", ".json", ".ndjson"):
        return read_objects(path)
    if ending == ".parquet":
        return read_parquet(path)
    endings = ".csv, .tsv, .jsonl or .parquet (.gz or .bz2 may follow all but the last)"
    missing = "" if path.exists() else ", and there is no such file or folder"
    raise ValueError(f"{path}: the name must end in {endings}{missing}")


def _ending(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz").removesuffix(".bz2")).suffix


def read_rows(path: Path, columns: Columns) -> Iterator[Row]:
    """Read rows by field. A text that looks like a list of texts is one, and not a regular expression; in cells, each
    that begins with a bracket."""
    in_cells = _ending(path) in DELIMITERS
    for row in columns.rename(read_raw(path)):
        parse_lists(row, in_cells=in_cells)
        yield row


def parse_lists(row: Row, *, in_cells: bool = False) -> None:
    """Put lists in the place of texts that look like one."""
    for name in LISTS:
        text = row.fields.get(name)
        if not isinstance(text, str):
            continue
        literal = _LITERAL.fullmatch(text) and row.fields.get("answer_kind") != "regex"
        if literal or (in_cells and text.startswith("[")):
            row.fields[name] = parse_list(text, row.where, name)


def read_passages(path: Path, columns: Columns, *, prefix: str = "") -> Iterator[GivenPassage]:
    """Read `text`, and perhaps `id` and `title`. Without an id it is `prefix` and the passage's number, from 1."""
    for row in read_rows(path, columns):
        where, number, fields = row
        title, text = ("" if value is None else value for value in (fields.get("title"), row.value("text")))
        yield where, fields.get("id", f"{prefix}{number}"), title, text, None


def read_questions(path: Path, columns: Columns) -> Iterator[GivenQuestion]:
    """Read `question`, and perhaps other fields of questions; `positives` are passage ids, most evidential first.

    An empty field is as good as none; one value alone stands for a list of it. For each positive, `grades` has how
    relevant it is, `answer_start` the character offset at which one of the answers, or of the texts `evidence`, begins.
    """
    for where, number, fields in read_rows(path, columns):
        lists = {name: _as_list(fields.get(name)) for name in LISTS}
        lists["answers"] = [f"{answer}" if type(answer) is int else answer for answer in lists["answers"]]
        filled = {
            name: value for name, value in fields.items() if name in ("id", "question") or value not in (None, "")
        }
        row = Row(where, number, filled | lists)
        optional = {name: row.optional(name) for name in TEXTS}
        for name, (pattern, expected) in ALLOWED.items():
            if optional[name] is not None and not re.fullmatch(pattern, optional[name]):
                raise unexpected(where, name, optional[name], expected)
        question, answers, evidence = row.text("question", empty=True), row.texts("answers"), row.texts("evidence")
        if evidence and "answer_start" not in row.fields:
            raise RowError(where, "evidence", "needs answer_start, where it begins in each of the positives; add it")
        positives = [check_id(value, where, f"positives[{i}]") for i, value in enumerate(lists["positives"])]
        grades: dict[str, float | None] = {}
        for key, grade in zip(positives, _read_numbers(row, "grades", _is_grade, "numbers above 0"), strict=True):
            if grades.setdefault(key, grade) != grade:
                raise RowError(where, "grades", f"has two for positive {excerpt(key)}; keep one")
        starts = zip(positives, _read_numbers(row, "answer_start", is_offset, "character offsets"), strict=True)
        contexts = [
            GivenContext("positive", i, key, grade=grade and float(grade))
            for i, (key, grade) in enumerate(grades.items())
        ]
        pointed = [*answers, *evidence]
        annotations = [GivenGold(where, question, key, pointed, start) for key, start in starts if start is not None]
        read = GivenQuestion(where, number, question, answers, contexts=contexts, annotations=annotations)
        yield read._replace(id=row.id("id") if "id" in fields else None, **optional)


def _read_numbers(row: Row, name: str, is_valid: Callable[[Any], bool], expected: str) -> list[Any]:
    """Return a list of numbers, one for each of the positives, which in a cell is JSON; None where there is none."""
    count = len(row.fields["positives"])
    value = row.fields.get(name)
    if value is None or not count:
        return [None] * count
    numbers = _as_list(value)
    if isinstance(value, str):  # a cell
        with suppress(ValueError, RecursionError):
            numbers = _as_list(json.loads(value))
    if len(numbers) != count or not all(map(is_valid, numbers)):
        raise unexpected(row.where, name, value, f"a list of {count} {expected}, as positives")
    return numbers


def _is_grade(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= LARGEST


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value in (None, "") else [value]
