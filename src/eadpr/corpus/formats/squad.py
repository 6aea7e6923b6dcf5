"""SQuAD's JSON: paragraphs are the passages, and questions come with the places of their answers."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eadpr.corpus.formats.file_rows import read_data, read_objects
from eadpr.corpus.formats.own import OwnFiles, write_rows
from eadpr.corpus.rows import Row, RowError

TESTS = re.compile(r"(^|[._-])(dev|test|valid|validation)([._-]|$)", re.IGNORECASE)


def convert_squad(paths: Sequence[Path], out: Path) -> OwnFiles:
    """Write one file, or one to train on and one to test with, as a user's own files in `out`. Passages are called
    `Title/number`, and questions without an answer are left out."""
    tests = [path for path in paths if TESTS.search(path.name)]
    if len(paths) > 2 or (len(paths) == 2 and len(tests) != 1):
        names = ", ".join(map(str, paths))
        raise ValueError(f"{names}: give one SQuAD file, or two of which one has dev, test or valid in its name")
    ids: dict[tuple[str, str], str] = {}
    questions, unanswered = {}, 0
    for path in sorted(paths, key=tests.__contains__):
        split = "test" if path in tests and len(paths) == 2 else "train"
        rows: list[dict[str, Any]] = []
        for title, text, paragraph in _read_paragraphs(path):
            passage = ids.setdefault((title, text), f"{'_'.join(title.split())}/{len(ids) + 1}".removeprefix("/"))
            answered = list(map(_read_question, filter(_has_answer, paragraph)))
            rows += [row | {"positives": [passage] * len(row["answer_start"])} for row in answered]
            unanswered += len(paragraph) - len(answered)
        questions[split] = write_rows(out / f"questions-{split}.jsonl", rows)
    passages = ({"id": passage, "title": title, "text": text} for (title, text), passage in ids.items())
    description = "SQuAD's JSON"
    if unanswered:
        description += f"; {unanswered:,} questions without an answer are left out"
    return OwnFiles(write_rows(out / "passages.jsonl", passages), questions, description=description)


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
    for title, text, paragraph in _read_paragraphs(path):
        for row in filter(_has_answer, paragraph):
            yield _read_question(row) | {"title": title, "text": text}


def _read_paragraphs(path: Path) -> Iterator[tuple[str, str, list[Row]]]:
    """Yield title, text and questions of each paragraph."""
    for article in read_data(path).objects("data"):
        title = "" if article.fields.get("title") is None else article.text("title", empty=True)
        for paragraph in article.objects("paragraphs"):
            yield title, paragraph.text("context", empty=True), paragraph.objects("qas")


def _has_answer(row: Row) -> bool:
    return not row.fields.get("is_impossible") and bool(row.value("answers"))


def _read_question(row: Row) -> dict[str, Any]:
    answers = row.objects("answers")
    for answer in answers:
        if answer.fields.get("answer_start") in (-1, None):  # CMRC's word for a place that is not known is -1
            answer.fields["answer_start"] = 0
    places = dict.fromkeys((answer.text("text", empty=True), answer.offset("answer_start")) for answer in answers)
    texts, starts = list(dict.fromkeys(text for text, _ in places)), [start for _, start in places]
    fields = {"question": row.text("question", empty=True), "answers": texts, "answer_start": starts}
    return fields | ({"id": row.id("id")} if "id" in row.fields else {})
