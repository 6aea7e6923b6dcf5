"""What a reader learns from: passages of a ranking of the training questions (DPR's rules)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eadpr import tables
from eadpr.passages import PassageStore
from eadpr.questions import selected
from eadpr.reading.config import NegativesPerQuestion
from eadpr.records import Fold, Positive, Question, Ranked


class Asked(NamedTuple):
    """A training question, rows of the passages ranked for it, best first, and the titles of its given positives."""

    question: Question
    rows: np.ndarray
    gold_titles: frozenset[str]


class Selected(NamedTuple):
    """Places in a ranking, in its order."""

    positives: list[int]
    negatives: list[int]


def select(
    holds: Sequence[bool], gold_page: Sequence[bool], *, positives: int, negatives: NegativesPerQuestion
) -> Selected:
    """Positives hold an answer: those of a gold page where any of them does, else all, at most `positives`. Negatives
    are the first that hold none. Parallel sequences over the ranks; no positive, no negative."""
    held = [i for i, hit in enumerate(holds) if hit]
    chosen = ([i for i in held if gold_page[i]] or held)[:positives]
    others = [i for i, hit in enumerate(holds) if not hit] if chosen else []
    return Selected(chosen, others[: negatives.count(len(chosen))])


def asked(
    records: Path, positives: Path, ranking: Path, store: PassageStore, *, depth: int, half: int | None = None
) -> Iterator[Asked]:
    """The questions of the fold `train`, or of a half of it, that the ranking has, with its first `depth` passages."""
    folds = tables.rows(positives / "folds.parquet", Fold)
    learnt = {fold.question_id for fold in folds if fold.role == "train" and half in (None, fold.half)}
    questions = {question.id: question for question in selected(records / "questions.parquet", learnt)}
    titles = _gold_titles(positives / "positives.parquet", learnt, store)
    for question_id, group in groupby(tables.rows(ranking, Ranked), key=attrgetter("question_id")):
        if question_id in learnt:
            if question_id not in questions:
                raise ValueError(f"{ranking}: question_id {question_id!r} is not in {records}; run `dvc repro`")
            rows = store.rows([row.passage_id for row in group if row.rank <= depth])
            yield Asked(questions[question_id], rows, titles.get(question_id, frozenset()))


def _gold_titles(positives: Path, wanted: Collection[str], store: PassageStore) -> dict[str, frozenset[str]]:
    """By question the titles of the positives that the source gave; BM25's are no gold pages."""
    given = [row for row in tables.rows(positives, Positive) if row.source == "given" and row.question_id in wanted]
    found: dict[str, set[str]] = {}
    for row, title in zip(given, store.titles(store.rows([row.passage_id for row in given])), strict=True):
        if title:
            found.setdefault(row.question_id, set()).add(title)
    return {question_id: frozenset(titles) for question_id, titles in found.items()}
