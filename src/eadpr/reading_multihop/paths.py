"""What the reader of paths reads and learns from: a question's paths, their passages, and which path is right."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eadpr import questions, tables
from eadpr.reading_multihop.losses import KINDS
from eadpr.reading_multihop.records import RankedPath, sentences_of
from eadpr.records import Fold, Passage, Positive, Span
from eadpr.supervision import spans
from eadpr.text import answer_spans


class Lesson(NamedTuple):
    """A question with its supporting passages, `gold`, in the order of the hops, and other paths, best first.

    `kind` is an index of KINDS; `places` are those of the answer in the text of each gold passage, none for yes and no;
    `support` holds the (gold passage, sentence) pairs that support it. `either` says that hops have no order.
    """

    question: str
    kind: int
    gold: list[str]
    either: bool
    places: list[list[Span]]
    support: frozenset[tuple[int, int]]
    others: list[list[str]]


class Taught(NamedTuple):
    """Lessons and the passages that they name; `asked` counts the questions that lessons were sought of."""

    lessons: list[Lesson]
    passages: dict[str, Passage]
    asked: int


def taught(records: Path, positives: Path, ranking: Path, *, first: int) -> Taught:
    """The lessons of the questions of the fold `train` that have paths in the table `ranking`, of which the `first` are
    kept. `positives` is a folder with folds. Raises ValueError for a question or passage that is not in `records`."""
    learnt = {fold.question_id for fold in tables.rows(positives / "folds.parquet", Fold) if fold.role == "train"}
    found = dict(ranked_paths(ranking, learnt, first))
    asked = {question.id: question for question in questions.selected(records / "questions.parquet", found)}
    check_known(found, asked, ranking, records)
    hops = {question.id: question.hops for question in asked.values() if question.hops and question.answers}
    named = chain.from_iterable(path for question_id in hops for path in (hops[question_id], *found[question_id]))
    passages = passages_of(records / "passages.parquet", named)
    made = lessons(records, positives / "positives.parquet", found, passages, list(hops))
    return Taught(list(made), passages, len(found))


def check_known(ids: Iterable[str], known: Collection[str], ranking: Path, records: Path) -> None:
    unknown = next((question_id for question_id in ids if question_id not in known), None)
    if unknown is not None:
        raise ValueError(f"{ranking}: question_id {unknown!r} is not in {records}; run `dvc repro`")


def ranked_paths(path: Path, ids: Collection[str], depth: int) -> Iterator[tuple[str, list[list[str]]]]:
    """Each of the questions with its first `depth` paths; those without a path do not come up."""
    wanted = frozenset(ids)
    for question_id, rows in groupby(tables.rows(path, RankedPath), key=attrgetter("question_id")):
        if question_id in wanted:
            yield question_id, [row.passage_ids for row in islice(rows, depth)]


def passages_of(path: Path, ids: Iterable[str]) -> dict[str, Passage]:
    """In memory, some 1 kB each. Raises ValueError for an id that is not in the collection."""
    wanted = pa.array(sorted(set(ids)), pa.string())
    found: dict[str, Passage] = {}
    for batch in tables.batches(path, Passage):
        named = batch.filter(pc.is_in(batch["id"], value_set=wanted))
        found |= {passage.id: passage for passage in tables.records(named, Passage)}
    missing = next((passage_id for passage_id in wanted.to_pylist() if passage_id not in found), None)
    if missing is not None:
        raise ValueError(
            f"passage id {missing!r} is not in {path}; a table was made from other passages, run `dvc repro`"
        )
    return found


def lessons(
    records: Path,
    positives: Path,
    paths: Mapping[str, list[list[str]]],
    passages: Mapping[str, Passage],
    ids: Sequence[str],
) -> Iterator[Lesson]:
    """Of the questions with an answer and supporting passages, all in `passages`; `paths` are their ranked ones.

    A path of just the supporting passages, in any order, is none of the others.
    """
    gold: dict[tuple[str, str], list[Span]] = {}
    wanted = frozenset(ids)
    for row in tables.rows(positives, Positive):
        if row.question_id in wanted and row.gold:
            gold[row.question_id, row.passage_id] = row.gold
    for question in questions.selected(records / "questions.parquet", wanted):
        if not question.answers or not question.hops:
            continue
        supporting = [passages[passage_id] for passage_id in question.hops]
        closed = question.answer_kind == "yes-no"
        yield Lesson(
            question.question,
            KINDS.index(question.answers[0]) if closed else 0,
            question.hops,
            question.type == "comparison",
            [answer_spans(question.answers, passage.text, question.answer_kind) for passage in supporting],
            frozenset(
                (place, sentence)
                for place, passage in enumerate(supporting)
                for sentence in spans.overlapping(sentences_of(passage), gold.get((question.id, passage.id), []))
            ),
            [path for path in paths.get(question.id, []) if set(path) != set(question.hops)],
        )
