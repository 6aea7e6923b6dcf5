"""The details of each question in the explorer: its rankings, which passages hold an answer, its positives with their
evidence and cuts, and readers' answers.

Passages are numbered by first use, so that passages of neighbouring questions stand side by side.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from eadpr.evaluation import metrics, outcomes
from eadpr.evaluation.outcomes import MeasuredQuestions
from eadpr.evaluation.question_tables import ReadAnswer
from eadpr.explorer.rankings import AddedPassage, ExploreInputs, Numbering, RankingColumns, ShownRanking
from eadpr.explorer.words import PLACEBOS
from eadpr.report.config import ReportArms
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Distractor, Evidence, PairScore, Positive, Question, Span
from eadpr.text.answers import answer_spans

BLOCK = 128  # questions judged together

Positives = dict[str, dict[str, Any]]  # passage id -> the positive as the page has it


def read_questions_of(records: Path, sets: Sequence[str]) -> MeasuredQuestions:
    return outcomes.load_questions(records, outcomes.read_members(records, sets))


def details(
    inputs: ExploreInputs,
    shown: Sequence[ShownRanking],
    questions: MeasuredQuestions,
    columns: Sequence[RankingColumns],
    settings: ReportArms,
    number: Numbering,
) -> Iterator[dict[str, Any]]:
    """Yield the details of every question, in order."""
    store = PassageStore(inputs.records / "passages.parquet")
    source_positives = metrics.given_positives(inputs.positives / "positives.parquet", questions.ids)
    positives = _read_positives(inputs, questions, settings.strategy)
    scores = [_read_scores(ranking.pairs, questions) for ranking in shown]
    answers = _read_answers(inputs.outcomes, shown, settings)
    remaining = questions.records(inputs.records)
    while block := list(islice(remaining, BLOCK)):
        relevant = metrics.relevant_of(source_positives, block, {})
        judge = metrics.Judge(store, relevant)
        for question in block:
            of_question = positives.get(question.id, {})
            ranked = [ranking.passages.get(question.id, []) for ranking in columns]
            ids = list(dict.fromkeys([*chain.from_iterable(ranked), *of_question]))
            of_corpus = [passage for passage in ids if not isinstance(passage, AddedPassage)]
            hits = judge(question, of_corpus) if of_corpus else []  # near-duplicates are no hits
            pool = sorted({number(passage) for passage in ids})
            place = {passage: pool.index(number(passage)) for passage in ids}
            edges = {passage_id: _answer_edges(question, passage_id, store) for passage_id in of_corpus}
            yield {
                "pool": _differences(pool),
                "ranked": [
                    [[place[passage] for passage in passages], _differences(ranking.scores.get(question.id, []))]
                    for passages, ranking in zip(ranked, columns, strict=True)
                ],
                "hits": [[place[i], edges[i]] for i, hit in zip(of_corpus, hits, strict=True) if hit],
                "relevant": sorted(place[passage_id] for passage_id in relevant[question.id] if passage_id in place),
                "positives": [
                    {
                        "passage": place[i],
                        "answers": edges[i],
                        "scores": _group_by_form(scores, question.id, i),
                        **positive,
                    }
                    for i, positive in of_question.items()
                ],
                "read": answers.get(question.id, []),
            }


def _read_answers(folder: Path, shown: Sequence[ShownRanking], settings: ReportArms) -> dict[str, list[list[Any]]]:
    """Return by question: reader, ranking (its place in `shown`), passages read, answer, 1 where it is right."""
    measured = {name for names in settings.reading.trainings.values() for name in names}
    answers = defaultdict(list)
    for reader in settings.reading.active:
        for place, ranking in enumerate(shown):
            if ranking.name in measured:
                for row in tables.rows(folder / "answers" / reader / f"{ranking.name}.parquet", ReadAnswer):
                    answers[row.question_id].append([reader, place, row.top_k, row.answer, int(row.right)])
    return answers


def _answer_edges(question: Question, passage_id: str, store: PassageStore) -> list[int]:
    (text,) = store.texts(store.rows([passage_id]))
    return _edges(answer_spans(question.answers, text, question.answer_kind))


def _read_positives(inputs: ExploreInputs, questions: MeasuredQuestions, strategy: str) -> dict[str, Positives]:
    """Return each question's positives, in the order of the file, with gold evidence, the annotator's evidence, and the
    spans cut from them by form."""
    ids = frozenset(questions.ids.to_pylist())
    chosen: dict[tuple[str, str, str], list[int]] = {}  # question, passage, strategy -> edges of spans
    for row in tables.rows(inputs.evidence, Evidence):
        if row.question_id in ids and row.strategy in (strategy, *PLACEBOS):
            chosen[row.question_id, row.passage_id, row.strategy] = _edges(row.chosen_spans)
    cut = _read_cuts(inputs.distractors / "distractors.parquet", strategy)
    positives: dict[str, Positives] = defaultdict(dict)
    for row in tables.rows(inputs.positives / "positives.parquet", Positive):
        if row.question_id in ids:
            key = (row.question_id, row.passage_id)
            removed = {"distractor": cut.get(key, [])} | {name: chosen.get((*key, name), []) for name in PLACEBOS}
            positives[row.question_id][row.passage_id] = {
                "given": row.source == metrics.GIVEN,
                "gold": _edges(row.gold or []),
                "pseudo": chosen.get((*key, strategy), []),
                "removed": {form: edges for form, edges in removed.items() if edges},
            }
    return positives


def _read_cuts(path: Path, strategy: str) -> dict[tuple[str, str], list[int]]:
    """Return the edges of the spans that the distractor lacks, by question and positive."""
    tables.count(path, Distractor)
    filters = [("strategy", "=", strategy), ("form", "=", "cut")]
    rows = pq.read_table(path, columns=["question_id", "passage_id", "removed"], filters=filters).to_pylist()
    return {
        (row["question_id"], row["passage_id"]): _edges([(span["start"], span["end"]) for span in row["removed"]])
        for row in rows
    }


def _read_scores(path: Path, questions: MeasuredQuestions) -> dict[tuple[str, str], dict[str, float]]:
    """Return scores by question and positive, then form; nothing for a ranking without scored forms (BM25, fused, two
    hops). The name of a form that the encoder truncates before its difference ends in `_cut`."""
    if not path.exists():
        return {}
    tables.count(path, PairScore)
    table = pq.read_table(path)
    scores = defaultdict(dict)
    for row in table.filter(pc.is_in(table["question_id"], value_set=questions.ids)).to_pylist():
        scores[row["question_id"], row["passage_id"]][row["variant"]] = float(f"{row['score']:.6g}")
    return scores


def _group_by_form(
    scores: Sequence[Mapping[tuple[str, str], Mapping[str, float]]], question_id: str, passage_id: str
) -> dict[str, list[float | None]]:
    """Return by form the scores of one positive, None for a ranking without."""
    by_ranking = [ranking.get((question_id, passage_id), {}) for ranking in scores]
    return {form: [forms.get(form) for forms in by_ranking] for form in dict.fromkeys(chain.from_iterable(by_ranking))}


def _edges(spans: Sequence[Span] | Sequence[tuple[int, int]] | None) -> list[int]:
    """Return start, end, start, end ..."""
    return [edge for span in spans or () for edge in (span[0], span[1])]


def _differences(numbers: Sequence[int]) -> list[int]:
    """Return the first number, then each difference to the number before: small numbers, which compress well."""
    return [*numbers[:1], *(second - first for first, second in pairwise(numbers))]
