"""The stage `evaluate`: every metric of a ranking, per question and as means per question set and question type.

A metric has one name as JSON key and in the column `metric` of outcomes: `top20`, `mrr100` (all questions, by answer,
or by passage id where no text can hold the answer, as yes and no), `ndcg10`, `recall20` (by passage id, questions with
given positives), `all10` (all supporting passages found, questions with hops), `aa`, `aa_evidence`, `aa_sentence` and
so on for the strategies of probe.also, `score_difference` (one row per pair of probe). Where every question of a set
has a relation, `macro` holds the means over relations of their means, as EntityQuestions (Sciavolino et al., 2021)
reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eadpr import files, tables
from eadpr.config import Sets
from eadpr.evaluation import awareness, metrics
from eadpr.evaluation.config import Evaluate, count_name
from eadpr.evaluation.judgements import Judgements, judge
from eadpr.evaluation.question_types import TYPES, question_type
from eadpr.passages import PassageStore
from eadpr.progress import progress
from eadpr.questions import select, selected
from eadpr.records import Outcome, PairScore, Question, Ranked
from eadpr.search.hits import reciprocal_rank, relevant_ids

DIGITS = 6  # of every number in a metrics file


class Values(NamedTuple):
    """A metric's values; `rows` are indices into the questions and repeat where a question has several pairs."""

    rows: NDArray[np.int64]
    values: NDArray[np.float64]


def evaluate(
    *, records: Path, positives: Path, ranking: Path, pairs: Path | None, settings: Evaluate, sets: Sets
) -> tuple[Iterator[Outcome], dict[str, Any]]:
    """Outcomes and the content of the metrics file for the question sets of `sets.evaluate`, in their order."""
    members = members_of(records / "question_sets.parquet", sets.evaluate)
    ids = frozenset(question_id for found in members.values() for question_id in found)
    questions = list(selected(records / "questions.parquet", ids))
    judged = judged_ranking(records, positives, ranking, questions, settings.depth)
    place = {question.id: i for i, question in enumerate(questions)}
    values = retrieval_values(judged, settings)
    scores = None if pairs is None else tables.read(pairs, PairScore)
    if scores is not None:
        values |= awareness_values(scores, place)
    types = [question_type(question.question) for question in questions]
    report = {}
    for name, found in members.items():
        here = np.array([place[question_id] for question_id in found])
        of_set = {metric: _among(v, here) for metric, v in values.items()}
        report[name] = _set_metrics(questions, types, here, of_set, judged, scores)
    return all_outcomes(members, questions, values), report


def run(
    *,
    records: Path,
    positives: Path,
    ranking: Path,
    pairs: Path | None,
    outcomes: Path,
    metrics_file: Path,
    settings: Evaluate,
    sets: Sets,
) -> dict[str, int]:
    """Evaluate and write both files; returns the number of questions per question set."""
    rows, report = evaluate(
        records=records, positives=positives, ranking=ranking, pairs=pairs, settings=settings, sets=sets
    )
    tables.write(outcomes, Outcome, rows)
    files.write_json(metrics_file, rounded(report))
    return {name: found["n"] for name, found in report.items()}


def retrieval_values(judged: Judgements, settings: Evaluate) -> dict[str, Values]:
    """Every retrieval metric; those by id over the questions that have such ids, absent where none has."""
    everyone = np.arange(len(judged.relevant_Q))
    found = {f"top{k}": Values(everyone, metrics.top_k_accuracy(judged.answer_QK, k)) for k in settings.top_k}
    at = settings.mrr_at
    found[f"mrr{at}"] = Values(everyone, reciprocal_rank(judged.answer_QK, at))
    if len(given := np.flatnonzero(judged.relevant_Q)):
        hits, counts = judged.relevant_QK[given], judged.relevant_Q[given]
        at = settings.ndcg_at
        found[f"ndcg{at}"] = Values(given, metrics.ndcg(hits, counts, at))
        found |= {f"recall{k}": Values(given, metrics.recall(hits, counts, k)) for k in settings.recall_at}
    if len(hops := np.flatnonzero(judged.supporting_Q)):
        hits, counts = judged.supporting_QK[hops], judged.supporting_Q[hops]
        found |= {f"all{k}": Values(hops, metrics.all_found(hits, counts, k)) for k in settings.all_at}
    return found


