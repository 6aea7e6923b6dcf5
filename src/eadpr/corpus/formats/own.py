"""A user's own passages and questions: CSV or TSV with a header, JSONL or Parquet, by the file's name."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eadpr.corpus.formats import file_rows
from eadpr.corpus.formats.columns import Columns
from eadpr.corpus.formats.gold import BEYOND
from eadpr.corpus.formats.qa_files import parse_list
from eadpr.corpus.rows import (
    LARGEST,
    GivenContext,
    GivenGold,
    GivenPassage,
    GivenQuestion,
    Row,
    check_id,
    unexpected,
)
from eadpr.corpus.sources import NAME
from eadpr.text.answers import KINDS

LISTS = ("answers", "positives")
TEXTS = ("answer_kind", "set", "split", "type", "subject", "relation")
_NAME = (NAME, "lower-case letters, digits, '.', '_' and '-'")
# Patterns that a field must match, and what messages say of them.
ALLOWED = {"answer_kind": ("|".join(KINDS), f"one of {', '.join(KINDS)}"), "set": _NAME, "split": _NAME}

_LIST_OF_TEXTS = re.compile(r"""\[\s*['"].*['"]\s*\]""", re.DOTALL)


class OwnFiles(NamedTuple):
    """Passages, questions by split, and for some splits where the answers stand. Columns are by field, for passages and
    for questions, where they are not the usual ones. `description` says in words what they were made of."""

    passages: Path
    questions: Mapping[str, Path]
    gold: Mapping[str, Path] = {}
    columns: Mapping[str, str] = {}
    question_columns: Mapping[str, str] = {}
    description: str = ""

    @property
    def paths(self) -> list[Path]:
        return [self.passages, *self.questions.values(), *self.gold.values()]


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write JSONL; return the path."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return path


def read_rows(path: Path) -> Iterator[Row]:
    name = path.name.removesuffix(".gz")
    if delimiters := _delimiters(path):
        return file_rows.read_table(path, delimiters=delimiters)
    if name.endswith((".jsonl", ".json")):
        return file_rows.read_objects(path)
    if name.endswith(".parquet"):
        return file_rows.read_parquet(path)
    raise ValueError(f"{path}: the name must end in .csv, .tsv, .jsonl or .parquet (.gz may follow all but the last)")


def _delimiters(path: Path) -> str:
    """Return what may separate the cells of the file, by its name; empty if it has no cells."""
    return {"tsv": "\t", "csv": ",;\t"}.get(path.name.removesuffix(".gz").rpartition(".")[2], "")


def read_with_lists(path: Path, columns: Columns) -> Iterator[Row]:
    """Read rows in which answers and positives may be lists written as a literal: in cells that begin with a bracket,
    in files that know lists those that look like a list of texts and not like a regular expression."""
    in_cells = bool(_delimiters(path))
    for row in columns.rename(read_rows(path)):
        for name in LISTS:
            text = row.fields.get(name)
            if not isinstance(text, str):
                continue
            if in_cells:
                is_list = text.startswith("[")
            else:
                is_list = _LIST_OF_TEXTS.fullmatch(text) and row.fields.get("answer_kind") != "regex"
            if is_list:
                row.fields[name] = parse_list(text, row.where, name)
        yield row


def read_probed(path: Path, columns: Mapping[str, str]) -> Iterator[Row]:
    """Read rows of question, answers, text and perhaps title, id and answer_kind."""
    return read_with_lists(path, Columns("probed", columns))


def read_passages(path: Path, columns: Columns, *, prefix: str = "") -> Iterator[GivenPassage]:
    """Read `text`, and perhaps `id` and `title`. Without an id it is `prefix` and the passage's number, from 1."""
    for row in columns.rename(read_rows(path)):
        where, number, fields = row
        title = fields.get("title")
        yield where, fields.get("id", f"{prefix}{number}"), "" if title is None else title, row.value("text"), None


def read_questions(path: Path, columns: Columns) -> Iterator[GivenQuestion]:
    """Read `question`, and perhaps other fields of questions; `positives` are passage ids, most evidential first.

    An empty field is as good as none; one value alone stands for a list of it. `grades` are numbers, one for each of
    the positives: how relevant it is.
    """
    for where, number, fields in read_with_lists(path, columns):
        lists = {name: _as_list(fields.get(name)) for name in LISTS}
        filled = {k: v for k, v in fields.items() if k in ("id", "question") or v not in (None, "")}
        row = Row(where, number, filled | lists)
        optional = {name: row.optional(name) for name in TEXTS}
        for name, (pattern, expected) in ALLOWED.items():
            if optional[name] is not None and not re.fullmatch(pattern, optional[name]):
                raise unexpected(where, name, optional[name], expected)
        positives = [check_id(value, where, f"positives[{i}]") for i, value in enumerate(lists["positives"])]
        grades: dict[str, float | None] = {}  # the first of each passage
        for key, grade in zip(positives, _read_grades(row, len(positives)), strict=True):
            grades.setdefault(key, grade)
        contexts = [GivenContext("positive", i, key, grade=grade) for i, (key, grade) in enumerate(grades.items())]
        optional["id"] = row.id("id") if "id" in fields else None
        yield GivenQuestion(where, number, row.text("question"), row.texts("answers"), contexts=contexts, **optional)


def read_answer_starts(path: Path, columns: Columns) -> Iterator[GivenGold]:
    """Read where one of the answers begins in each of the positives, from questions with `answer_start`, character
    offsets in the order of the positives."""
    for where, number, fields in read_with_lists(path, columns):
        if fields.get("answer_start") in (None, ""):
            continue
        row = Row(where, number, fields | {name: _as_list(fields.get(name)) for name in LISTS})
        positives, answers = row.value("positives"), row.texts("answers")
        if not answers:
            raise unexpected(where, "answers", answers, "those that begin at answer_start")
        starts = _read_numbers(row, "answer_start", len(positives), _is_offset, "character offsets")
        for key, start in zip(positives, starts, strict=True):
            yield GivenGold(where, row.text("question"), str(key), answers, min(start, BEYOND))


def _read_grades(row: Row, count: int) -> list[float | None]:
    if row.fields.get("grades") in (None, "") or not count:
        return [None] * count
    return [float(grade) for grade in _read_numbers(row, "grades", count, _is_grade, "numbers above 0")]


def _read_numbers(row: Row, name: str, count: int, is_valid: Callable[[Any], bool], expected: str) -> list[Any]:
    """Return a list of numbers, one for each of `count` positives, which in a cell is JSON."""
    numbers = value = row.value(name)
    if isinstance(value, str):  # a cell
        try:
            numbers = json.loads(value)
        except (ValueError, RecursionError):
            numbers = value
    numbers = _as_list(numbers)
    if len(numbers) != count or not all(map(is_valid, numbers)):
        raise unexpected(row.where, name, value, f"a list of {count} {expected}, as positives")
    return numbers


def _is_grade(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= LARGEST


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value in (None, "") else [value]
