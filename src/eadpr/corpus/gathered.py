"""Gather the questions of all files in the engine, and make records of them by queries.

Python holds one chunk of questions; queries do what concerns whole tables: unknown and doubled ids, texts, order.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from eadpr.corpus.formats.gold import GoldPages
from eadpr.corpus.hold_out import hold_out
from eadpr.corpus.missing import append_missing, find_missing
from eadpr.corpus.rows import ROLES, GivenContext, GivenGold, GivenQuestion, OddRows, RowError, excerpt, usable_answers
from eadpr.corpus.sources import File, Prepare
from eadpr.corpus.unheld import find_unheld
from eadpr.storage import engine
from eadpr.storage.records import Context, Origin, Question, SetMember, Span
from eadpr.text.answers import merge

NESTED = ("contexts", "annotations")
NEAR = 100  # characters around the place that an annotation names, in which its answer is sought first


def _table(name: str, record: type, **first: type) -> Any:
    """Return a record of the columns `first`, then the fields of `record` without nested records."""
    columns = {column: kind for column, kind in get_type_hints(record).items() if column not in NESTED}
    return NamedTuple(name, [*first.items(), *columns.items()])


# `n` counts all questions from 0, `c` all contexts, `row` all annotations, which are for the questions of the file
# `of`; a split that is None is still to be drawn.
ASKED = _table("asked", GivenQuestion, n=int, file=str)
NAMED = _table("named", GivenContext, c=int, n=int)
POINTED = _table("pointed", GivenGold, row=int, of=str)

QUERIES = Path(__file__).with_name("gathered.sql").read_text(encoding="utf-8")
SQL = dict(re.findall(r"(?ms)^-- (\w+): [^\n]*\n(.*?)(?=^-- \w+: |\Z)", QUERIES))  # by name
RECORDS = {
    "questions": (Question, "SELECT * FROM numbered ORDER BY n"),
    "question_sets": (SetMember, SQL["sets"]),
    "contexts": (Context, SQL["contexts"]),
    "origins": (Origin, "SELECT id AS question_id, file, row, facts FROM numbered ORDER BY n"),
}

# Answers, whatever their case, that make a question of a user's own files one of yes or no.
CLOSED = ({"yes"}, {"no"})


@contextmanager
def gathering(connection: engine.Connection, odd: OddRows, *, own_format: bool) -> Iterator[Gathered]:
    """Yield what takes questions in the block; `write_records` finds them after it. `own_format`: of a user's files."""
    with ExitStack() as stack:
        filled = {"asked": ASKED, "named": NAMED, "pointed": POINTED}
        add = {name: stack.enter_context(engine.filling(connection, name, row)) for name, row in filled.items()}
        gathered = Gathered(connection, own_format, odd, add)
        yield gathered
    odd.check("questions left out", gathered.rows["asked"])
    odd.check("answers left out", gathered.rows["answers"])


@dataclass
class Gathered:
    """Takes questions with their contexts, and annotations; `rows` counts those of each table, and answers."""

    connection: engine.Connection
    own: bool
    odd: OddRows
    add: Mapping[str, Callable[[tuple], None]]
    rows: Counter[str] = field(default_factory=Counter)

    def add_question(self, question: GivenQuestion, file: File, pages: Sequence[GoldPages]) -> None:
        """Add a question; the file's settings fill what it does not say, and `pages` annotate its positives."""
        if not question.question.strip():
            name = f"question {excerpt(question.id)}" if question.id else "question"
            self.odd.add("questions left out", RowError(question.place, name, "is empty; fill it or remove the row"))
            self.rows["asked"] += 1
            return
        closed = {answer.strip().lower() for answer in question.answers} - {""} in CLOSED
        kind = question.answer_kind or file.answer_kind or ("yes-no" if closed and self.own else "string")
        answers = usable_answers(question.answers, kind, question.place, partial(self.odd.add, "answers left out"))
        self.rows["answers"] += len(question.answers)
        if kind == "yes-no":
            answers = [answer.strip().lower() for answer in answers]
        split = question.split or (None if file.test_share else file.split or "train")
        row = question._replace(answers=answers, answer_kind=kind, set=question.set or file.set or "own", split=split)
        number = self.rows["asked"]
        self._add("asked", file.name, *row[: -len(NESTED)])
        for context in question.contexts:
            if context.role in ROLES:
                self._add("named", number, *_with_id_and_gold(context, question.question, pages))
        self.add_annotations(question.annotations, file)

    def add_annotations(self, rows: Iterable[GivenGold], file: File) -> None:
        """Add annotations of the questions of `file`."""
        for gold in rows:
            self._add("pointed", file.name, *gold)

    def locate_pages(self, pages: GoldPages, questions: Collection[str], file: File) -> None:
        """Give questions of `file` that name no passage the passages that were cut from their gold pages."""
        rows = engine.rows(self.connection.cursor(), SQL["titled"], {"titles": pages.titles(questions)})
        self.add_annotations(pages.locate(questions, ((row["id"], row["title"], row["text"]) for row in rows)), file)

    def _add(self, table: str, *row: Any) -> None:
        self.add[table]((self.rows[table], *row))
        self.rows[table] += 1


