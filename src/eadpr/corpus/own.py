"""A user's own passages and questions: TSV with a header, JSONL or Parquet, by the file's name.

Long documents are cut into passages of about so many words, at sentence ends where there are any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eadpr import engine
from eadpr.corpus import file_rows
from eadpr.corpus.given import GivenContext, GivenPassages, GivenQuestion, Row, checked, digest, id_of, shown
from eadpr.corpus.qa_files import list_of
from eadpr.corpus.sources import NAME, File
from eadpr.records import Passage, Span
from eadpr.text import KINDS

QUESTION_COLUMNS = (
    "question", "id", "answers", "answer_kind", "positives", "set", "split", "type", "subject", "relation",
)  # fmt: skip
LISTS = ("answers", "positives")

# A question's article is the title of its first positive, or else the document that this is a piece of.
_HELD_OUT = """
UPDATE asked SET split = CASE WHEN held_out(coalesce(t.title, question), file) THEN 'test' ELSE 'train' END FROM (
    SELECT a.n, CASE p.title WHEN '' THEN split_part(p.id, '#', 1) ELSE p.title END AS title
    FROM asked a
    LEFT JOIN (SELECT n, min_by(passage_id, c) AS passage_id FROM named WHERE role = 'positive' GROUP BY n) f USING (n)
    LEFT JOIN passages p ON p.id = f.passage_id
    WHERE a.split IS NULL
) t WHERE t.n = asked.n
"""
_OF_SPLIT = "SELECT 1 FROM asked WHERE split = $split AND n <= (SELECT max(n) FROM asked WHERE file = $file) LIMIT 1"

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
        texts = [row["text"] for row in some]
        given = checked(GivenPassages(places, ids, titles, texts, [None] * len(places)))
        number += len(some)
        yield _in_pieces(given, split_words) if split_words else given


def _in_pieces(given: GivenPassages, words: int) -> GivenPassages:
    found = [
        (where, *piece) for where, *passage in zip(*given, strict=True) for piece in split(Passage(*passage), words)
    ]
    return GivenPassages(*map(list, zip(*found, strict=True)))


def questions(path: Path) -> Iterator[GivenQuestion]:
    """Column `question`, and if wanted those of `QUESTION_COLUMNS`; `positives` are passage ids, most evidential first.

    An empty field is as good as none; one value alone stands for a list of it.
    """
    for number, (where, fields) in enumerate(_rows(path, "question"), start=1):
        for name in fields:
            if name not in QUESTION_COLUMNS:
                raise ValueError(f"{where}: unknown column {name!r}; known are {', '.join(QUESTION_COLUMNS)}")
        lists = {name: _list(fields.get(name)) for name in LISTS}
        row = Row(where, number, fields | lists)
        said = {name: _optional(row, name) for name in ("answer_kind", "set", "split", "type", "subject", "relation")}
        if said["answer_kind"] not in (None, *KINDS):
            kinds = ", ".join(KINDS)
            raise ValueError(f"{where}: answer_kind is {shown(said['answer_kind'])}, expected one of {kinds}")
        for name in ("set", "split"):
            if said[name] is not None and not re.fullmatch(NAME, said[name]):
                expected = "lower-case letters, digits, '.', '_' and '-'"
                raise ValueError(f"{where}: {name} is {shown(said[name])}, expected {expected}")
        positives = [id_of(value, where, f"positives[{i}]") for i, value in enumerate(lists["positives"])]
        contexts = [GivenContext("positive", i, passage_id) for i, passage_id in enumerate(positives)]
        question_id = row.id("id") if "id" in fields else None
        yield GivenQuestion(where, number, row.text("question"), row.texts("answers"), contexts, id=question_id, **said)


def _optional(row: Row, name: str) -> str | None:
    return None if row.fields.get(name) in (None, "") else row.text(name, empty=True)


def _list(value: Any) -> list[Any]:
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def hold_out(connection: engine.Connection, files: Sequence[tuple[File, Path]]) -> None:
    """Draw the splits that the table `asked` leaves open, a file's `test_share` of them for testing, by whole articles
    where positives are given; the tables `named` and `passages` tell these. The draw of a title is always the same."""
    shares = {file.name: (path, file.test_share) for file, path in files if file.test_share is not None}
    if not shares:
        return
    connection.create_function(
        "held_out", lambda drawn, file: digest(drawn) < shares[file][1] * 2**64, ["VARCHAR", "VARCHAR"], "BOOLEAN"
    )
    connection.execute(_HELD_OUT)
    for name, (path, share) in shares.items():
        for split in ("train", "test"):
            if not engine.first(connection, _OF_SPLIT, {"split": split, "file": name}):
                raise ValueError(
                    f"{path}: test_share {share} left no question for {split}, because whole titles are held out;"
                    " give a file with test questions, or another share"
                )


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
