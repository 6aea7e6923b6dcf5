"""Fusion of two rankings by reciprocal rank (Cormack et al., 2009), or by scores with the best weight on validation."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from eadpr.evaluation.metrics import load_judge
from eadpr.runtime import files
from eadpr.runtime.section import Sets
from eadpr.search.config import Fuse
from eadpr.storage import tables
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.rankings import read_rankings
from eadpr.storage.records import Fold, Ranked

CHOSEN = "fusion.json"
Worths = dict[str, float]  # the value of each passage of a ranking


def fuse(
    records: Path, positives: Path, first: Path, second: Path, out: Path, *, settings: Fuse, sets: Sets, depth: int
) -> dict[str, float]:
    """Write train.parquet and evaluate.parquet to the folder `out`, `depth` passages per question at most.

    `first` and `second` are folders of rankings. Returns, and writes to fusion.json, the weight and validation's mean
    reciprocal rank by weight; empty for `reciprocal`. Choosing a weight without validation raises ValueError.
    """
    parts = {}
    for part, names in (("train", sets.learnt), ("evaluate", sets.evaluate)):
        ids = read_question_ids(records / "question_sets.parquet", names)
        parts[part] = ids, first / f"{part}.parquet", second / f"{part}.parquet"
    choice: dict[str, float] = {}
    shares = 1.0, 1.0
    if settings.by == "weighted":
        choice = _choose_weight(records, positives, read_worths(*parts["train"], settings), settings, depth)
        shares = 1 - choice["weight"], choice["weight"]
    with files.new_folder(out) as folder:
        for part, inputs in parts.items():
            rows = (
                Ranked(question_id, passage_id, rank, score)
                for question_id, *worths in read_worths(*inputs, settings)
                for rank, (passage_id, score) in enumerate(add_worths(worths, shares)[:depth], start=1)
            )
            tables.write(folder / f"{part}.parquet", Ranked, rows)
        files.write_json(folder / CHOSEN, choice)
    return choice


def read_worths(ids: Sequence[str], first: Path, second: Path, settings: Fuse) -> Iterator[tuple[str, Worths, Worths]]:
    """Yield each question with the worths of its passages in both rankings."""
    for question_id, *rankings in zip(ids, read_rankings(first, ids), read_rankings(second, ids), strict=True):
        yield question_id, *(weigh({row.passage_id: row.score for row in rows}, settings) for rows in rankings)


def weigh(scores: dict[str, float], settings: Fuse) -> Worths:
    """Return 1 / (k + rank), or scores scaled to [0, 1] over the ranking, 1 where all are equal."""
    if settings.by == "reciprocal":
        order = sorted(scores, key=lambda passage_id: (-scores[passage_id], passage_id))
        return {passage_id: 1 / (settings.k + rank) for rank, passage_id in enumerate(order, start=1)}
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {passage_id: (score - low) / (high - low) if high > low else 1.0 for passage_id, score in scores.items()}


def add_worths(worths: Sequence[Worths], shares: tuple[float, float]) -> list[tuple[str, float]]:
    """Return passages with the sum of their worths, best first; a passage that a ranking lacks gets 0 from it."""
    first, second = worths
    sums = {
        passage_id: shares[0] * first.get(passage_id, 0.0) + shares[1] * second.get(passage_id, 0.0)
        for passage_id in first | second
    }
    return sorted(sums.items(), key=lambda item: (-item[1], item[0]))


def _choose_weight(
    records: Path, positives: Path, questions: Iterator[tuple[str, Worths, Worths]], settings: Fuse, depth: int
) -> dict[str, float]:
    """Return the best weight, the least of equals, and each weight's mean reciprocal rank of the first hit."""
    ids = {fold.question_id for fold in tables.rows(positives / "folds.parquet", Fold) if fold.role == "validation"}
    validation = list(read_questions(records / "questions.parquet", ids))
    if not validation:
        raise ValueError("fuse.by: weighted needs validation questions, and there are none; set it to reciprocal")
    judge = load_judge(records, positives / "positives.parquet", validation)
    by_id = {question.id: question for question in validation}
    sums = dict.fromkeys(settings.weights, 0.0)
    for question_id, *worths in questions:
        if question_id not in by_id:
            continue
        passage_ids = list(worths[0] | worths[1])
        hits = dict(zip(passage_ids, judge(by_id[question_id], passage_ids).tolist(), strict=True))
        for weight in settings.weights:
            fused = enumerate(add_worths(worths, (1 - weight, weight))[:depth], start=1)
            sums[weight] += next((1 / rank for rank, (passage_id, _) in fused if hits[passage_id]), 0.0)
    means = {weight: total / len(validation) for weight, total in sums.items()}
    best = max(means, key=lambda weight: (means[weight], -weight))
    return {"weight": best} | {f"mrr_{weight:g}": float(f"{mean:.7g}") for weight, mean in means.items()}
