"""Questions without DPR's training lists: DPR's `.qa.csv`, TREC's regular expressions, NQ's gold passages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from eadpr.corpus import dpr, text_files
from eadpr.corpus.given import GivenQuestion, field_of, shown, text_of, texts_of
from eadpr.corpus.sources import File


def list_of(cell: str, where: str, field: str) -> list[str]:
    """A list of texts written as a Python or JSON literal; nothing is ever evaluated."""
    try:
        found = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(f"{where}: {field} is {shown(cell)}, expected a list of texts such as [\"a\", 'b']") from None
    return texts_of(list(found) if isinstance(found, tuple) else found, where, field)


def qa_csv(path: Path, file: File) -> Iterator[GivenQuestion]:
    """DPR's question sets: two cells, question and list of answers, no header, quoted as in CSV."""
    for row, (line, cells) in enumerate(text_files.tsv(path), start=1):
        where = f"{path}, line {line}"
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
    for line, text in text_files.lines(path):
        if not text.strip():
            continue
        row += 1
        where = f"{path}, line {line}"
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
    for row, (line, item) in enumerate(text_files.jsonl(path), start=1):
        where = f"{path}, line {line}"
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
            contexts=list(dpr.contexts(item["ctxs"], where, "ctxs", "positive")),
            item=item,
        )
