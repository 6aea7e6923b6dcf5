"""What the readers of all formats give, gathered in the engine, and the queries that make records of it.

Python holds one chunk of questions; what concerns whole tables is a query: ids known and doubled, texts, order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from eadpr.corpus import missing
from eadpr.corpus.formats import own
from eadpr.corpus.formats.qa_files import GoldPages
from eadpr.corpus.rows import (
    ROLES,
    GivenContext,
    GivenGold,
    GivenQuestion,
    never_matches,
    shown,
    usable_answers,
)
from eadpr.corpus.sources import File, Prepare
from eadpr.storage import engine
from eadpr.storage.records import Context, Origin, Question, SetMember


def _table(name: str, given: type, **before: type) -> Any:
    """Rows of what a reader gives, but for nested contexts, behind other columns."""
    columns = {column: kind for column, kind in get_type_hints(given).items() if column != "contexts"}
    return NamedTuple(name, [*before.items(), *columns.items()])


# `n` counts all questions from 0, `c` all contexts; a split that is None is still to be drawn. `number` counts the
# files of annotations, which are for the questions of the file `of`.
ASKED = _table("asked", GivenQuestion, n=int, file=str)
NAMED = _table("named", GivenContext, c=int, n=int, unnamed=bool)
POINTED = _table("pointed", GivenGold, number=int, row=int, of=str)

# Where a file of questions names no passage of a question, those that its annotations name are the positives.
_POINTED_AT = """
INSERT INTO named BY NAME
SELECT (SELECT count(*) FROM named) + row_number() OVER (ORDER BY a.n, g.passage_id) - 1 AS c, a.n, false AS unnamed,
    'positive' AS role, row_number() OVER (PARTITION BY a.n ORDER BY g.first, g.passage_id) - 1 AS "order",
    g.passage_id, '' AS title, [] AS gold, 0 AS gold_missing
FROM (
    SELECT of, question, passage_id, min((number, row)) AS first FROM pointed GROUP BY of, question, passage_id
) g
JOIN asked a ON a.question = g.question AND a.file = g.of
ANTI JOIN (SELECT n FROM named) named USING (n)
"""
_TITLED = f"""
SELECT id, title, text FROM corpus WHERE lower(title) IN (SELECT lower(unnest($titles))) ORDER BY {engine.POSITION}
"""
_NUMBERED = """
CREATE TABLE ids AS SELECT n, coalesce(id, "set" || '/' || split || ':' ||
    row_number() OVER (PARTITION BY "set", split ORDER BY n)) AS id FROM asked;
CREATE VIEW numbered AS SELECT asked.* REPLACE (ids.id AS id), "set" || '/' || split AS first
    FROM asked JOIN ids USING (n)
"""
# Of the annotations of a passage those with an answer of the question (which may stand twice in the file), else all.
_FOUND = """
CREATE TABLE found AS
SELECT c.c, g.*, a.place AS asked, substring(coalesce(c.text, p.text), g.start + 1, length(g.answer)) AS there
FROM pointed g
JOIN asked a ON a.question = g.question AND a.file = g.of
JOIN named c ON c.n = a.n AND c.passage_id = g.passage_id AND c.role = 'positive'
JOIN passages p ON p.id = c.passage_id
QUALIFY list_contains(a.answers, g.answer) OR NOT
    bool_or(list_contains(a.answers, g.answer)) OVER (PARTITION BY c.c, g.number)
"""
# Where a passage differs by quotes at its ends only, `shift` is by how much the context's text begins before its own;
# null where they differ otherwise.
_MET = """
CREATE TABLE met AS
SELECT * EXCLUDE (title, text, sentences), text IS NOT NULL AND shift IS NULL AS other_text,
    CASE WHEN shift > 0 THEN length(trim(text, '"')) ELSE length(text) END AS stop