def awareness_values(pairs: pa.Table, place: dict[str, int]) -> dict[str, Values]:
    """AA by answer and by evidence and the score differences, one value per pair; absent where there are no pairs."""
    found = {}
    for metric, variant in awareness.AWARENESS.items():
        differences = awareness.differences(pairs, variant, frozenset(place))
        if len(differences.values):
            rows = np.array([place[question_id] for question_id in differences.question_ids])
            found[metric] = Values(rows, awareness.aware(differences.values))
            if variant == "distractor":
                found["score_difference"] = Values(rows, differences.values)
    return found


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return round(value, DIGITS) if isinstance(value, float) else value


def members_of(question_sets: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Ids of the questions of each named set; raises ValueError where there are none."""
    if not names:
        raise ValueError("sets.evaluate is empty: there is nothing to evaluate; name a question set in params.yaml")
    members = {name: select(question_sets, [name]) for name in names}
    for name, found in members.items():
        if not found:
            raise ValueError(f"question set {name!r} has no questions; mend sets.evaluate in params.yaml")
    return members


def judged_ranking(records: Path, positives: Path, ranking: Path, questions: list[Question], depth: int) -> Judgements:
    with progress("evaluate", len(questions), "questions") as advance:
        return judge(
            tables.rows(ranking / "evaluate.parquet", Ranked),
            questions,
            relevant_ids(positives / "positives.parquet", questions),
            PassageStore(records / "passages.parquet"),
            depth=depth,
            advance=advance,
        )


def _among(values: Values, rows: NDArray[np.int64]) -> Values:
    keep = np.isin(values.rows, rows)
    return Values(values.rows[keep], values.values[keep])


def all_outcomes(
    members: dict[str, list[str]], questions: list[Question], values: dict[str, Values]
) -> Iterator[Outcome]:
    """Every value, by question set, then metric."""
    place = {question.id: i for i, question in enumerate(questions)}
    types = [question_type(question.question) for question in questions]
    for name, found in members.items():
        here = np.array([place[question_id] for question_id in found])
        for metric, of_all in values.items():
            rows, numbers = _among(of_all, here)
            for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
                yield Outcome(name, questions[row].id, types[row], metric, number)


def _set_metrics(
    questions: list[Question],
    types: list[str],
    here: NDArray[np.int64],
    values: dict[str, Values],
    judged: Judgements,
    scores: pa.Table | None,
) -> dict[str, Any]:
    found = _means(here, values)
    found["n_ranked"] = int((judged.ranked_Q[here] > 0).sum())
    found["deepest_rank"] = int(judged.ranked_Q[here].max())
    found["n_without_answers"] = sum(not questions[row].sought for row in here)
    found["n_unjudged"] = sum(not questions[row].sought and not judged.relevant_Q[row] for row in here)
    if scores is not None:
        ids = frozenset(questions[row].id for row in here)
        present = set(pc.unique(scores["variant"]).to_pylist())
        for metric, variant in awareness.AWARENESS.items():
            if metric in ("aa", "aa_evidence") or present & {variant, variant + awareness.CUT}:
                found[f"n_{metric}_cut"] = awareness.differences(scores, variant, ids).cut
        if "score_difference" in values:
            found["score_difference_quantiles"] = awareness.quantiles(values["score_difference"].values)
    type_of = np.array(types)
    found["by_type"] = {
        kind: _means(of_kind, {metric: _among(v, of_kind) for metric, v in values.items()})
        for kind in TYPES
        if len(of_kind := here[type_of[here] == kind])
    }
    if macro := macro_average([question.relation for question in questions], here, values):
        found["macro"] = macro
    return found


def macro_average(
    relations: Sequence[str | None], here: NDArray[np.int64], values: dict[str, Values]
) -> dict[str, float]:
    """Means over relations, each counting alike, of every metric, and the number of `relations`; empty where a question
    has none, or all have the same. A metric's mean is over the relations that have values of it."""
    relation_of = np.array([relations[row] or "" for row in here])
    names = np.unique(relation_of)
    if "" in names or len(names) < 2:
        return {}
    found: dict[str, float] = {"relations": len(names)}
    for metric, (rows, numbers) in values.items():
        place = dict(zip(here.tolist(), relation_of, strict=True))
        of_value = np.array([place[row] for row in rows.tolist()])
        means = [numbers[of_value == name].mean() for name in names if (of_value == name).any()]
        if means:
            found[metric] = float(np.mean(means))
    return found


def _means(here: NDArray[np.int64], values: dict[str, Values]) -> dict[str, Any]:
    """The mean of every metric that has values here, and their number where not every question has just one."""
    found: dict[str, Any] = {"n": len(here)}
    for metric, (_, numbers) in values.items():
        if len(numbers):
            found[metric] = float(numbers.mean())
            if name := count_name(metric):
                found[name] = len(numbers)
    return found
