"""DPR's files: passages TSV and training JSON (Karpukhin et al., 2020), read as given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eadpr.corpus import text_files
from eadpr.corpus.given import (
    GivenContext,
    GivenPassage,
    GivenQuestion,
    field_of,
    id_of,
    number_of,
    shown,
    text_of,
    texts_of,
)
from eadpr.corpus.sources import File
from eadpr.records import Passage

HEADER = ("id", "text", "title")
LISTS = {"positive_ctxs": "positive", "negative_ctxs": "negative", "hard_negative_ctxs": "hard_negative"}
IDS = ("passage_id", "psg_id")  # NQ has the first, some other sets the second


def passages(path: Path, *, strip_quotes: bool = False) -> Iterator[GivenPassage]:
    """Rows of `psgs_w100.tsv`: a header with id, text and title in any order, cells quoted as in CSV.

    DPR's own reader also strips quotes from both ends of the text, and with them those that belong to it;
    `strip_quotes` does the same.
    """
    columns: dict[str, int] = {}
    for line, cells in text_files.tsv(path):
        where = f"{path}, line {line}"
        if not columns:
            columns = _columns(where, cells)
            continue
        if len(cells) != len(columns):
            raise ValueError(f"{where}: {len(cells)} cells, the header has {len(columns)} ({', '.join(columns)})")
        text = cells[columns["text"]]
        yield GivenPassage(
            where,
            Passage(
                id_of(cells[columns["id"]], where),
                text_of(cells[columns["title"]], where, "title", empty=True),
                text_of(text.strip('"') if strip_quotes else text, where, "text"),
                None,
            ),
        )


def _columns(where: str, cells: list[str]) -> dict[str, int]:
    for name in HEADER:
        if name not in cells:
            raise ValueError(
                f"{where}: column {name!r} is missing; the first line must name {', '.join(HEADER)} by tabs"
            )
    return {name: i for i, name in enumerate(cells)}


def training(path: Path, file: File) -> Iterator[GivenQuestion]:
    """Items of a training file, a JSON list or JSONL, one at a time: the file of NQ is larger than most memories."""
    for row, (line, item) in enumerate(text_files.json_items(path), start=1):
        where = f"{path}, line {line}"
        yield GivenQuestion(
            where=where,
            row=row,
            question=text_of(field_of(item, where, "question"), where, "question"),
            answers=texts_of(item.get("answers", []), where, "answers"),
            answer_kind=file.answer_kind or "string",
            set=file.set,
            split=file.split,
            contexts=[
                context for key, role in LISTS.items() for context in contexts(item.get(key, []), where, key, role)
            ],
            item=item,
        )


def contexts(found: object, where: str, key: str, role: str) -> Iterator[GivenContext]:
    """The passages of one list of an item."""
    if not isinstance(found, list):
        raise ValueError(f"{where}: {key} is {shown(found)}, expected a list")
    for order, fields in enumerate(found):
        place = f"{where}: {key}[{order}]"
        if not isinstance(fields, dict):
            raise ValueError(f"{place} is {shown(fields)}, expected a JSON object")
        yield _context(fields, place, role, order)


def _context(fields: dict[str, Any], where: str, role: str, order: int) -> GivenContext:
    id_key = next((key for key in IDS if key in fields), None)
    text = text_of(fields["text"], where, "text", empty=True) if "text" in fields else None
    if id_key is None and text is None:
        raise ValueError(f"{where} has neither {' nor '.join(IDS)} nor text")
    title = text_of(fields["title"], where, "title", empty=True) if "title" in fields else None
    return GivenContext(
        role=role,
        order=order,
        passage_id=id_of(fields[id_key], where, id_key) if id_key else None,
        title=title if text is None else title or "",
        text=text,
        score=number_of(fields.get("score"), where, "score"),
        title_score=number_of(fields.get("title_score"), where, "title_score"),
        fields=fields,
    )
