"""The details of each question in the explorer: rankings, hits, positives with their cuts."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from eadpr.evaluation.metrics import GIVEN, load_judge
from eadpr.evaluation.outcomes import MeasuredQuestions
from eadpr.explorer.words import PLACEBOS
from eadpr.report.config import ReportArms
from eadpr.storage import tables
from eadpr.storage.rankings import SENTENCES, MatchedSentence
from eadpr.storage.records import Distractor, Evidence, PairScore, Positive, Question, Ranked, Span
from eadpr.text.answers import AnswerMatcher, answer_spans


class ExploreInputs(NamedTuple):
    """Folders, the table `evidence`, and the folder `report` that the stage of that name wrote."""

    records: Path
    positives: Path
    evidence: Path
    distractors: Path
    pairs: Path
    rankings: Path
    outcomes: Path
    report: Path


# By question: passages, scores, and start, end and score of the sentence that matched, or nothing; best first.
RankedPassages = dict[str, list[tuple[str, float, list[float]]]]


def read_ranking(path: Path, questions: MeasuredQuestions, depth: int) -> RankedPassages:
    """Read the first `depth` ranks; raises ValueError for a ranking without these questions, another collection's."""
    tables.count(path, Ranked)
    rows = pq.read_table(path, filters=[("rank", "<=", depth)])
    rows = rows.filter(pc.is_in(rows["question_id"], value_set=questions.ids))
    if not rows.num_rows:
        reason = f"no passages for the {len(questions.ids):,} questions of the chosen sets"
        advice = "name a set of sets.evaluate, or run `dvc repro`"
        raise ValueError(f"{path} has {reason}: it ranks another collection's, or other sets; {advice}")
    ranked, matched, sentences = defaultdict(list), {}, path.parent / SENTENCES
    for row in tables.rows(sentences, MatchedSentence) if sentences.exists() else ():
        matched[row.question_id, row.passage_id] = [row.start, row.end, round_score(row.score)]
    for row in rows.to_pylist():
        sentence = matched.get((row["question_id"], row["passage_id"]), [])
        ranked[row["question_id"]].append((row["passage_id"], round_score(row["score"]), sentence))
    return ranked


def round_score(score: float) -> float:
    """Round to the digits that the page shows: cosines to 4 decimals, what is larger to 2."""
    return round(score, 4 if abs(score) <= 1 else 2)


def details(
    inputs: ExploreInputs,
    names: Sequence[str],
    questions: Sequence[Question],
    rankings: Sequence[RankedPassages],
    settings: ReportArms,
    numbers: dict[str, int],
) -> Iterator[dict[str, Any]]:
    """Yield each question's details in order; `names` are the rankings', `numbers` gets each passage's by first use."""
    judge = load_judge(inputs.records, inputs.positives / "positives.parquet", questions)
    store, relevant, ids, matcher = judge.store, judge.relevant, judge.relevant.keys(), AnswerMatcher()
    positives = _read_positives(inputs, ids, settings.strategy)
    scores = _read_scores([inputs.pairs / f"{name}.parquet" for name in names], ids)
    for question in questions:
        ranked = [ranking.get(question.id, []) for ranking in rankings]
        passages = dict.fromkeys(passage for ranking in ranked for passage, *_ in ranking)
        passages |= dict.fromkeys(positives[question.id])
        for passage in passages:
            numbers.setdefault(passage, len(numbers))
        texts = store.texts(store.rows([*passages]))
        with_answer = matcher.matches(question.answers, texts, question.answer_kind)
        edges = {passage: [] for passage in passages}
        for passage, text in compress(zip(passages, texts, strict=True), with_answer):
            edges[passage] = _edges(answer_spans(question.answers, text, question.answer_kind))
        hits = judge(question, [*passages]) if passages else []
        shown_positives = [
            {"passage": numbers[i], "answers": edges[i], "scores": scores.get((question.id, i), {})} | positive
            for i, positive in positives[question.id].items()
        ]
        yield {
            "ranked": [[[numbers[passage], score, *match] for passage, score, match in ranking] for ranking in ranked],
            "hits": [[numbers[i], edges[i]] for i, hit in zip(passages, hits, strict=True) if hit],
            "relevant": sorted(numbers[i] for i in relevant[question.id] if i in passages),
            "positives": shown_positives,
        }


def _read_positives(inputs: ExploreInputs, ids: Collection[str], strategy: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Return by question and passage the spans of gold and found evidence, and those cut by form."""
    chosen = {}  # edges of spans by strategy
    for row in tables.rows(inputs.evidence, Evidence):
        if row.question_id in ids:
            chosen[row.question_id, row.passage_id, row.strategy] = _edges(row.chosen_spans)
    cut = {}
    for row in tables.rows(inputs.distractors / "distractors.parquet", Distractor):
        if (row.strategy, row.form) == (strategy, "cut"):
            cut[row.question_id, row.passage_id] = _edges(row.removed)
    positives = defaultdict(dict)
    for row in tables.rows(inputs.positives / "positives.parquet", Positive):
        if row.question_id in ids:
            key = (row.question_id, row.passage_id)
            removed = {"distractor": cut.get(key, [])} | {name: chosen.get((*key, name), []) for name in PLACEBOS}
            positives[row.question_id][row.passage_id] = {
                "given": row.source == GIVEN,
                "gold": _edges(row.gold or []),
                "pseudo": chosen.get((*key, strategy), []),
                "removed": {form: edges for form, edges in removed.items() if edges},
            }
    return positives


def _read_scores(paths: Sequence[Path], ids: Collection[str]) -> dict[tuple[str, str], dict[str, list[float | None]]]:
    """Return by question and positive, then form, the score of each ranking, None for one without."""
    scores = defaultdict(dict)
    for place, path in enumerate(paths):
        for row in tables.rows(path, PairScore) if path.exists() else ():
            if row.question_id in ids:
                by_form = scores[row.question_id, row.passage_id]
                by_form.setdefault(row.variant, [None] * len(paths))[place] = round_score(row.score)
    return scores


def _edges(spans: Sequence[Span] | Sequence[tuple[int, int]]) -> list[int]:
    """Return start, end, start, end ..."""
    return [edge for span in spans for edge in (span[0], span[1])]
