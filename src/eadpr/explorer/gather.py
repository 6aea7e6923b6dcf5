"""What the explorer shows of each question: its rankings, which passages hold an answer, its positives with their
evidence and what was cut from them.

Passages are numbered by first use, so that those of neighbouring questions stand side by side.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice, pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from eadpr.evaluation import metrics, outcomes
from eadpr.evaluation.question_tables import ReadAnswer
from eadpr.explorer.packing import folded, signs
from eadpr.explorer.rankings import AddedPassage, ExploreInputs, Numbering, RankingColumns, ShownRanking
from eadpr.explorer.words import PLACEBOS
from eadpr.report.config import ReportArms
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Distractor, Evidence, PairScore, Positive, Question, Span
from eadpr.text.answers import answer_spans

BLOCK = 64  # questions that are unpacked together


class Chosen(NamedTuple):
    """What a page shows: the rankings, the question sets, and how many passages of each ranking."""

    rankings: Sequence[ShownRanking]
    sets: Sequence[str]
    depth: int


def questions(inputs: ExploreInputs, chosen: Chosen) -> outcomes.MeasuredQuestions:
    return outcomes.asked(inputs.records, outcomes.members_of(inputs.records, chosen.sets))


def details(
    inputs: ExploreInputs,
    chosen: Chosen,
    asked: outcomes.MeasuredQuestions,
    rankings: Sequence[RankingColumns],
    settings: ReportArms,
    number: Numbering,
) -> Iterator[dict[str, Any]]:
    """One for every question, in order, as the page reads it."""
    store = PassageStore(inputs.records / "passages.parquet")
    given = metrics.given_positives(inputs.positives / "positives.parquet", asked.ids)
    positives = _positives(inputs, asked, settings)
    scores = [_scores(one.pairs, asked) for one in chosen.rankings]
    read = _read(inputs.outcomes, chosen, settings)
    every, start = asked.records(inputs.records), 0
    while block := list(islice(every, BLOCK)):
        relevant = metrics.relevant_of(given, start, block, {})
        judge = metrics.Judge(store, relevant)
        start += len(block)
        for question in block:
            own = positives.get(question.id, {})
            ranked = [of.passages.get(question.id, []) for of in rankings]
            ids = list(dict.fromkeys([*chain.from_iterable(ranked), *own]))
            of_corpus = [one for one in ids if not isinstance(one, AddedPassage)]  # near-duplicates are no hits
            hits = judge(question, of_corpus) if of_corpus else []
            pool = sorted({number(one) for one in ids})
            place = {one: pool.index(number(one)) for one in ids}
            held = [one for one, hit in zip(of_corpus, hits, strict=True) if hit]
            yield {
                "pool": signs(_steps(pool)),
                "ranked": [
                    [signs(place[one] for one in of), signs(folded(_steps(columns.scores.get(question.id, []), -1)))]
                    for of, columns in zip(ranked, rankings, strict=True)
                ],
                "hits": [[place[one], _answers(question, one, store)] for one in held],
                "relevant": sorted(place[one] for one in relevant[question.id] if one in place),
                "positives": [
                    {"passage": place[one], "given": known["given"], "answers": _answers(question, one, store)}
                    | known
                    | {"scores": _by_form([of.get((question.id, one), {}) for of in scores])}
                    for one, known in own.items()
                ],
                "read": read.get(question.id, []),
            }


def _read(outcomes_: Path, chosen: Chosen, settings: ReportArms) -> dict[str, list[list[Any]]]:
    """By question: reader, ranking (its place among those chosen), passages read, answer, 1 where it is right."""
    rankings = {name for names in settings.reading.trainings.values() for name in names}
    found: dict[str, list[list[Any]]] = {}
    for reader in settings.reading.active:
        for place, name in enumerate(one.name for one in chosen.rankings):
            if name in rankings:
                for row in tables.rows(outcomes_ / "answers" / reader / f"{name}.parquet", ReadAnswer):
                    found.setdefault(row.question_id, []).append([reader, place, *row[1:3], int(row.right)])
    return found


def _answers(question: Question, passage_id: str, store: PassageStore) -> list[int]:
    (text,) = store.texts(store.rows([passage_id]))
    return _flat(answer_spans(question.answers, text, question.answer_kind))


def _positives(
    inputs: ExploreInputs, asked: outcomes.MeasuredQuestions, settings: ReportArms
) -> dict[str, dict[str, dict[str, Any]]]:
    """By question and passage, in the order of the file: gold evidence, what the annotator chose, and by form what was
    cut from it."""
    ids, strategy = frozenset(asked.ids.to_pylist()), settings.strategy
    spans = _chosen_spans(inputs.evidence, ids, (strategy, *PLACEBOS))
    cut = _distractors(inputs.distractors / "distractors.parquet", ids, strategy)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in tables.rows(inputs.positives / "positives.parquet", Positive):
        if row.question_id in ids:
            of = {name: spans[row.question_id, name].get(row.passage_id, []) for name in (strategy, *PLACEBOS)}
            pseudo = of.pop(strategy)
            removed = {"distractor": cut.get((row.question_id, row.passage_id), []), **of}
            found.setdefault(row.question_id, {})[row.passage_id] = {
                "given": row.source == metrics.GIVEN,
                "gold": _flat(row.gold or []),
                "pseudo": _flat(pseudo),
                "removed": {form: _flat(of_form) for form, of_form in removed.items() if of_form},
            }
    return found


def _distractors(path: Path, ids: frozenset[str], strategy: str) -> dict[tuple[str, str], list[Span]]:
    """What the distractor that arms are measured with lacks, by question and positive."""
    tables.count(path, Distractor)
    filters = [("strategy", "=", strategy), ("form", "=", "cut")]
    rows = pq.read_table(path, columns=["question_id", "passage_id", "removed"], filters=filters).to_pylist()
    return {
        (row["question_id"], row["passage_id"]): [Span(**span) for span in row["removed"]]
        for row in rows
        if row["question_id"] in ids
    }


def _scores(path: Path, asked: outcomes.MeasuredQuestions) -> dict[tuple[str, str], dict[str, float]]:
    """By question and positive, then form; none of a ranking that no forms were scored with (BM25, fused, two hops). A
    form that was cut off after its difference is told by a `_cut` behind its name."""
    if not path.exists():
        return {}
    tables.count(path, PairScore)
    table = pq.read_table(path)
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in table.filter(pc.is_in(table["question_id"], value_set=asked.ids)).to_pylist():
        found.setdefault((row["question_id"], row["passage_id"]), {})[row["variant"]] = float(f"{row['score']:.6g}")
    return found


def _by_form(scores: Sequence[dict[str, float]]) -> dict[str, list[float | None]]:
    return {form: [of.get(form) for of in scores] for form in dict.fromkeys(chain.from_iterable(scores))}


def _flat(spans: Sequence[Span]) -> list[int]:
    return [edge for span in spans for edge in (span[0], span[1])] if spans else []


def _steps(numbers: Sequence[int], sign: int = 1) -> list[int]:
    """The first number, then how far each is above, or below, the one before: small numbers, which pack well."""
    return [*numbers[:1], *(sign * (after - before) for before, after in pairwise(numbers))]


def _chosen_spans(
    path: Path, question_ids: Collection[str], strategies: Collection[str]
) -> dict[tuple[str, str], dict[str, list[Span]]]:
    """Map each (question id, strategy) to the chosen spans of its passages, by passage id."""
    spans = {key: {} for key in product(question_ids, strategies)}
    for row in tables.rows(path, Evidence):
        if (key := (row.question_id, row.strategy)) in spans:
            spans[key][row.passage_id] = row.chosen_spans
    return spans