FROM (
    SELECT c.* EXCLUDE (gold), list_sort(list_distinct(list_concat(c.gold, f.spans))) AS spans,
        CASE WHEN c.text IS NULL OR p.title = c.title AND p.text = c.text THEN 0
             WHEN $strip_quotes AND p.title = c.title AND p.text = trim(c.text, '"')
             THEN length(c.text) - length(ltrim(c.text, '"')) END AS shift
    FROM named c
    JOIN passages p ON p.id = c.passage_id
    LEFT JOIN (SELECT c, list({'start': start, 'end': start + length(answer)}) AS spans FROM found GROUP BY c) f
        USING (c)
)
"""
_COUNTS = """
SELECT count(*) FILTER (other_text) AS contexts_with_other_text,
    count(*) FILTER (len(spans) > 0 AND shift IS NULL) AS gold_lost_to_other_text,
    coalesce(sum(gold_missing), 0)::BIGINT AS gold_sentences_missing
FROM met
"""
_SETS = """
SELECT split_part(name, '/', 1) AS question_set, split_part(name, '/', 2) AS split, id AS question_id
FROM (SELECT n, id, unnest(list_prepend(first, also)) AS name,
             unnest(range(len(also) + 1)) AS i FROM numbered)
ORDER BY n, i
"""
_CONTEXTS = """
SELECT q.id AS question_id, passage_id, role, "order", grade, written AS title,
    CASE WHEN len(gold) > 0 THEN gold END AS gold
FROM (
    SELECT *, CASE WHEN shift IS NOT NULL THEN list_filter(
        [{'start': greatest(0, x.start - shift), 'end': least(stop, x."end" - shift)} FOR x IN spans],
        lambda x: x.start < x."end") END AS gold
    FROM met
) JOIN numbered q USING (n)
ORDER BY c
"""
_RECORDS = {
    "questions": (Question, "SELECT * FROM numbered ORDER BY n"),
    "question_sets": (SetMember, _SETS),
    "contexts": (Context, _CONTEXTS),
    "origins": (Origin, "SELECT id AS question_id, file, row, facts FROM numbered ORDER BY n"),
}

# Answers, whatever their case, that make a question of a user's own files one of yes or no.
CLOSED = ({"yes"}, {"no"})


@contextmanager
def gathering(connection: engine.Connection, settings: Prepare, *, own: bool) -> Iterator[Gathered]:
    """What is told of questions in the block is what `write` finds after it."""
    with (
        engine.filling(connection, "asked", ASKED) as asked,
        engine.filling(connection, "named", NAMED) as named,
        engine.filling(connection, "pointed", POINTED) as pointed,
    ):
        yield Gathered(connection, settings, own, asked, named, pointed)


@dataclass
class Gathered:
    """Takes questions with their contexts, and annotations; counts them, and what the report tells."""

    connection: engine.Connection
    settings: Prepare
    own: bool  # whether the files are in a user's own format
    ask: Callable[[tuple], None]
    name: Callable[[tuple], None]
    point: Callable[[tuple], None]
    questions: int = 0
    contexts: int = 0
    annotated: int = 0  # files of annotations
    answers_dropped: int = 0
    patterns_that_never_match: int = 0

    def question(self, given: GivenQuestion, file: File, pages: Sequence[GoldPages]) -> None:
        """What the question does not say of itself is as the file's settings say; `pages` annotate its positives."""
        closed = {answer.strip().lower() for answer in given.answers} - {""} in CLOSED
        of_own = "yes-no" if closed and self.own else "string"
        kind = given.answer_kind or file.answer_kind or of_own
        answers = usable_answers(given, kind, drop_empty=self.settings.drop_empty_answers)
        if kind == "yes-no":
            answers = [answer.strip().lower() for answer in answers]
        self.answers_dropped += len(given.answers) - len(answers)
        self.patterns_that_never_match += sum(map(never_matches, answers)) if kind == "regex" else 0
        told = given._replace(
            place=_sayable(given.place),
            answers=answers,
            answer_kind=kind,
            set=given.set or file.set or "own",
            split=given.split or (None if file.test_share else file.split or "train"),
        )
        self.ask((self.questions, file.name, *told[:-1]))
        for context in given.contexts:
            if context.role in ROLES:
                self._context(given.question, context, pages)
        self.questions += 1

    def _context(self, question: str, given: GivenContext, pages: Sequence[GoldPages]) -> None:
        if unnamed := given.passage_id is None:
            content = hashlib.sha256(f"{given.title}\0{given.text}".encode())
            given = given._replace(passage_id=f"context-{content.hexdigest()[:16]}")
        if pages and given.role == "positive":
            told = [span for page in pages for span in page.spans(question, given)]
            given = given._replace(gold=[*given.gold, *told])
        self.name((self.contexts, self.questions, unnamed, *given))
        self.contexts += 1

    def annotations(self, rows: Iterable[GivenGold], of: File) -> None:
        """Of the questions of a file."""
        for row, gold in enumerate(rows):
            self.point((self.annotated, row, of.name, *gold._replace(place=_sayable(gold.place))))
        self.annotated += 1

    def pages(self, pages: GoldPages, questions: Collection[str], of: File) -> None:
        """Of questions that name no passage: their passages of the corpus that are cut from their gold pages."""
        titles = pages.titles(questions)
        found = engine.batches(self.connection.cursor(), _TITLED, {"titles": titles})
        passages = (row for batch in found for row in zip(*(one.to_pylist() for one in batch.columns), strict=True))
        self.annotations(pages.located(questions, passages), of)


