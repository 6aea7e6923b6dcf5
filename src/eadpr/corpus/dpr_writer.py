"""Records as DPR training JSON: exactly what was read where they came from such a file."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, TextIO

from eadpr import questions, tables
from eadpr.corpus import origin
from eadpr.corpus.given import ROLES
from eadpr.files import replacing
from eadpr.passages import PassageStore
from eadpr.records import Context, Origin, Question


def write_training(path: Path, records: Path, name: str) -> int:
    """Write the questions of the set `name` (`set/split`) to `path`, gzip where it ends in .gz; returns their number.

    Memory is one question and the ids of the set; contexts and origins stand in the order of the questions.
    """
    wanted = questions.select(records / "question_sets.parquet", [name])
    with replacing(path) as temporary, _text(temporary, packed=path.suffix == ".gz") as file:
        file.write("[")
        for i, item in enumerate(_items(records, wanted, name)):
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


def _items(records: Path, wanted: list[str], name: str) -> Iterator[dict[str, Any]]:
    store = PassageStore(records / "passages.parquet")
    contexts = groupby(tables.rows(records / "contexts.parquet", Context), key=attrgetter("question_id"))
    origins = groupby(tables.rows(records / "origins.parquet", Origin), key=attrgetter("question_id"))
    next_contexts, next_origin = next(contexts, None), next(origins, None)
    chosen = frozenset(wanted)
    for question in tables.rows(records / "questions.parquet", Question):
        own: list[Context] = []
        key = ""
        if next_contexts is not None and next_contexts[0] == question.id:
            own = list(next_contexts[1])
            next_contexts = next(contexts, None)
        if next_origin is not None and next_origin[0] == question.id:
            key = next(next_origin[1]).item
            next_origin = next(origins, None)
        if question.id in chosen:
            yield _item(question, own, key, name, store)
    assert next_contexts is None, "contexts are not in the order of the questions"
    assert next_origin is None, "origins are not in the order of the questions"


def _item(question: Question, contexts: list[Context], key: str, name: str, store: PassageStore) -> dict[str, Any]:
    rows = store.rows([context.passage_id for context in contexts])
    given: dict[str, list[dict[str, Any]]] = {role: [] for role in ROLES}
    for context, title, text in zip(contexts, store.titles(rows), store.texts(rows), strict=True):
        given[context.role].append(
            origin.context(context.source_key or _context_key(context), context.passage_id, title, text)
        )
    return origin.item(key or _item_key(name), question.question, question.answers, given)


def _item_key(name: str) -> str:
    names = ("question", "answers", "positive_ctxs", "negative_ctxs", "hard_negative_ctxs")
    return json.dumps({"dataset": name, **dict.fromkeys(names)})


def _context_key(context: Context) -> str:
    scores = {"score": context.score, "title_score": context.title_score}
    return json.dumps({"title": None, "text": None, **scores, "passage_id": None})
