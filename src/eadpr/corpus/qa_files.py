"""Questions without DPR's training lists: DPR's `.qa.csv`, TREC's regular expressions, NQ's gold passages, RAMDocs.

RAMDocs (Wang et al., 2025) asks about names that several things share, with documents of type correct, misinfo or
noise. The correct ones are positives; the others look alike, and become near-duplicates.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from eadpr.corpus import dpr, file_rows
from eadpr.corpus.given import GivenContext, GivenQuestion, field_of, shown, text_of, texts_of
from eadpr.corpus.sources import File

DOCUMENTS = ("correct", "misinfo", "noise")  # of RAMDocs


def list_of(cell: str, where: str, field: str) -> list[str]:
    """A list of texts written as a Python or JSON literal; nothing is ever evaluated."""
    try:
        found = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(f"{where}: {field} is {shown(cell)}, expected a list of texts such as [\"a\", 'b']") from None
    return texts_of(list(found) if isinstance(found, tuple) else found, where, field)


def qa_csv(path: Path, file: File) -> Iterator[GivenQuestion]:
    """DPR's question sets: two cells, question and list of answers, no header, quoted as in CSV."""
    for row, (where, cells) in enumerate(file_rows.cells(path), start=1):
        if len(cells) != 2:
            raise ValueError(f"{where}: {len(cells)} cells, expected 2: question, list of answers")
        yield GivenQuestion(
            where=where,
            row=row,
            question=text_of(cells[0], where, "question"),
            answers=list_of(cells[1], where, "answers"),
            answer_kind=file.answer_kind or "string",
            set=file.set,
            split=file.split,
        )


def trec(path: Path, file: File) -> Iterator[GivenQuestion]:
    """Id, type, question and one regular expression per line, separated by tabs and never quoted."""
    row = 0
    for where, text in file_rows.lines(path):
        if not text.strip():
            continue
        row += 1
        cells = text.rstrip("\r\n").split("\t")
        if len(cells) != 4:
            raise ValueError(f"{where}: {len(cells)} cells, expected 4: id, type, question, regular expression")
        yield GivenQuestion(
            where=where,
            row=row,
            question=text_of(cells[2], where, "question"),
            answers=[text_of(cells[3], where, "answers[0]", empty=True)],
            answer_kind="regex",
            set=file.set,
            split=file.split,
            type=text_of(cells[1], where, "type"),
        )


def contexts(path: Path, file: File) -> Iterator[GivenQuestion]:
    """JSONL of question, answers and `ctxs`, whose passages are the positives (NQ's gold passages)."""
    for row, (where, item) in enumerate(file_rows.objects(path), start=1):
        for name in ("question", "answers", "ctxs"):
            field_of(item, where, name)
        yield GivenQuestion(
            where=where,
            row=row,
            question=text_of(item["question"], where, "question"),
            answers=texts_of(item["answers"], where, "answers"),
            answer_kind=file.answer_kind or "string",
            set=file.set,
            split=file.split,
            contexts=dpr.contexts(item["ctxs"], where, "ctxs", "positive"),
            item=item,
        )


class Document(NamedTuple):
    text: str
    type: str


class RamdocsRow(NamedTuple):
    where: str
    question: str
    answers: list[str]
    documents: list[Document]


def ramdocs_rows(path: Path) -> Iterator[RamdocsRow]:
    """Documents of one row with the same text are one, of the first type; noise that holds NUL (17 documents, of binary
    files) is left out."""
    for where, item in file_rows.objects(path):
        for name in ("question", "gold_answers", "documents"):
            if name not in item:
                raise ValueError(f"{where}: field {name!r} is missing (it has {', '.join(item) or 'none'})")
        if not isinstance(item["documents"], list):
            raise ValueError(f"{where}: documents is {shown(item['documents'])}, expected a list")
        documents: dict[str, Document] = {}
        for i, value in enumerate(item["documents"]):
            document = _document(value, f"{where}: documents[{i}]")
            if document is not None:
                documents.setdefault(document.text, document)
        yield RamdocsRow(
            where,
            text_of(item["question"], where, "question"),
            texts_of(item["gold_answers"], where, "gold_answers"),
            list(documents.values()),
        )


def _document(value: object, where: str) -> Document | None:
    if not isinstance(value, dict) or "text" not in value or value.get("type") not in DOCUMENTS:
        raise ValueError(f"{where} is {shown(value)}, expected an object of text and type ({', '.join(DOCUMENTS)})")
    if value["type"] == "noise" and "\0" in str(value["text"]):
        return None
    return Document(text_of(value["text"], where, "text"), value["type"])


def ramdocs(path: Path, file: File) -> Iterator[GivenQuestion]:
    """A passage has neither id nor title: prepare.add_context_passages must let it join the corpus."""
    for number, row in enumerate(ramdocs_rows(path), start=1):
        texts = [document.text for document in row.documents if document.type == "correct"]
        yield GivenQuestion(
            where=row.where,
            row=number,
            question=row.question,
            answers=row.answers,
            answer_kind=file.answer_kind or "string",
            set=file.set,
            split=file.split,
            contexts=[GivenContext("positive", order, None, "", text) for order, text in enumerate(texts)],
        )
