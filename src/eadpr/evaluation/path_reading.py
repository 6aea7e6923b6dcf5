"""The stage `evaluate_path_reading`: HotpotQA's official metrics of what a reader of paths answers, per question and as
means.

Metrics have the official script's names: `em`, `f1`, `prec`, `recall` of answers, with `sp_` of supporting sentences,
with `joint_` of both; questions with hops only, one without a prediction, or without answers, as wrong. In the metrics
file `by_hop_type` holds them for bridge questions and comparisons apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eadpr import files, tables
from eadpr.config import Sets
from eadpr.evaluation.evaluate import Values, all_outcomes, members_of, rounded
from eadpr.evaluation.evaluate_paths import means
from eadpr.evaluation.hotpot_metrics import PREFIXES, Gold, Scores, scores
from eadpr.evaluation.hotpot_predictions import golds
from eadpr.questions import selected
from eadpr.reading_multihop.records import Fact, SupportedAnswer
from eadpr.records import Outcome, Question

METRICS = tuple(f"{prefix}{name}" for prefix in PREFIXES for name in Scores._fields)


class Predicted(NamedTuple):
    """By question; a fact's page is its passage's id."""

    answers: dict[str, str]
    support: dict[str, list[Fact]]


def evaluate_path_reading(
    *, records: Path, positives: Path, reading: Path, outcomes: Path, metrics_file: Path, sets: Sets
) -> dict[str, int]:
    """Write both files; `reading` is the folder of predictions.parquet. Returns the number of questions with hops per
    set. Raises ValueError where no question has hops."""
    members = members_of(records / "question_sets.parquet", sets.evaluate)
    ids = frozenset(question_id for found in members.values() for question_id in found)
    questions = list(selected(records / "questions.parquet", ids))
    predictions = predicted(reading / "predictions.parquet", ids)
    with_hops = [question.id for question in questions if question.hops]
    values = path_reading_values(questions, golds(records, positives / "positives.parquet", with_hops), predictions)
    place = {question.id: i for i, question in enumerate(questions)}
    report = {}
    for name, found in members.items():
        report[name] = _set_metrics([place[question_id] for question_id in found], questions, values, predictions)
    tables.write(outcomes, Outcome, all_outcomes(members, questions, values))
    files.write_json(metrics_file, rounded(report))
    return {name: found["n_supporting"] for name, found in report.items()}


def predicted(path: Path, ids: Collection[str]) -> Predicted:
    """Raises ValueError for a question that is none of `ids`, and for a second answer."""
    found = Predicted({}, {})
    for row in tables.rows(path, SupportedAnswer):
        if row.question_id not in ids:
            raise ValueError(f"{path}: question {row.question_id!r} is in none of sets.evaluate; run `dvc repro`")
        if row.question_id in found.answers:
            raise ValueError(f"{path}: question {row.question_id!r} has two answers; run `dvc repro`")
        found.answers[row.question_id] = row.answer
        found.support[row.question_id] = [tuple(sentence) for sentence in row.support]
    return found


def path_reading_values(questions: Sequence[Question], right: Iterable[Gold], found: Predicted) -> dict[str, Values]:
    """Every metric, over the questions with hops."""
    hops = np.array([i for i, question in enumerate(questions) if question.hops], dtype=np.int64)
    if not len(hops):
        raise ValueError("no question of sets.evaluate has hops; read paths for a set of multi-hop questions")
    scored = scores(right, found.answers, found.support)
    rows = [scored.get(questions[i].id, dict.fromkeys(METRICS, 0.0)) for i in hops]
    return {metric: Values(hops, np.array([row[metric] for row in rows])) for metric in METRICS}


def _set_metrics(
    here: Sequence[int], questions: Sequence[Question], values: dict[str, Values], found: Predicted
) -> dict[str, Any]:
    hops = [i for i in here if questions[i].hops]
    report = {"n": len(here), "n_supporting": len(hops)} | means(np.array(hops, dtype=np.int64), values)
    report["n_read"] = sum(questions[i].id in found.answers for i in hops)
    report["n_without_answers"] = sum(not questions[i].answers for i in hops)
    report["by_hop_type"] = {}
    for kind in sorted({questions[i].type or "" for i in hops} - {""}):
        of_kind = np.array([i for i in hops if questions[i].type == kind])
        report["by_hop_type"][kind] = {"n": len(of_kind)} | means(of_kind, values)
    return report
