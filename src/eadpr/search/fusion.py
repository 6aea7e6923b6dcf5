"""Two rankings made one: by reciprocal rank, or by a weighted sum of scores; validation questions choose the weight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eadpr import files, questions, tables
from eadpr.config import Sets
from eadpr.passages import PassageStore
from eadpr.records import Fold, Ranked
from eadpr.search.config import Fuse
from eadpr.search.hits import Judge, reciprocal_rank, relevant_ids

Scores = Mapping[str, float]  # passage id -> score, of one question
CHOSEN = "fusion.json"


class Both(NamedTuple):
    question_id: str
    first: Scores
    second: Scores


def reciprocal(both: Both, k: int) -> dict[str, float]:
    """Sum of 1 / (k + rank) over the rankings that hold a passage (Cormack et al., 2009: k = 60)."""
    fused: dict[str, float] = {}
    for scores in (both.first, both.second):
        for rank, passage_id in enumerate(_best_first(scores), start=1):
            fused[passage_id] = fused.get(passage_id, 0.0) + 1 / (k + rank)
    return fused


def weighted(both: Both, weight: float) -> dict[str, float]:
    """(1 - weight) times the first score plus weight times the second, each scaled to [0, 1] over its ranking.

    A passage that a ranking lacks has the score of its last one, 0.
    """
    fused: dict[str, float] = {}
    for share, scores in ((1 - weight, _scaled(both.first)), (weight, _scaled(both.second))):
        for passage_id, score in scores.items():
            fused[passage_id] = fused.get(passage_id, 0.0) + share * score
    return fused


def _scaled(scores: Scores) -> Scores:
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {passage_id: (score - low) / (high - low) if high > low else 1.0 for passage_id, score in scores.items()}


def _best_first(scores: Scores) -> list[str]:
    return sorted(scores, key=lambda passage_id: (-scores[passage_id], passage_id))


def fuse(
    records: Path, positives: Path, first: Path, second: Path, out: Path, *, settings: Fuse, sets: Sets, depth: int
) -> dict[str, float]:
    """Write train.parquet and evaluate.parquet to the folder `out`, `depth` passages per question at most.

    `first` and `second` are folders of rankings. Returns, and writes to fusion.json, the weight and the mean reciprocal
    rank of the validation questions with every weight tried; empty for `reciprocal`. Raises ValueError where a weight
    is to be chosen and there is no validation question, and for a ranking in another order than questions.parquet.
    """
    order = records / "question_sets.parquet"
    chosen: dict[str, float] = {}
    with files.new_folder(out) as folder:
        if settings.by == "weighted":
            held_out = {f.question_id for f in tables.rows(positives / "folds.parquet", Fold) if f.role == "validation"}
            asked = [i for i in questions.select(order, sets.train) if i in held_out]
            if not asked:
                raise ValueError(
                    "fuse.by: weighted chooses its weight on validation questions, and there are none; raise"
                    " positives.validation, or set fuse.by to reciprocal"
                )
            found = paired(first / "train.parquet", second / "train.parquet", asked)
            chosen = _tried(found, records, positives, asked, settings, depth)
        files.write_json(folder / CHOSEN, chosen)
        for name in ("train", "evaluate"):
            ids = questions.select(order, getattr(sets, name))
            found = paired(first / f"{name}.parquet", second / f"{name}.parquet", ids)
            tables.write(folder / f"{name}.parquet", Ranked, _ranked(found, settings, chosen.get("weight", 0.0), depth))
    return chosen


def _tried(
    found: Iterable[Both], records: Path, positives: Path, asked: Sequence[str], settings: Fuse, depth: int
) -> dict[str, float]:
    """`asked` are the validation questions, ranked or not."""
    questions_of = {question.id: question for question in questions.selected(records / "questions.parquet", asked)}
    relevant = relevant_ids(positives / "positives.parquet", list(questions_of.values()))
    judge = Judge(PassageStore(records / "passages.parquet"), relevant)
    totals_W = np.zeros(len(settings.weights))
    for both in found:
        ids = list({**both.first, **both.second})
        hits = frozenset(compress(ids, judge(questions_of[both.question_id], ids)))
        orders = [_best_first(weighted(both, weight))[:depth] for weight in settings.weights]
        totals_W += reciprocal_rank(np.array([[passage_id in hits for passage_id in order] for order in orders]), depth)
    means = dict(zip(settings.weights, (totals_W / len(asked)).tolist(), strict=True))
    best = max(means, key=lambda weight: (means[weight], -weight))
    return {"weight": best} | {f"mrr_{weight:g}": float(f"{mean:.7g}") for weight, mean in means.items()}


def paired(first: Path, second: Path, ids: Sequence[str]) -> Iterator[Both]:
    """Both rankings of each question that either holds, in the order of `ids`, which is that of questions.parquet."""
    wanted = frozenset(ids)
    sides = [_by_question(path, wanted) for path in (first, second)]
    heads = [next(side, None) for side in sides]
    for question_id in ids:
        scores: list[Scores] = []
        for i, side in enumerate(sides):
            if heads[i] is not None and heads[i][0] == question_id:
                scores.append(heads[i][1])
                heads[i] = next(side, None)
            else:
                scores.append({})
        if any(scores):
            yield Both(question_id, *scores)
    for path, head in zip((first, second), heads, strict=True):
        if head is not None:
            raise ValueError(
                f"{path}: question {head[0]!r} does not stand where questions.parquet has it; run `dvc repro`"
            )


def _by_question(path: Path, wanted: frozenset[str]) -> Iterator[tuple[str, Scores]]:
    for question_id, rows in groupby(tables.rows(path, Ranked), key=attrgetter("question_id")):
        if question_id in wanted:
            yield question_id, {row.passage_id: row.score for row in rows}


def _ranked(found: Iterable[Both], settings: Fuse, weight: float, depth: int) -> Iterator[Ranked]:
    for both in found:
        scores = weighted(both, weight) if settings.by == "weighted" else reciprocal(both, settings.k)
        for rank, passage_id in enumerate(_best_first(scores)[:depth], start=1):
            yield Ranked(both.question_id, passage_id, rank, scores[passage_id])
