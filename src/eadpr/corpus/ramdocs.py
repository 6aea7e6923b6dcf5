"""RAMDocs (Wang et al., 2025): questions on names that several things share, with documents of type correct, misinfo or
noise. The correct ones are positives; the others look alike, and become near-duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from eadpr.corpus import text_files
from eadpr.corpus.given import GivenContext, GivenQuestion, shown, text_of, texts_of
from eadpr.corpus.sources import File

TYPES = ("correct", "misinfo", "noise")


class Document(NamedTuple):
    text: str
    type: str


class Row(NamedTuple):
    where: str
    question: str
    answers: list[str]
    documents: list[Document]


def rows(path: Path) -> Iterator[Row]:
    """Documents of one row with the same text are one, of the first type; noise that holds NUL (17 documents, of binary
    files) is left out."""
    for line, item in text_files.jsonl(path):
        where = f"{path}, line {line}"
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
        yield Row(
            where,
            text_of(item["question"], where, "question"),
            texts_of(item["gold_answers"], where, "gold_answers"),
            list(documents.values()),
        )


def _document(value: object, where: str) -> Document | None:
    if not isinstance(value, dict) or "text" not in value or value.get("type") not in TYPES:
        raise ValueError(f"{where} is {shown(value)}, expected an object of text and type ({', '.join(TYPES)})")
    if value["type"] == "noise" and "\0" in str(value["text"]):
        return None
    return Document(text_of(value["text"], where, "text"), value["type"])


def questions(path: Path, file: File) -> Iterator[GivenQuestion]:
    """A passage has neither id nor title: prepare.add_context_passages must let it join the corpus."""
    for number, row in enumerate(rows(path), start=1):
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
