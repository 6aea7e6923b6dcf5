"""What a reader learns from: the passages, or paths, that a ranking gives the training questions. A passage is a path
of one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from eadpr import tables
from eadpr.passages import PassageStore
from eadpr.questions import selected
from eadpr.reading.config import NegativesPerQuestion
from eadpr.reading.records import RankedPath
from eadpr.records import Fold, Positive, Question, Ranked

PathRows = tuple[int, ...]  # rows of passages.parquet, in the order of the hops


class Asked(NamedTuple):
    """A training question, the paths ranked for it, best first, and the titles of its given positives."""

    question: Question
    paths: list[PathRows]
    gold_titles: frozenset[str]

    @property
    def rows(self) -> list[int]:
        return list(chain.from_iterable(self.paths))


class Selected(NamedTuple):
    """Places in a ranking, in its order."""

    positives: list[int]
    negatives: list[int]


def select(
    holds: Sequence[bool], gold_page: Sequence[bool], *, positives: int, negatives: NegativesPerQuestion
) -> Selected:
    """Positives hold an answer: those of a gold page where any of them does, else all, at most `positives`. Negatives
    are the first that hold none (DPR's rules). Parallel sequences over the ranks; no positive, no negative."""
    held = [i for i, hit in enumerate(holds) if hit]
    chosen = ([i for i in held if gold_page[i]] or held)[:positives]
    others = [i for i, hit in enumerate(holds) if not hit] if chosen else []
    return Selected(chosen, others[: negatives.count(len(chosen))])


def ranked_table(ranking: Path, part: str, *, hops: bool) -> Path:
    """The file of a ranking's part, `train` or `evaluate`: with `hops` that of its paths, where it has any."""
    paths = ranking / "paths" / f"{part}.parquet"
    return paths if hops and paths.exists() else ranking / f"{part}.parquet"


def ranked_ids(table: Path) -> list[str]:
    """The questions that a ranking of passages or paths ranks, in its order."""
    record = _record(table)
    return list(dict.fromkeys(tables.read(table, record, columns=["question_id"])["question_id"].to_pylist()))


def ranked(table: Path, depth: int | None = None) -> Iterator[tuple[str, list[list[str]]]]:
    """Question id and its first `depth` paths, None for all, as passage ids, best first, question by question."""
    record = _record(table)
    for question_id, rows in groupby(tables.rows(table, record), key=attrgetter("question_id")):
        first = (row for row in rows if depth is None or row.rank <= depth)
        yield question_id, [row.passage_ids if record is RankedPath else [row.passage_id] for row in first]


def _record(table: Path) -> type:
    return RankedPath if table.parent.name == "paths" else Ranked


def rows_of(store: PassageStore, paths: Sequence[Sequence[str]]) -> list[PathRows]:
    rows = iter(store.rows([passage_id for path in paths for passage_id in path]).tolist())
    return [tuple(next(rows) for _ in path) for path in paths]


def asked(
    records: Path, positives: Path, table: Path, store: PassageStore, *, depth: int, half: int | None = None
) -> Iterator[Asked]:
    """The questions of the fold `train`, or of a half of it, that the ranking has, with its first `depth` paths."""
    folds = tables.rows(positives / "folds.parquet", Fold)
    learnt = {fold.question_id for fold in folds if fold.role == "train" and half in (None, fold.half)}
    questions = {question.id: question for question in selected(records / "questions.parquet", learnt)}
    titles = _gold_titles(positives / "positives.parquet", learnt, store)
    for question_id, paths in ranked(table, depth):
        if question_id in learnt:
            check_known([question_id], questions, table, records)
            yield Asked(questions[question_id], rows_of(store, paths), titles.get(question_id, frozenset()))


def check_known(ids: Iterable[str], known: Collection[str], table: Path, records: Path) -> None:
    for question_id in ids:
        if question_id not in known:
            raise ValueError(f"{table}: question_id {question_id!r} is not in {records}; run `dvc repro`")


def _gold_titles(positives: Path, wanted: Collection[str], store: PassageStore) -> dict[str, frozenset[str]]:
    """By question the titles of the positives that the source gave; BM25's are no gold pages."""
    given = [row for row in tables.rows(positives, Positive) if row.source == "given" and row.question_id in wanted]
    found: dict[str, set[str]] = {}
    for row, title in zip(given, store.titles(store.rows([row.passage_id for row in given])), strict=True):
        if title:
            found.setdefault(row.question_id, set()).add(title)
    return {question_id: frozenset(titles) for question_id, titles in found.items()}
