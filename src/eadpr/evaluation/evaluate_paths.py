"""The stage `evaluate_multihop`: the metrics of paths beside those of the ranking that they make.

What `evaluate` has for a ranking, with `all<k>` (R@k, P-EM) over the k/2 best paths, and over as many paths `pr<k>`,
`path_recall<k>` and `hop1_recall<k>` (see `path_metrics`); questions with hops only. `by_hop_type` in the metrics file
holds them for bridge questions and comparisons apart; `one_hop`, there and beside it, those `all<k>` of a ranking to
compare with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from eadpr import files, tables
from eadpr.config import Sets
from eadpr.evaluation import path_metrics
from eadpr.evaluation.config import Evaluate
from eadpr.evaluation.evaluate import Values, all_outcomes, evaluate, macro_average, members_of, rounded
from eadpr.evaluation.question_types import question_type
from eadpr.multihop.records import Path as HopPath
from eadpr.questions import selected
from eadpr.records import Outcome, Question

METRICS = {
    "all": path_metrics.all_found,
    "pr": path_metrics.passage_recall,
    "path_recall": path_metrics.path_recall,
    "hop1_recall": path_metrics.first_hop_recall,
}
Rows = np.ndarray  # int64 places among the questions


def run(
    *,
    records: Path,
    positives: Path,
    paths: Path,
    ranking: Path,
    one_hop: Path,
    outcomes: Path,
    metrics_file: Path,
    settings: Evaluate,
    sets: Sets,
) -> dict[str, int]:
    """Evaluate and write both files; returns the number of questions per question set.

    `one_hop`: the outcomes of a ranking. Raises ValueError for an odd cut-off of evaluate.all_at, and where no question
    has hops.
    """
    rows, report = evaluate(
        records=records, positives=positives, ranking=ranking, pairs=None, settings=settings, sets=sets
    )
    members = members_of(records / "question_sets.parquet", sets.evaluate)
    ids = frozenset(question_id for found in members.values() for question_id in found)
    questions = list(selected(records / "questions.parquet", ids))
    found = path_values(tables.rows(paths / "evaluate.parquet", HopPath), questions, settings.all_at)
    of_one_hop = _of_ranking(tables.rows(one_hop, Outcome), questions, settings.all_at)
    place = {question.id: i for i, question in enumerate(questions)}
    for name, members_of_set in members.items():
        here = np.array([place[question_id] for question_id in members_of_set])
        _add(report[name], here, questions, found)
        report[name]["one_hop"] = means(here, of_one_hop)
        report[name]["by_hop_type"] = by_hop_type(here, questions, found, of_one_hop)
    others = (row for row in rows if row.metric not in found)
    tables.write(outcomes, Outcome, chain(others, all_outcomes(members, questions, found)))
    files.write_json(metrics_file, rounded(report))
    return {name: of_set["n"] for name, of_set in report.items()}


def path_values(paths: Iterable[HopPath], questions: Sequence[Question], all_at: Sequence[int]) -> dict[str, Values]:
    """Every metric of paths, over the questions with hops; one without paths has found nothing.

    Raises ValueError for an odd cut-off, paths of a question twice or not in the order of their ranks, and where no
    question has hops.
    """
    if odd := [k for k in all_at if k % 2]:
        raise ValueError(f"evaluate.all_at: {odd[0]} is odd, but a path has two passages; give even cut-offs")
    hops = np.array([i for i, question in enumerate(questions) if question.hops], dtype=np.int64)
    if not len(hops):
        raise ValueError("no question of sets.evaluate has hops; evaluate paths on a set of multi-hop questions")
    place = {question.id: i for i, question in enumerate(questions)}
    most = max(all_at, default=2) // 2
    places = np.full((len(questions), most, 2), -1, dtype=np.int64)
    seen: set[str] = set()
    for question_id, group in groupby(paths, key=attrgetter("question_id")):
        own = list(group)
        if question_id not in place:
            raise ValueError(f"paths: question {question_id!r} is in none of sets.evaluate; run `dvc repro`")
        if question_id in seen or [path.rank for path in own] != list(range(1, len(own) + 1)):
            raise ValueError(f"paths: question {question_id!r} stands in two places, or its ranks are not 1, 2, 3, …")
        seen.add(question_id)
        question = questions[place[question_id]]
        number = {passage_id: i for i, passage_id in enumerate(dict.fromkeys(question.hops or ()))}
        for k, path in enumerate(own[:most]):
            places[place[question_id], k] = [number.get(passage_id, -1) for passage_id in path.passage_ids]
    needed = np.array([len(set(questions[i].hops)) for i in hops])
    return {
        f"{name}{k}": Values(hops, metric(places[hops], needed, k // 2))
        for name, metric in METRICS.items()
        for k in all_at
    }


def by_hop_type(
    here: Rows, questions: Sequence[Question], found: dict[str, Values], one_hop: dict[str, Values]
) -> dict[str, Any]:
    """Means by the questions' `type`, bridge and comparison; those of `one_hop` beside them."""
    report: dict[str, Any] = {}
    for kind in sorted({questions[i].type or "" for i in here} - {""}):
        of_kind = np.array([i for i in here if questions[i].type == kind])
        report[kind] = {"n": len(of_kind)} | means(of_kind, found) | {"one_hop": means(of_kind, one_hop)}
    return report


def means(here: Rows, values: dict[str, Values]) -> dict[str, float]:
    """Of every metric that has values here."""
    found = {metric: numbers[np.isin(rows, here)] for metric, (rows, numbers) in values.items()}
    return {metric: float(numbers.mean()) for metric, numbers in found.items() if len(numbers)}


def _of_ranking(outcomes: Iterable[Outcome], questions: Sequence[Question], all_at: Sequence[int]) -> dict[str, Values]:
    place = {question.id: i for i, question in enumerate(questions)}
    found: dict[str, dict[int, float]] = {f"all{k}": {} for k in all_at}
    for row in outcomes:
        if row.metric in found and row.question_id in place:
            found[row.metric][place[row.question_id]] = row.value  # the same in every set
    return {
        metric: Values(np.array(list(of), dtype=np.int64), np.array(list(of.values()))) for metric, of in found.items()
    }


def _add(report: dict[str, Any], here: Rows, questions: Sequence[Question], found: dict[str, Values]) -> None:
    """Put the metrics of paths into a set's report, its question types and its macro average."""
    report |= means(here, found)
    for kind, of_kind in report["by_type"].items():
        of_kind |= means(np.array([i for i in here if question_type(questions[i].question) == kind]), found)
    if "macro" in report:
        kept = {metric: Values(*(c[np.isin(v.rows, here)] for c in v)) for metric, v in found.items()}
        report["macro"] |= macro_average([question.relation for question in questions], here, kept)