def _with_id_and_gold(context: GivenContext, question: str, pages: Sequence[GoldPages]) -> GivenContext:
    if context.passage_id is None:
        content = hashlib.sha256(f"{context.title}\0{context.text}".encode())
        context = context._replace(passage_id=f"context-{content.hexdigest()[:16]}")
    if pages and context.role == "positive":
        spans = [span for page in pages for span in page.evidence(question, context)]
        context = context._replace(gold=[*context.gold, *spans])
    return context


def write_records(
    connection: engine.Connection, folder: Path, settings: Prepare, files: Sequence[tuple[File, Path]], odd: OddRows
) -> dict[str, Any]:
    """Write the gathered records into `folder`, where passages.parquet gains the passages that only contexts have.

    Returns the report's counts and notes. Raises RowError for unknown passages, doubled ids and unfit annotations.
    """
    connection.execute(SQL["pointed_at"])
    find_missing(connection, settings, odd)
    hold_out(connection, files)
    connection.execute(SQL["numbered"])
    if twice := engine.find_duplicate(connection, "ids", "n"):
        place = engine.value(connection, "SELECT place FROM asked WHERE n = $n", {"n": twice["rows"][1]})
        raise RowError(place, f"question id {excerpt(twice['id'])}", "stands twice; ids must be unique")
    connection.execute(SQL["found"])
    _check_annotations(connection, odd)
    own_count = 0 if settings.keep_own_documents else engine.value(connection, SQL["own"])
    unheld = find_unheld(connection)
    connection.execute(SQL["met"])
    connection.execute("DROP TABLE named; DROP TABLE found; DROP TABLE pointed")  # what they held is free for sorting
    for name, (record, query) in RECORDS.items():
        engine.write(connection, query, folder / f"{name}.parquet", record)
    count = append_missing(connection, folder / "passages.parquet")
    counts = {"passages_from_contexts": count, "own_documents": own_count, **engine.first(connection, SQL["counts"])}
    return counts | ({"unheld": unheld} if unheld else {})


def find_again(text: str, answers: Sequence[str], start: int) -> list[int]:
    """Return start and length of the answer that stands once near `start`, or once in the text; else nothing."""
    for first, end in ((max(start - NEAR, 0), start + NEAR), (0, len(text))):
        matches = (re.compile(re.escape(answer)).finditer(text, first, end) for answer in answers if answer)
        places = merge((Span(*match.span()) for match in chain.from_iterable(matches)), touching=False)
        if len(places) == 1:
            return [places[0].start, places[0].end - places[0].start]
    return []


def _check_annotations(connection: engine.Connection, odd: OddRows) -> None:
    """Mend the annotations that do not point at their answer, where it is found again, and leave out the others."""
    connection.create_function("find_again", find_again, ["VARCHAR", "VARCHAR[]", "BIGINT"], "BIGINT[]")
    connection.execute(SQL["again"])
    total = engine.value(connection, "SELECT count(*) FROM found")
    wrong = {"answer offsets mended": "size IS NOT NULL", "answer offsets left out": "size IS NULL"}
    for kind, condition in wrong.items():
        for row in engine.rows(connection, f"FROM found WHERE wrong AND {condition} ORDER BY row, c"):
            points = f"points at {excerpt(row['there'])}, not at {' or '.join(map(excerpt, row['answers']))}"
            place = f"answer_start {row['named']} of passage {row['passage_id']}"
            odd.add(kind, RowError(row["place"], place, f"{points}; offsets count characters of the passage's text"))
        odd.check(kind, total, limited=kind != "answer offsets mended")
    nowhere = "FROM pointed ANTI JOIN found USING (of, question, passage_id) ORDER BY row LIMIT 1"
    if row := engine.first(connection, nowhere):
        question, passage = excerpt(row["question"]), excerpt(row["passage_id"])
        raise RowError(row["place"], "", f"no question {question} has passage {passage} as a positive; remove the row")
