"""A user's own passages and questions: TSV with a header, JSONL or Parquet, by the file's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eadpr.corpus import text_files
from eadpr.corpus.given import GivenContext, GivenPassage, GivenQuestion, id_of, shown, text_of, texts_of
from eadpr.corpus.qa_files import list_of
from eadpr.corpus.sources import NAME, File
from eadpr.corpus.split import split
from eadpr.records import Passage
from eadpr.text import KINDS

QUESTION_COLUMNS = (
    "question", "id", "answers", "answer_kind", "positives", "set", "split", "type", "subject", "relation",
)  # fmt: skip
LISTS = ("answers", "positives")


def passages(path: Path, *, split_words: int | None = None, prefix: str = "") -> Iterator[GivenPassage]:
    """Columns `text`, and if wanted `id` and `title`; others are not read.

    Without a column `id` a passage's id is `prefix` and its number, from 1. With `split_words` a longer document
    becomes passages of about that many words.
    """
    for number, (where, row) in enumerate(_rows(path, "text"), start=1):
        passage = Passage(
            id_of(row["id"], where) if "id" in row else f"{prefix}{number}",
            _optional(row, where, "title") or "",
            text_of(row["text"], where, "text"),
            None,
        )
        for piece in split(passage, split_words) if split_words else [passage]:
            yield GivenPassage(where, piece)


def questions(path: Path, file: File) -> Iterator[GivenQuestion]:
    """Column `question`, and if wanted those of `QUESTION_COLUMNS`; `positives` are passage ids, most evidential first.

    `set` and `split` of a row come before those of the file, whose default is `own/train`.
    """
    for number, (where, row) in enumerate(_rows(path, "question"), start=1):
        for name in row:
            if name not in QUESTION_COLUMNS:
                raise ValueError(f"{where}: unknown column {name!r}; known are {', '.join(QUESTION_COLUMNS)}")
        kind = _optional(row, where, "answer_kind") or file.answer_kind or "string"
        if kind not in KINDS:
            raise ValueError(f"{where}: answer_kind is {shown(kind)}, expected one of {', '.join(KINDS)}")
        positives = [id_of(value, where, f"positives[{i}]") for i, value in enumerate(_list(row, "positives"))]
        yield GivenQuestion(
            where=where,
            row=number,
            question=text_of(row["question"], where, "question"),
            answers=texts_of(_list(row, "answers"), where, "answers"),
            answer_kind=kind,
            set=_name(row, where, "set") or file.set or "own",
            split=_name(row, where, "split") or file.split or "train",
            contexts=[GivenContext("positive", i, passage_id, None, None) for i, passage_id in enumerate(positives)],
            id=id_of(row["id"], where) if "id" in row else None,
            type=_optional(row, where, "type"),
            subject=_optional(row, where, "subject"),
            relation=_optional(row, where, "relation"),
            test_share=None if row.get("split") else file.test_share,
        )


def _optional(row: dict[str, Any], where: str, name: str) -> str | None:
    """An empty or missing field is None."""
    value = row.get(name)
    return None if value is None or value == "" else text_of(value, where, name, empty=True)


def _name(row: dict[str, Any], where: str, field: str) -> str | None:
    value = _optional(row, where, field)
    if value is not None and not re.fullmatch(NAME, value):
        raise ValueError(f"{where}: {field} is {shown(value)}, expected lower-case letters, digits, '.', '_' and '-'")
    return value


def _list(row: dict[str, Any], name: str) -> list[Any]:
    """A list, or one value alone."""
    value = row.get(name)
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def _rows(path: Path, needed: str) -> Iterator[tuple[str, dict[str, Any]]]:
    name = path.name.removesuffix(".gz")
    if name.endswith((".jsonl", ".json")):
        rows = ((f"{path}, line {line}", item) for line, item in text_files.json_items(path))
    elif name.endswith(".tsv"):
        rows = _tsv(path)
    elif name.endswith(".parquet"):
        rows = _parquet(path)
    else:
        raise ValueError(f"{path}: the name must end in .tsv, .jsonl or .parquet (.gz may follow the first two)")
    for where, row in rows:
        if needed not in row:
            raise ValueError(
                f"{where}: column {needed!r} is missing (there are {', '.join(row) or 'none'}); add or rename it"
            )
        yield where, row


def _tsv(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    header: list[str] = []
    for line, cells in text_files.tsv(path):
        where = f"{path}, line {line}"
        if not header:
            header = cells
            if len(set(header)) < len(header):
                raise ValueError(f"{where}: a column name stands twice in the header ({', '.join(header)})")
            if not {"text", "question"} & set(header):
                raise ValueError(
                    f"{where}: column 'text' (of passages) or 'question' (of questions) is missing;"
                    f" the first line must name the columns, found {shown(header)}"
                )
            continue
        if len(cells) != len(header):
            raise ValueError(f"{where}: {len(cells)} cells, the header has {len(header)} ({', '.join(header)})")
        row: dict[str, Any] = dict(zip(header, cells, strict=True))
        for name in LISTS:
            if row.get(name, "").startswith("["):
                row[name] = list_of(row[name], where, name)
        yield where, row


def _parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; put the file there or mend its path in params.yaml")
    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} is not a readable Parquet file ({error}); copy it again") from None
    number = 0
    try:
        for batch in file.iter_batches(batch_size=4096):
            _check_columns(path, batch, number)
            for row in batch.to_pylist():
                number += 1
                yield f"{path}, row {number}", row
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path}: damaged after row {number} ({error}); write it anew") from None


def _check_columns(path: Path, batch: pa.RecordBatch, before: int) -> None:
    """`before`: rows before those of the batch."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"{path}, after row {before}: column {name!r} is damaged or not UTF-8 ({error}); write it anew"
            ) from None
