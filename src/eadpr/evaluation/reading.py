"""The stage `evaluate_reading`: exact match and F1 of a reader's answers, per question and as means.

Metrics are `em_5`, `f1_5` and so on, by how many passages were read. Every question that is read of a set counts, one
without a prediction, or without answers, as wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from eadpr import files, tables
from eadpr.config import Sets
from eadpr.evaluation.evaluate import Values, all_outcomes, macro_average, members_of, rounded
from eadpr.evaluation.question_types import TYPES, question_type
from eadpr.questions import selected
from eadpr.reading.answers import exact_match, f1
from eadpr.reading.config import Read
from eadpr.reading.records import Prediction
from eadpr.reading.sample import sampled
from eadpr.records import Outcome, Question


def evaluate_reading(
    *, records: Path, reading: Path, outcomes: Path, metrics_file: Path, settings: Read, sets: Sets
) -> dict[str, int]:
    """Write both files; `reading` is the folder of predictions.parquet. Returns the number of questions per set."""
    members = sampled(members_of(records / "question_sets.parquet", sets.evaluate), settings)
    ids = frozenset(question_id for found in members.values() for question_id in found)
    questions = list(selected(records / "questions.parquet", ids))
    place = {question.id: i for i, question in enumerate(questions)}
    predictions = predicted(reading / "predictions.parquet", place)
    values = reading_values(questions, predictions, settings.top_k)
    report = {}
    for name, found in members.items():
        here = np.array([place[question_id] for question_id in found])
        report[name] = _set_metrics(questions, here, values, predictions)
    tables.write(outcomes, Outcome, all_outcomes(members, questions, values))
    files.write_json(metrics_file, rounded(report))
    return {name: found["n"] for name, found in report.items()}


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


def reading_values(
    questions: list[Question], predictions: dict[tuple[int, int], str], top_k: list[int]
) -> dict[str, Values]:
    """`em_k` and `f1_k` of every question."""
    everyone = np.arange(len(questions))
    values = {}
    for name, measure in (("em", exact_match), ("f1", f1)):
        for k in top_k:
            found = [measure(predictions.get((i, k), ""), q.answers, q.answer_kind) for i, q in enumerate(questions)]
            values[f"{name}_{k}"] = Values(everyone, np.array(found, dtype=np.float64))
    return values


def _set_metrics(
    questions: list[Question], here: np.ndarray, values: dict[str, Values], predictions: dict[tuple[int, int], str]
) -> dict[str, Any]:
    of_set = {metric: Values(here, found.values[here]) for metric, found in values.items()}
    answered = {i for i, _ in predictions}
    found = _means(here, values)
    found["n_read"] = sum(row in answered for row in here.tolist())
    found["n_without_answers"] = sum(not questions[row].answers for row in here)
    types = np.array([question_type(questions[row].question) for row in here])
    found["by_type"] = {kind: _means(here[types == kind], values) for kind in TYPES if (types == kind).any()}
    if macro := macro_average([question.relation for question in questions], here, of_set):
        found["macro"] = macro
    return found


def _means(here: np.ndarray, values: dict[str, Values]) -> dict[str, Any]:
    return {"n": len(here)} | {metric: float(found.values[here].mean()) for metric, found in values.items()}
