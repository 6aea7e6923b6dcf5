"""The stage `evaluate`: every metric of a ranking for every question, as a table of outcomes.

A metric has one name in all tables and reports:
- of all questions, by answer, or by passage id where no text can hold the answer: `top20`, `mrr100`;
- of questions with given positives, by passage id: `id_top20`, `id_mrr100`, `map100`, `recall20`, graded `ndcg10`;
- of questions whose first passage is a given positive with annotated evidence: `evidence1`, 1 where the sentence that
  the question matches there overlaps that, by an arm's encoders;
- of all questions with annotated evidence: `evidence_top1`, 0 where the first passage is another one;
- of questions with hops, 1 where all supporting passages are found: `all10`;
- of `awareness`, one row per pair of probe: `aa`, `aa_evidence`, placebo rates, controlled awareness, `aa_sentence` and
  so on for the strategies of probe.also; and `score_difference`, behind `aa_evidence`.

Counts of the report stand among the metrics: `ranked` (passages, of every question), `no_answers` and `unjudged` (1 for
each such question), `aa_cut`, `controlled_aa_without` and so on (1 for each pair left out).
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from eadpr.evaluation import awareness, metrics
from eadpr.evaluation.config import Evaluate
from eadpr.evaluation.outcomes import MeasuredQuestions, Values, load_questions, write
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.rankings import SENTENCES, MatchedSentence, read_rankings
from eadpr.storage.records import Positive, Question, Span
from eadpr.text.spans import overlapping

COUNTS = ("ranked", "no_answers", "unjudged")
More = Callable[[MeasuredQuestions], Mapping[str, Values]]


def run(
    *,
    records: Path,
    positives: Path,
    ranking: Path,
    outcomes: Path,
    settings: Evaluate,
    sets: Sets,
    pairs: Path | None = None,
    more: More | None = None,
) -> dict[str, int]:
    """Write the table `outcomes`; return the number of questions per question set.

    `pairs` are the scores of an arm's probe. `more` returns further metrics, which replace metrics of the same name.
    """
    questions = load_questions(records, sets.evaluate)
    values = ranking_values(questions, records, positives, ranking, settings)
    if (ranking / SENTENCES).exists():
        values |= evidence_values(ranking / SENTENCES, positives / "positives.parquet", questions.ids)
    if pairs is not None:
        values |= awareness_values(pairs, questions.ids)
    if more is not None:
        added = more(questions)
        values = {metric: column for metric, column in values.items() if metric not in added} | added
    write(outcomes, questions, values)
    return questions.counts


def ranking_values(
    questions: MeasuredQuestions, records: Path, positives: Path, ranking: Path, settings: Evaluate
) -> dict[str, Values]:
    question_records, ids = list(questions.records(records)), questions.ids
    judge = metrics.load_judge(records, positives / "positives.parquet", question_records)
    rankings = read_rankings(ranking / "evaluate.parquet", ids.to_pylist())
    judged = metrics.judge_rankings(judge, question_records, rankings, depth=settings.depth)
    return retrieval_values(judged, settings) | _counts(question_records, judged)


def retrieval_values(judged: metrics.Judgements, settings: Evaluate) -> dict[str, Values]:
    """Return every retrieval metric; those by id over the questions that have such ids, absent where none has."""
    everyone, mrr_at, ndcg_at = np.arange(len(judged.relevant_Q)), settings.mrr_at, settings.ndcg_at
    values = {f"top{k}": Values(everyone, metrics.top_k_accuracy(judged.answer_QK, k)) for k in settings.top_k}
    values[f"mrr{mrr_at}"] = Values(everyone, metrics.reciprocal_rank(judged.answer_QK, mrr_at))
    if len(rows := np.flatnonzero(judged.relevant_Q)):
        hits, counts = judged.relevant_QK[rows], judged.relevant_Q[rows]
        values |= {f"id_top{k}": Values(rows, metrics.top_k_accuracy(hits, k)) for k in settings.top_k}
        values[f"id_mrr{mrr_at}"] = Values(rows, metrics.reciprocal_rank(hits, mrr_at))
        values[f"ndcg{ndcg_at}"] = Values(rows, metrics.ndcg(judged.gain_QK[rows], judged.best_QK[rows], ndcg_at))
        values[f"map{mrr_at}"] = Values(rows, metrics.average_precision(hits, counts, mrr_at))
        values |= {f"recall{k}": Values(rows, metrics.recall(hits, counts, k)) for k in settings.recall_at}
    if len(rows := np.flatnonzero(judged.supporting_Q)):
        hits, counts = judged.supporting_QK[rows], judged.supporting_Q[rows]
        values |= {f"all{k}": Values(rows, metrics.all_found(hits, counts, k)) for k in settings.all_at}
    return values


def evidence_values(sentences: Path, positives: Path, ids: pa.Array) -> dict[str, Values]:
    """Return `evidence1` and `evidence_top1`; the former is absent where no first passage has annotated evidence."""
    first = [sentence for sentence in tables.rows(sentences, MatchedSentence) if sentence.rank == 1]
    gold = {(row.question_id, row.passage_id): row.gold for row in tables.rows(positives, Positive) if row.gold}
    row_of = {question_id: row for row, question_id in enumerate(ids.to_pylist())}
    values = {}
    for sentence in first:
        if spans := gold.get((sentence.question_id, sentence.passage_id)):
            values[row_of[sentence.question_id]] = len(overlapping([Span(sentence.start, sentence.end)], spans))
    annotated = sorted({row_of[question_id] for question_id, _ in gold if question_id in row_of}) if first else []
    items = zip(awareness.POINTING, (values, {row: values.get(row, 0) for row in annotated}), strict=True)
    return {name: Values(np.array([*hits]), np.array([*hits.values()], np.float64)) for name, hits in items if hits}


def _counts(questions: Sequence[Question], judged: metrics.Judgements) -> dict[str, Values]:
    values = {"ranked": Values(np.arange(len(questions)), judged.ranked_Q.astype(np.float64))}
    without = np.array([not question.matchable for question in questions])
    counted = {"no_answers": np.flatnonzero(without), "unjudged": np.flatnonzero(without & (judged.relevant_Q == 0))}
    return values | {name: Values(rows, np.ones(len(rows))) for name, rows in counted.items() if len(rows)}


def awareness_values(pairs: Path, ids: pa.Array) -> dict[str, Values]:
    """Return the metrics of `awareness` and the score differences, one value per pair; none without pairs."""
    values: dict[str, Values] = {}
    row_of = {question_id: row for row, question_id in enumerate(ids.to_pylist())}

    def add(metric: str, question_ids: np.ndarray, numbers: np.ndarray) -> None:
        if len(numbers):
            values[metric] = Values(np.array([row_of[question_id] for question_id in question_ids]), numbers)

    for metric, pair in awareness.of_file(pairs, ids):
        add(metric, pair.question_ids, awareness.aware(pair.values))
        if metric == "aa_evidence":
            add("score_difference", pair.question_ids, pair.values)
        add(f"{metric}{awareness.CUT}", pair.cut, np.ones(len(pair.cut)))
        add(f"{metric}{awareness.WITHOUT}", pair.without, np.ones(len(pair.without)))
    return values
