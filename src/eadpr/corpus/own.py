"""A user's own passages and questions: TSV with a header, JSONL or Parquet, by the file's name.

Long documents are cut into passages of about so many words, at sentence ends where there are any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eadpr.corpus import file_rows
from eadpr.corpus.given import (
    GivenContext,
    GivenPassages,
    GivenQuestion,
    column_of,
    id_column_of,
    id_of,
    shown,
    text_of,
    texts_of,
)
from eadpr.corpus.qa_files import list_of
from eadpr.corpus.sources import NAME, File
from eadpr.records import Passage, Span
from eadpr.text import KINDS

QUESTION_COLUMNS = (
    "question", "id", "answers", "answer_kind", "positives", "set", "split", "type", "subject", "relation",
)  # fmt: skip
LISTS = ("answers", "positives")

_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"""[.!?…。！？]["'”’»)\]]*$""")


def passages(path: Path, *, split_words: int | None = None, prefix: str = "") -> Iterator[GivenPassages]:
    """Columns `text`, and if wanted `id` and `title`; others are not read.

    Without a column `id` a passage's id is `prefix` and its number, from 1. With `split_words` a longer document
    becomes passages of about that many words.
    """
    number = 0
    for places, some in file_rows.in_chunks(_rows(path, "text")):
        ids = [row.get("id", f"{prefix}{n}") for n, row in enumerate(some, start=number + 1)]
        titles = ["" if row.get("title") is None else row["title"] for row in some]
        given = GivenPassages(
            places,
            id_column_of(ids, places),
            column_of(titles, places, "title", empty=True),
            column_of([row["text"] for row in some], places, "text"),
            [None] * len(places),
        )
        number += len(some)
        yield _in_pieces(given, split_words) if split_words else given


def _in_pieces(given: GivenPassages, words: int) -> GivenPassages:
    found = [
        (where, *piece) for where, *passage in zip(*given, strict=True) for piece in split(Passage(*passage), words)
    ]
    return GivenPassages(*map(list, zip(*found, strict=True)))


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
        found = file_rows.objects(path)
    elif name.endswith(".tsv"):
        found = _tsv(path)
    elif name.endswith(".parquet"):
        found = file_rows.parquet(path)
    else:
        raise ValueError(f"{path}: the name must end in .tsv, .jsonl or .parquet (.gz may follow the first two)")
    for where, row in found:
        if needed not in row:
            raise ValueError(
                f"{where}: column {needed!r} is missing (there are {', '.join(row) or 'none'}); add or rename it"
            )
        yield where, row


def _tsv(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    header: list[str] = []
    for where, cells in file_rows.cells(path):
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


def split(passage: Passage, words: int) -> list[Passage]:
    """The document itself where it has at most `words` words, else pieces `id#1`, `id#2`, … with its title."""
    if passage.sentences is not None:
        raise ValueError(f"passage {passage.id!r} has given sentences and cannot be split")
    places = pieces(passage.text, words)
    if len(places) < 2:
        return [passage]
    return [
        Passage(f"{passage.id}#{k}", passage.title, passage.text[place.start : place.end], None)
        for k, place in enumerate(places, start=1)
    ]


def pieces(text: str, words: int) -> list[Span]:
    """Where the pieces stand: in order, nothing but white space between them, at most 1.5 * `words` words each.

    A piece takes sentences until the next one would make it longer than `words`, but is at least half of that; a
    sentence longer than `words` is cut between words; a last piece below a quarter joins the one before it.
    """
    found = [Span(*match.span()) for match in _WORD.finditer(text)]
    if len(found) <= words:
        return [Span(0, len(text))]
    groups: list[list[Span]] = [[]]
    for sentence in _sentences(text, found, words):
        if len(groups[-1]) + len(sentence) > words and len(groups[-1]) >= words / 2:
            groups.append([])
        groups[-1] += sentence
    if len(groups) > 1 and len(groups[-1]) < words / 4 and len(groups[-2]) + len(groups[-1]) <= 1.5 * words:
        last = groups.pop()
        groups[-1] += last
    return [Span(group[0].start, group[-1].end) for group in groups]


def _sentences(text: str, found: list[Span], words: int) -> Iterator[list[Span]]:
    """The words of each sentence, or of each part of at most `words` words of a longer one."""
    sentence: list[Span] = []
    for i, word in enumerate(found):
        sentence.append(word)
        if i + 1 == len(found) or len(sentence) == words or _ends(text, word, found[i + 1]):
            yield sentence
            sentence = []


def _ends(text: str, word: Span, following: Span) -> bool:
    if "\n" in text[word.end : following.start]:
        return True
    # A lower-case letter after a full stop is an abbreviation's.
    return bool(_SENTENCE_END.search(text[word.start : word.end])) and not text[following.start].islower()
