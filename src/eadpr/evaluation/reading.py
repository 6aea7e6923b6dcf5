"""The stage `evaluate_reading`: what a reader answered, measured for every question, as a table of outcomes.

A reader of passages has `em_5`, `f1_5` and so on, by how many passages were read; every question that is read of a set
counts. A reader of paths has HotpotQA's official metrics, `em`, `f1`, `prec`, `recall` of answers, with `sp_` of
supporting sentences, with `joint_` of both; questions with hops only. A question without a prediction, or without
answers, counts as wrong. `read` says of every question whether it has a prediction, `no_answers` stands for each that
has no answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eadpr import tables
from eadpr.config import Sets
from eadpr.evaluation.hotpot import METRICS, GoldAnswer, golds, scores
from eadpr.evaluation.outcomes import Values, asked, members_of, write
from eadpr.reading.answers import exact_match, f1
from eadpr.reading.config import Read
from eadpr.reading.predictions import Fact, Prediction
from eadpr.reading.selection import sampled
from eadpr.records import Question


def evaluate_reading(*, records: Path, reading: Path, outcomes: Path, settings: Read, sets: Sets) -> dict[str, int]:
    """Write the table `outcomes`; `reading` is the folder of predictions.parquet. Returns the number of questions per
    set."""
    found = asked(records, sampled(members_of(records, sets.evaluate), settings))
    questions = list(found.records(records))
    place = {question.id: i for i, question in enumerate(questions)}
    predictions = predicted(reading / "predictions.parquet", place)
    counts = _counts(questions, {i for i, _ in predictions})
    write(outcomes, found, reading_values(questions, predictions, settings.top_k) | counts)
    return found.counts


def evaluate_path_reading(
    *, records: Path, positives: Path, reading: Path, outcomes: Path, sets: Sets
) -> dict[str, int]:
    """As `evaluate_reading`, of a reader of paths; the numbers are of questions with hops, of which some must be."""
    found = asked(records, members_of(records, sets.evaluate))
    questions = list(found.records(records))
    predictions = predicted_of_paths(reading / "predictions.parquet", {question.id for question in questions})
    with_hops = [question.id for question in questions if question.hops]
    right = golds(records, positives / "positives.parquet", with_hops)
    values = path_reading_values(questions, right, predictions)
    place = {question.id: i for i, question in enumerate(questions)}
    write(outcomes, found, values | _counts(questions, {place[question_id] for question_id in predictions.answers}))
    hops = next(iter(values.values())).rows
    return {name: int(np.isin(hops, rows).sum()) for name, rows in found.members.items()}


def predicted(path: Path, place: dict[str, int]) -> dict[tuple[int, int], str]:
    """The answers by question, a place, and number of passages read. Raises ValueError for an unknown question and for
    a second answer."""
    found: dict[tuple[int, int], str] = {}
    for row in tables.rows(path, Prediction):
        if row.question_id not in place:
            raise ValueError(f"{path}: question {row.question_id!r} is in none of sets.evaluate; run `dvc repro`")
        key = place[row.question_id], row.top_k
        if key in found:
            raise ValueError(f"{path}: question {row.question_id!r} has two answers with top_k {row.top_k}")
        found[key] = row.answer
    return found


class Predicted(NamedTuple):
    """By question; a fact's page is its passage's id."""

    answers: dict[str, str]
    support: dict[str, list[Fact]]


def predicted_of_paths(path: Path, ids: Collection[str]) -> Predicted:
    """Raises ValueError for a question that is none of `ids`, and for a second answer."""
    found = Predicted({}, {})
    for row in tables.rows(path, Prediction):
        if row.question_id not in ids:
            raise ValueError(f"{path}: question {row.question_id!r} is in none of sets.evaluate; run `dvc repro`")
        if row.question_id in found.answers:
            raise ValueError(f"{path}: question {row.question_id!r} has two answers; run `dvc repro`")
        found.answers[row.question_id] = row.answer
        found.support[row.question_id] = [tuple(sentence) for sentence in row.support]
    return found


def reading_values(
    questions: Sequence[Question], predictions: dict[tuple[int, int], str], top_k: Sequence[int]
) -> dict[str, Values]:
    """`em_k` and `f1_k` of every question."""
    everyone = np.arange(len(questions))
    values = {}
    for name, measure in (("em", exact_match), ("f1", f1)):
        for k in top_k:
            found = [measure(predictions.get((i, k), ""), q.answers, q.answer_kind) for i, q in enumerate(questions)]
            values[f"{name}_{k}"] = Values(everyone, np.array(found, dtype=np.float64))
    return values


def path_reading_values(
    questions: Sequence[Question], right: Iterable[GoldAnswer], found: Predicted
) -> dict[str, Values]:
    """Every metric, over the questions with hops."""
    hops = np.array([i for i, question in enumerate(questions) if question.hops], dtype=np.int64)
    if not len(hops):
        raise ValueError("no question of sets.evaluate has hops; read paths for a set of multi-hop questions")
    scored = scores(right, found.answers, found.support)
    rows = [scored.get(questions[i].id, dict.fromkeys(METRICS, 0.0)) for i in hops]
    return {metric: Values(hops, np.array([row[metric] for row in rows])) for metric in METRICS}


def _counts(questions: Sequence[Question], answered: Collection[int]) -> dict[str, Values]:
    everyone = np.arange(len(questions))
    without = np.array([i for i, question in enumerate(questions) if not question.answers], dtype=np.int64)
    read = np.array([i in answered for i in everyone.tolist()], dtype=np.float64)
    return {"read": Values(everyone, read), "no_answers": Values(without, np.ones(len(without)))}
