"""DPR's files (Karpukhin et al., 2020): passages as TSV, and questions with their passages as training JSON, which is
read as given and written again without a loss.

What a JSON object held besides the records is kept with them as JSON, with null where a record has the value: neither
keys, nor their order, nor numbers that float32 cannot hold are lost.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO

from eadpr import engine, questions
from eadpr.corpus import file_rows
from eadpr.corpus.given import ROLES, GivenContext, GivenPassages, GivenQuestion, Row, checked, rows
from eadpr.files import replacing
from eadpr.records import Context, Origin, Passage, Question, SetMember

HEADER = ("id", "text", "title")
LISTS = {f"{role}_ctxs": role for role in ROLES}
ROLE_OF = LISTS | {"ctxs": "positive"}
ID_KEYS = ("passage_id", "psg_id")  # NQ has the first, some other sets the second

TABLES = {
    "passages": Passage,
    "questions": Question,
    "question_sets": SetMember,
    "contexts": Context,
    "origins": Origin,
}

_dumped = json.JSONEncoder(separators=(",", ":"), allow_nan=True).encode


def passages(path: Path, *, strip_quotes: bool = False) -> Iterator[GivenPassages]:
    """Rows of `psgs_w100.tsv`: a header with id, text and title in any order, cells quoted as in CSV.

    DPR's own reader also strips quotes from both ends of the text, and with them those that belong to it;
    `strip_quotes` does the same.
    """
    found = file_rows.cells(path)
    where, header = next(found, ("", HEADER))
    for name in HEADER:
        if name not in header:
            raise ValueError(
                f"{where}: column {name!r} is missing; the first line must name {', '.join(HEADER)} by tabs"
            )
    columns = {name: i for i, name in enumerate(header)}
    for places, some in file_rows.in_chunks(found):
        for where, cells in zip(places, some, strict=True):
            if len(cells) != len(columns):
                raise ValueError(f"{where}: {len(cells)} cells, the header has {len(columns)} ({', '.join(columns)})")
        ids, texts, titles = ([cells[columns[name]] for cells in some] for name in HEADER)
        if strip_quotes:
            texts = [text.strip('"') for text in texts]
        yield checked(GivenPassages(places, ids, titles, texts, [None] * len(places)))


def training(path: Path) -> Iterator[GivenQuestion]:
    """Items of a training file, a JSON list or JSONL, one at a time: the file of NQ is larger than most memories."""
    for row in rows(path):
        question, answers = row.text("question"), row.texts("answers") if "answers" in row.fields else []
        contexts = [
            context for name, role in LISTS.items() if name in row.fields for context in contexts_of(row, name, role)
        ]
        yield GivenQuestion(row.where, row.number, question, answers, contexts, row.fields)


def contexts(path: Path) -> Iterator[GivenQuestion]:
    """JSONL of question, answers and `ctxs`, whose passages are the positives (NQ's gold passages)."""
    for row in rows(path):
        positives = contexts_of(row, "ctxs", "positive")
        yield GivenQuestion(row.where, row.number, row.text("question"), row.texts("answers"), positives, row.fields)


def contexts_of(item: Row, name: str, role: str) -> list[GivenContext]:
    """The passages of one list of an item."""
    return [_context(row, role) for row in item.objects(name)]


def _context(row: Row, role: str) -> GivenContext:
    text = row.text("text", empty=True) if "text" in row.fields else None
    title = row.text("title", empty=True) if "title" in row.fields else None
    id_key = _id_key(row.fields)
    if id_key is None and text is None:
        raise ValueError(f"{row.where} has neither {' nor '.join(ID_KEYS)} nor text")
    return GivenContext(
        role,
        row.number,
        row.id(id_key) if id_key else None,
        title if text is None else title or "",
        text,
        row.score("score"),
        row.score("title_score"),
        fields=row.fields,
    )


def _id_key(fields: dict[str, Any]) -> str | None:
    return next((key for key in ID_KEYS if key in fields), None)


def item_key(item: dict[str, Any], *, answers_kept: bool) -> str:
    """A question's object without question, answers and lists of contexts."""
    elsewhere = {"question", *ROLE_OF} | ({"answers"} if answers_kept else set())
    return _dumped({key: None if key in elsewhere else value for key, value in item.items()})


def context_key(fields: dict[str, Any], title: str, text: str) -> tuple[bool, str]:
    """A context's object without its id and, where they are these, without title and text; whether they are comes
    first."""
    same_text = fields.get("title", title) == title and fields.get("text", text) == text
    elsewhere = ("title", "text") if same_text else ()
    id_key = _id_key(fields)
    if not isinstance(fields.get(id_key), str):
        id_key = None  # a number is not what the passage has
    kept = {key: None if key in elsewhere or key == id_key else value for key, value in fields.items()}
    return same_text, _dumped(kept)


def with_text(key: str, title: str, text: str) -> str:
    """`context_key` for a passage that the corpus has with another text, from the key for one that it has as it is."""
    return _dumped(_filled(json.loads(key), {"title": title, "text": text}))


def _item_again(
    key: str, question: str, answers: list[str], contexts: Mapping[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """The source's object again; `contexts` by role. What an object of another form lacks comes in DPR's fields."""
    values = {"question": question, "answers": answers, **{name: contexts[role] for name, role in ROLE_OF.items()}}
    fields = _filled(json.loads(key), values)
    if answers:
        fields.setdefault("answers", answers)
    placed = {ROLE_OF.get(name) for name in fields}
    return fields | {f"{role}_ctxs": found for role, found in contexts.items() if found and role not in placed}


def _context_again(key: str, passage_id: str, title: str, text: str) -> dict[str, Any]:
    return _filled(json.loads(key), {"title": title, "text": text, **dict.fromkeys(ID_KEYS, passage_id)})


def _filled(fields: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: values[key] if value is None and key in values else value for key, value in fields.items()}


def write_training(path: Path, records: Path, name: str) -> int:
    """Write the questions of the set `name` (`set/split`) to `path`, gzip where it ends in .gz; returns their number.

    Raises ValueError for a set that does not exist, naming those that do.
    """
    wanted = questions.select(records / "question_sets.parquet", [name])
    with replacing(path) as temporary, _text(temporary, packed=path.suffix == ".gz") as file:
        file.write("[")
        for i, item in enumerate(_items(records, name)):
            file.write(",\n" if i else "\n")
            json.dump(item, file, ensure_ascii=False)
        file.write("\n]\n")
    return len(wanted)


@contextmanager
def _text(path: Path, *, packed: bool) -> Iterator[TextIO]:
    with path.open("wb") as file:
        if not packed:
            with io.TextIOWrapper(file, encoding="utf-8") as text:
                yield text
            return
        # Without name and time stamp, so that the same items give the same bytes.
        zipped = gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)
        with zipped, io.TextIOWrapper(zipped, encoding="utf-8") as text:
            yield text


_OF_A_SET = f"""
SELECT q.{engine.POSITION} AS number, q.question, q.answers, o.item, c.role, c.score, c.title_score, c.source_key,
       c.passage_id, p.title, p.text
FROM questions q
SEMI JOIN (SELECT * FROM question_sets WHERE question_set || '/' || split = $name) m ON m.question_id = q.id
LEFT JOIN origins o ON o.question_id = q.id
LEFT JOIN contexts c ON c.question_id = q.id
LEFT JOIN passages p ON p.id = c.passage_id
ORDER BY number, c.{engine.POSITION}
"""


def _items(records: Path, name: str) -> Iterator[dict[str, Any]]:
    with engine.connect() as connection:
        for table, record in TABLES.items():
            engine.view(connection, table, records / f"{table}.parquet", record)
        found = (row for batch in engine.batches(connection, _OF_A_SET, {"name": name}) for row in batch.to_pylist())
        for _, of_question in groupby(found, key=itemgetter("number")):
            contexts: dict[str, list[dict[str, Any]]] = {role: [] for role in ROLES}
            for row in of_question:
                if row["role"] is not None:
                    key = row["source_key"] or _context_key(row)
                    contexts[row["role"]].append(_context_again(key, row["passage_id"], row["title"], row["text"]))
            yield _item_again(row["item"] or _item_key(name), row["question"], row["answers"], contexts)


def _item_key(name: str) -> str:
    names = ("question", "answers", "positive_ctxs", "negative_ctxs", "hard_negative_ctxs")
    return json.dumps({"dataset": name, **dict.fromkeys(names)})


def _context_key(row: dict[str, Any]) -> str:
    scores = {"score": row["score"], "title_score": row["title_score"]}
    return json.dumps({"title": None, "text": None, **scores, "passage_id": None})