def _sayable(place: str) -> str:
    """The place as text that UTF-8 can write, which the name of a folder need not be."""
    return place.encode(errors="backslashreplace").decode()


def write(
    connection: engine.Connection,
    folder: Path,
    settings: Prepare,
    files: Sequence[tuple[File, Path]],
    *,
    numbered: Sequence[Path] = (),
) -> dict[str, int]:
    """Write what was gathered of the files beside passages.parquet in `folder`, which gains the passages that only
    contexts have. `numbered` are files of passages that have no ids. Returns counts for the report. Raises ValueError
    for passages that are not known, ids that stand twice and annotations that do not fit.
    """
    connection.execute(_POINTED_AT)
    left_out = missing.found(connection, settings, numbered)
    own.hold_out(connection, files)
    connection.execute(_NUMBERED)
    if twice := engine.find_duplicate(connection, "ids", "n"):
        place = engine.value(connection, "SELECT place FROM asked WHERE n = $n", {"n": twice["rows"][1]})
        raise ValueError(f"{place}: question id {shown(twice['id'])} stands twice; ids must be unique")
    connection.execute(_FOUND)
    _check_found(connection)
    connection.execute(_MET, {"strip_quotes": settings.strip_quotes})
    connection.execute("DROP TABLE named; DROP TABLE found; DROP TABLE pointed")  # what they held is free for sorting
    for name, (record, query) in _RECORDS.items():
        engine.write(connection, query, folder / f"{name}.parquet", record)
    added = missing.join(connection, folder / "passages.parquet")
    return {"passages_from_contexts": added, **left_out, **engine.first(connection, _COUNTS)}


def _check_found(connection: engine.Connection) -> None:
    if row := engine.first(connection, "FROM found WHERE there != answer ORDER BY number, c, row LIMIT 1"):
        raise ValueError(
            f"{row['place']}: answer_start {row['start']} of passage {row['passage_id']} points at"
            f" {shown(row['there'])}, not at {shown(row['answer'])}; offsets count characters of the text in"
            f" {row['asked']}"
        )
    nowhere = "FROM pointed ANTI JOIN found USING (number, question, passage_id) ORDER BY number, row LIMIT 1"
    if row := engine.first(connection, nowhere):
        raise ValueError(
            f"{row['place']}: no question {shown(row['question'])} has passage {shown(row['passage_id'])} as a"
            " positive; remove the row"
        )
