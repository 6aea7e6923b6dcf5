"""SQuAD's JSON: paragraphs are the passages, and questions come with the places of their answers."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eadpr.corpus.formats.file_rows import read_data
from eadpr.corpus.formats.own import OwnFiles, write_rows
from eadpr.corpus.rows import Row

_TESTS = re.compile(r"(^|[._-])(dev|test|valid|validation)([._-]|$)", re.IGNORECASE)


class SquadParagraph(NamedTuple):
    """`questions` are rows of those with an answer; `unanswered` counts the others."""

    title: str
    text: str
    questions: list[dict[str, Any]]
    unanswered: int


def convert_squad(paths: Sequence[Path], out: Path) -> OwnFiles:
    """Write one file, or one to train on and one to test with, as a user's own files in `out`. Passages are called
    `Title/number`, and questions without an answer are left out."""
    for path in paths:
        if not path.name.endswith((".json", ".json.gz")):
            raise ValueError(f"{path}: a new collection is a folder, SQuAD's JSON, or --passages and --questions")
    tests = [path for path in paths if _TESTS.search(path.name)]
    if len(paths) > 2 or (len(paths) == 2 and len(tests) != 1):
        named = ", ".join(map(str, paths))
        raise ValueError(f"{named}: give one SQuAD file, or two of which one has dev, test or valid in its name")
    splits = {"train": paths[0]} if len(paths) == 1 else {"test" if path in tests else "train": path for path in paths}
    ids: dict[tuple[str, str], str] = {}
    questions, unanswered = {}, 0
    for split, path in sorted(splits.items(), reverse=True):
        rows: list[dict[str, Any]] = []
        for title, text, asked, without_answer in read_paragraphs(path):
            passage = ids.setdefault((title, text), f"{'_'.join(title.split())}/{len(ids) + 1}".removeprefix("/"))
            rows += [row | {"positives": [passage] * len(row["answer_start"])} for row in asked]
            unanswered += without_answer
        questions[split] = write_rows(out / f"questions-{split}.jsonl", rows)
    passages = ({"id": passage, "title": title, "text": text} for (title, text), passage in ids.items())
    description = "SQuAD's JSON"
    if unanswered:
        description += f"; {unanswered:,} questions without an answer are left out"
    return OwnFiles(write_rows(out / "passages.jsonl", passages), questions, description=description)


def read_answered(path: Path) -> Iterator[dict[str, Any]]:
    """Read id, question, answers, title and text of every question that has an answer."""
    for paragraph in read_paragraphs(path):
        for row in paragraph.questions:
            yield row | {"title": paragraph.title, "text": paragraph.text}


def read_paragraphs(path: Path) -> Iterator[SquadParagraph]:
    for article in read_data(path).objects("data"):
        title = article.optional("title") or ""
        for paragraph in article.objects("paragraphs"):
            asked = paragraph.objects("qas")
            answered = [row for row in asked if row.value("answers") and not row.fields.get("is_impossible")]
            rows = list(map(_read_question, answered))
            yield SquadParagraph(title, paragraph.text("context", empty=True), rows, len(asked) - len(rows))


def _read_question(row: Row) -> dict[str, Any]:
    for answer in row.objects("answers"):
        if answer.value("answer_start") == -1:  # CMRC's word for a place that is not known
            answer.fields["answer_start"] = 0
    answers = dict.fromkeys(
        (answer.text("text", empty=True), answer.offset("answer_start")) for answer in row.objects("answers")
    )
    texts, starts = list(dict.fromkeys(text for text, _ in answers)), [start for _, start in answers]
    return {"id": row.id("id"), "question": row.text("question"), "answers": texts, "answer_start": starts}
