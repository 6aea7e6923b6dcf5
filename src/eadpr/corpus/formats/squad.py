"""SQuAD's JSON: paragraphs are the passages, and questions come with the places of their answers."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

from eadpr.corpus.formats.columns import Columns
from eadpr.corpus.formats.file_rows import read_data, read_objects
from eadpr.corpus.formats.own import OwnFiles, read_raw, read_rows, write_rows
from eadpr.corpus.rows import Row, RowError

TESTS = re.compile(r"(^|[._-])(dev|test|valid|validation)([._-]|$)", re.IGNORECASE)
PASSAGE = ("text", "title", "passage_id")  # fields of a table's row; all others are the question's
UNREAD = ("positives", "grades", "answer_start", "evidence")  # of other passages, or in a form of their own
# Title, text and questions of each passage, None for one without an answer.
Paragraphs = Iterator[tuple[str, str, list[dict[str, Any] | None]]]


def convert_squad(paths: Sequence[Path], out: Path) -> OwnFiles:
    """Write one file, or one to train on and one to test with, as a user's own files in `out`: SQuAD's JSON, or tables
    whose rows have a question and its passage. Passages are called `Title/number`, and questions without an answer are
    left out."""
    squad = all(map(is_squad, paths))
    read, description = (_read_paragraphs, "SQuAD's JSON") if squad else (_read_pairs, "questions with their passages")
    tests = [path for path in paths if TESTS.search(path.name)]
    if len(paths) > 2 or (len(paths) == 2 and len(tests) != 1):
        names = ", ".join(map(str, paths))
        raise ValueError(f"{names}: give one such file, or two of which one has dev, test or valid in its name")
    ids: dict[tuple[str, str], str] = {}
    questions, unanswered = {}, 0
    for path in sorted(paths, key=tests.__contains__):
        split = "test" if path in tests and len(paths) == 2 else "train"
        rows: list[dict[str, Any]] = []
        for title, text, items in read(path):
            passage = ids.setdefault((title, text), f"{'_'.join(title.split())}/{len(ids) + 1}".removeprefix("/"))
            answered = [row for row in items if row]
            rows += [row | {"positives": [passage] * len(row.get("answer_start", [0]))} for row in answered]
            unanswered += len(items) - len(answered)
        questions[split] = write_rows(out / f"{path.stem}.questions.jsonl", rows)
    passages = ({"id": passage, "title": title, "text": text} for (title, text), passage in ids.items())
    if unanswered:
        description += f"; {unanswered:,} questions without an answer are left out"
    file = out / questions["train"].name.replace(".questions.", ".passages.")
    return OwnFiles(write_rows(file, passages), questions, description=description)


def is_squad(path: Path) -> bool:
    """Tell SQuAD's JSON, an object that may stand on many lines, from rows a line each or a list of them."""
    if not path.name.lower().endswith((".json", ".json.gz")):
        return False
    try:
        return "data" in next(read_objects(path), Row("", 0, {})).fields
    except RowError:
        return True


def read_answered(path: Path) -> Iterator[dict[str, Any]]:
    """Read id, question, answers, title and text of every question that has an answer."""
    for title, text, items in _read_paragraphs(path):
        yield from (row | {"title": title, "text": text} for row in items if row)


def _read_paragraphs(path: Path) -> Paragraphs:
    for article in read_data(path).objects("data"):
        for paragraph in article.objects("paragraphs"):
            items = [_read_question(row) for row in paragraph.objects("qas")]
            yield _title(article), paragraph.text("context", empty=True), items


def _read_pairs(path: Path) -> Paragraphs:
    """Read a table; columns that are none of its fields go along, as sets and splits or to be named as not read."""
    columns = Columns("probed", {})
    for raw, row in zip(read_raw(path), read_rows(path, columns), strict=True):
        fields = {name: value for name, value in raw.fields.items() if name not in columns.read.values()} | row.fields
        question = {name: value for name, value in fields.items() if name not in (*PASSAGE, *UNREAD)}
        starts = question.get("answers.answer_start")  # SQuAD's answers are a struct of two lists there
        if isinstance(starts, list) and {type(start) for start in starts} <= {int, NoneType}:
            del question["answers.answer_start"]
            if valid_starts := [start for start in dict.fromkeys(starts) if start not in (-1, None)]:
                question["answer_start"] = valid_starts
        unanswered = question.get("answers", "?") in (None, "", [])
        yield _title(row), row.text("text", empty=True), [None if unanswered else question]


def _title(row: Row) -> str:
    return "" if row.fields.get("title") is None else row.text("title", empty=True)


def _read_question(row: Row) -> dict[str, Any] | None:
    if row.fields.get("is_impossible") or not row.value("answers"):
        return None
    answers = row.objects("answers")
    for answer in answers:
        if answer.fields.get("answer_start") in (-1, None):  # CMRC's word for a place that is not known is -1
            answer.fields["answer_start"] = 0
    places = dict.fromkeys((answer.text("text", empty=True), answer.offset("answer_start")) for answer in answers)
    texts, starts = list(dict.fromkeys(text for text, _ in places)), [start for _, start in places]
    fields = {"question": row.text("question", empty=True), "answers": texts, "answer_start": starts}
    return fields | ({"id": row.id("id")} if "id" in row.fields else {})
