"""The stage `evaluate`: every metric of a ranking for every question, as a table of outcomes.

A metric has one name in all tables and reports: `top20`, `mrr100` (all questions, by answer, or by passage id where no
text can hold the answer, as yes and no), `id_top20`, `id_mrr100`, `ndcg10`,
`map100`, `recall20` (by passage id, questions with given positives; grades count in `ndcg10` alone), `all10`
(all supporting passages found, questions with hops), those of `awareness` (one row per pair of probe): `aa`,
`aa_evidence`, placebo rates, controlled awareness, `aa_sentence` and so on for the strategies of probe.also; and
`score_difference`, that behind `aa_evidence`.

What the report counts stands among the metrics: `ranked` (passages, of every question), `no_answers` and `unjudged` (1
for each such question), `aa_cut`, `controlled_aa_without` and so on (1 for each pair left out).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eadpr.evaluation import awareness, metrics
from eadpr.evaluation.config import Evaluate
from eadpr.evaluation.metrics import Judgements, given_positives, judge, reciprocal_rank, relevant_of
from eadpr.evaluation.outcomes import MeasuredQuestions, Values, asked, members_of, write
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.grades import grades
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Question, Ranked

BLOCK = 2048  # questions judged at a time; limits memory and decides nothing
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
    """Write the table `outcomes`; returns the number of questions per question set.

    `pairs` are the scores of an arm's probe. `more` measures what else is known of the ranking; a metric of the same
    name takes the place of that of the ranking.
    """
    questions = asked(records, members_of(records, sets.evaluate))
    values = ranking_values(questions, records, positives, ranking, settings)
    if pairs is not None:
        values |= awareness_values(pairs, questions.ids)
    if more is not None:
        found = more(questions)
        values = {metric: of for metric, of in values.items() if metric not in found} | found
    write(outcomes, questions, values)
    return questions.counts


def ranking_values(
    questions: MeasuredQuestions, records: Path, positives: Path, ranking: Path, settings: Evaluate
) -> dict[str, Values]:
    """Every metric of the ranking and its `COUNTS`."""
    found: dict[str, list[Values]] = {}
    start = 0
    for block, judged in judged_blocks(questions, records, positives, ranking, settings.depth):
        for metric, (rows, values) in (retrieval_values(judged, settings) | _counts(block, judged)).items():
            found.setdefault(metric, []).append(Values(start + rows, values))
        start += len(block)
    order = (metric for metric in (*settings.metrics, *COUNTS) if metric in found)
    return {metric: Values(*map(np.concatenate, zip(*found[metric], strict=True))) for metric in order}


def judged_blocks(
    questions: MeasuredQuestions, records: Path, positives: Path, ranking: Path, depth: int
) -> Iterator[tuple[list[Question], Judgements]]:
    """The questions in blocks, each with what is judged of its ranking."""
    given = given_positives(positives / "positives.parquet", questions.ids)
    store, start, graded = PassageStore(records / "passages.parquet"), 0, grades(records)
    ranked = tables.rows(ranking / "evaluate.parquet", Ranked)
    with progress("evaluate", questions.table.num_rows, "questions") as advance:
        side_by_side = _side_by_side(questions, questions.records(records), ranked)
        while asked_ := list(islice(side_by_side, BLOCK)):
            block = [question for question, _ in asked_]
            relevant = relevant_of(given, start, block, graded)
            start += len(block)
            yield block, judge(asked_, relevant, store, depth=depth, advance=advance)


def _side_by_side(
    questions: MeasuredQuestions, asked_: Iterable[Question], ranked: Iterable[Ranked]
) -> Iterator[tuple[Question, list[Ranked]]]:
    """Every question with its rows, if any; both have the questions in one order."""
    groups = groupby(ranked, key=attrgetter("question_id"))
    question_id, group = next(groups, (None, ()))
    for question in asked_:
        if question.id == question_id:
            yield question, list(group)
            question_id, group = next(groups, (None, ()))
        else:
            yield question, []
    if question_id is None:
        return
    if not pc.is_in(pa.scalar(question_id), value_set=questions.ids).as_py():
        raise ValueError(f"ranking: question {question_id!r} is in none of sets.evaluate; run `dvc repro`")
    raise ValueError(
        f"ranking: question {question_id!r} has ranks that repeat, or does not stand in the order of questions.parquet;"
        " run `dvc repro`"
    )


def retrieval_values(judged: Judgements, settings: Evaluate) -> dict[str, Values]:
    """Every retrieval metric; those by id over the questions that have such ids, absent where none has."""
    everyone = np.arange(len(judged.relevant_Q))
    found = {f"top{k}": Values(everyone, metrics.top_k_accuracy(judged.answer_QK, k)) for k in settings.top_k}
    at = settings.mrr_at
    found[f"mrr{at}"] = Values(everyone, reciprocal_rank(judged.answer_QK, at))
    if len(given := np.flatnonzero(judged.relevant_Q)):
        hits, counts = judged.relevant_QK[given], judged.relevant_Q[given]
        at = settings.ndcg_at
        gains = judged.gain_QK[given], judged.best_QK[given]
        found[f"ndcg{at}"] = Values(given, metrics.ndcg(*gains, at))
        found |= {f"id_top{k}": Values(given, metrics.top_k_accuracy(hits, k)) for k in settings.top_k}
        at = settings.mrr_at
        found[f"id_mrr{at}"] = Values(given, reciprocal_rank(hits, at))
        found[f"map{at}"] = Values(given, metrics.average_precision(hits, counts, at))
        found |= {f"recall{k}": Values(given, metrics.recall(hits, counts, k)) for k in settings.recall_at}
    if len(hops := np.flatnonzero(judged.supporting_Q)):
        hits, counts = judged.supporting_QK[hops], judged.supporting_Q[hops]
        found |= {f"all{k}": Values(hops, metrics.all_found(hits, counts, k)) for k in settings.all_at}
    return found


def _counts(questions: Sequence[Question], judged: Judgements) -> dict[str, Values]:
    without = np.array([not question.matchable for question in questions])
    rows = {"no_answers": np.flatnonzero(without), "unjudged": np.flatnonzero(without & (judged.relevant_Q == 0))}
    ranked = Values(np.arange(len(questions)), judged.ranked_Q.astype(np.float64))
    return {"ranked": ranked} | {name: Values(of, np.ones(len(of))) for name, of in rows.items() if len(of)}


def awareness_values(pairs: Path, ids: pa.Array) -> dict[str, Values]:
    """The metrics of `awareness` and the score differences, one value per pair; absent where there are no pairs."""
    found = {}

    def of(questions: pa.ChunkedArray, values: np.ndarray) -> Values:
        return Values(pc.index_in(questions, value_set=ids).to_numpy(), values)

    for metric, (questions, values, _, cut, without) in awareness.of_file(pairs, ids):
        if len(values):
            found[metric] = of(questions, awareness.aware(values))
            if metric == "aa_evidence":
                found["score_difference"] = of(questions, values)
        for left_out, suffix in ((cut, awareness.CUT), (without, awareness.WITHOUT)):
            if len(left_out):
                found[f"{metric}{suffix}"] = of(left_out, np.ones(len(left_out)))
    return found
