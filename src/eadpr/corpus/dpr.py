"""DPR's files (Karpukhin et al., 2020): passages as TSV, and questions with their passages as training JSON, which is
read as given and written again without a loss.

What a JSON object held besides the records is kept with them as JSON, with null where a record has the value: neither
keys, nor their order, nor numbers that float32 cannot hold are lost.
"""

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
from eadpr.corpus.given import ROLES, GivenContext, GivenPassage, GivenQuestion, Row, rows
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


def passages(path: Path, *, strip_quotes: bool = False) -> Iterator[GivenPassage]:
    """Rows of `psgs_w100.tsv`: a header with id, text and title in any order, cells quoted as in CSV.

    DPR's own reader also strips quotes from both ends of the text, and with them those that belong to it;
    `strip_quotes` does the same.
    """
    for where, row in file_rows.tsv(path, needed=HEADER):
        yield where, row["id"], row["title"], row["text"].strip('"') if strip_quotes else row["text"], None


def training(path: Path) -> Iterator[GivenQuestion]:
    """Items of a training file, a JSON list or JSONL, one at a time: the file of NQ is larger than most memories."""
    for row in rows(path):
        answers = row.texts("answers") if "answers" in row.fields else []
        found = [
            context for name, role in LISTS.items() if name in row.fields for context in contexts_of(row, name, role)
        ]
        yield _question(row, answers, found)


def contexts(path: Path) -> Iterator[GivenQuestion]:
    """JSONL of question, answers and `ctxs`, whose passages are the positives (NQ's gold passages)."""
    return (_question(row, row.texts("answers"), contexts_of(row, "ctxs", "positive")) for row in rows(path))


def _question(row: Row, answers: list[str], found: list[GivenContext]) -> GivenQuestion:
    item = item_key(row.fields)
    return GivenQuestion(row.where, row.number, row.text("question"), answers, item=item, contexts=found)


def contexts_of(item: Row, name: str, role: str) -> list[GivenContext]:
    """The passages of one list of an item."""
    return [_context(row, role) for row in item.objects(name)]


def _context(row: Row, role: str) -> GivenContext:
    title, text = row.optional("title"), row.optional("text")
    id_key = _id_key(row.fields)
    if id_key is None and text is None:
        raise ValueError(f"{row.where} has neither {' nor '.join(ID_KEYS)} nor text")
    passage_id = row.id(id_key) if id_key else None
    scores = row.score("score"), row.score("title_score")
    given = GivenContext(role, row.number, passage_id, title or "", text, *scores)
    return with_key(given, row.fields)


def _id_key(fields: dict[str, Any]) -> str | None:
    return next((key for key in ID_KEYS if key in fields), None)


def item_key(item: dict[str, Any]) -> str:
    """A question's object without question, answers and lists of contexts."""
    return _dumped({key: None if key in ("question", "answers", *ROLE_OF) else value for key, value in item.items()})


def with_answers(key: str, answers: list[str]) -> str:
    """The key of a question which is known by other answers than its source's."""
    return key and _dumped(_filled(json.loads(key), {"answers": answers}))


def with_key(given: GivenContext, fields: dict[str, Any]) -> GivenContext:
    """With the source's object, less its id and, where they are these, title and text."""
    title, text = given.title, given.text or ""
    brief = fields.get("title", title) == title and fields.get("text", text) == text
    id_key = _id_key(fields)
    # A number is not what the passage has.
    elsewhere = {*(("title", "text") if brief else ()), *([id_key] if isinstance(fields.get(id_key), str) else [])}
    kept = {key: None if key in elsewhere else value for key, value in fields.items()}
    return given._replace(brief=brief, key=_dumped(kept))


def with_text(key: str, title: str, text: str) -> str:
    """The key for a passage that the corpus has with another text, from that of a brief context."""
    return _dumped(_filled(json.loads(key), {"title": title, "text": text}))


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
                    contexts[row["role"]].append(_context_again(row))
            yield _item_again(row, contexts, name)


def _context_again(row: dict[str, Any]) -> dict[str, Any]:
    """The source's object; of another form the fields that DPR's have."""
    bare = {"title": None, "text": None, "score": row["score"], "title_score": row["title_score"], "passage_id": None}
    fields = json.loads(row["source_key"]) if row["source_key"] else bare
    return _filled(fields, {"title": row["title"], "text": row["text"], **dict.fromkeys(ID_KEYS, row["passage_id"])})


def _item_again(row: dict[str, Any], contexts: Mapping[str, list[dict[str, Any]]], name: str) -> dict[str, Any]:
    """As `_context_again`; `contexts` by role."""
    bare = {"dataset": name, **dict.fromkeys(("question", "answers", *LISTS))}
    values = {"question": row["question"], "answers": row["answers"]}
    values |= {of_role: contexts[role] for of_role, role in ROLE_OF.items()}
    fields = _filled(json.loads(row["item"]) if row["item"] else bare, values)
    if row["answers"]:
        fields.setdefault("answers", row["answers"])
    placed = {ROLE_OF.get(name) for name in fields}
    return fields | {f"{role}_ctxs": found for role, found in contexts.items() if found and role not in placed}


def _filled(fields: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: values[key] if value is None and key in values else value for key, value in fields.items()}
