"""The stage `evaluate_reading`: what a reader answered, measured for every question, as a table of outcomes.

A reader of passages has `em_5`, `f1_5` and so on, by how many passages were read: exact match and F1 of SQuAD's
evaluation (Rajpurkar et al., 2016), as readers of open-domain questions are measured (Karpukhin et al., 2020, section
6.1); every question that is read of a set counts. A reader of paths has HotpotQA's official metrics (Yang et al., 2018;
hotpot_evaluate_v1), with their names: `em`, `f1`, `prec`, `recall` of answers, with `sp_` of supporting facts
(`Sentence`, counted from 0), with `joint_` of both; questions with hops only. A question without a prediction, or
without answers, counts as wrong. `read` says of every question whether it has a prediction, `no_answers` stands for
each that has no answer.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eadpr.corpus.formats.hotpot import passage_id
from eadpr.evaluation.outcomes import Values, asked, members_of, write
from eadpr.evaluation.question_tables import ReadAnswer
from eadpr.readers.config import Read
from eadpr.readers.predictions import Prediction, Sentence, named_facts
from eadpr.readers.selection import sampled
from eadpr.runtime.section import Sets
from eadpr.storage import questions, tables
from eadpr.storage.records import Question
from eadpr.supervision import pairs, spans
from eadpr.text.answers import compiled, exact_match_normal, nfd

CLOSED = ("yes", "no", "noanswer")  # answers of which a part is worth nothing
PREFIXES = ("", "sp_", "joint_")


def exact_match(prediction: str, answers: Sequence[str], kind: str = "string") -> bool:
    """Whether the prediction is one of the answers in its normal form, or the whole of it matches a `regex`.

    A prediction of nothing is never right, not even where an answer's normal form is empty.
    """
    if kind == "regex":
        said = nfd(prediction.strip())
        return bool(said) and any(pattern.fullmatch(said) for pattern in map(compiled, answers) if pattern)
    return bool(prediction.strip()) and exact_match_normal(prediction) in map(exact_match_normal, answers)


def f1(prediction: str, answers: Sequence[str], kind: str = "string") -> float:
    """The best F1 of the words of the prediction and of an answer, both in normal form; for a `regex`, whose words are
    not known, 1 for an exact match and else 0."""
    if kind == "regex" or exact_match(prediction, answers, kind):
        return float(exact_match(prediction, answers, kind))
    said = exact_match_normal(prediction).split()
    return max((_overlap(0.0, said, exact_match_normal(answer).split()).f1 for answer in answers), default=0.0)


class GoldAnswer(NamedTuple):
    question_id: str
    answer: str
    support: frozenset[Sentence]


class Scores(NamedTuple):
    em: float
    f1: float
    prec: float
    recall: float


METRICS = tuple(f"{prefix}{name}" for prefix in PREFIXES for name in Scores._fields)
WRONG = Scores(0.0, 0.0, 0.0, 0.0)


def answer_scores(answer: str, gold: str) -> Scores:
    """Of the answers' words in SQuAD's normal form; no part of yes, no or noanswer counts where the other differs."""
    said, right = exact_match_normal(answer), exact_match_normal(gold)
    if said != right and (said in CLOSED or right in CLOSED):
        return WRONG
    return _overlap(float(said == right), said.split(), right.split())


def support_scores(support: Collection[Sentence], gold: Collection[Sentence]) -> Scores:
    """Of the sets; nothing predicted where there is nothing to find is exact, with an F1 of 0, as the script has it."""
    return _overlap(float({*support} == {*gold}), {*support}, {*gold})


def _overlap(em: float, found: Collection, right: Collection) -> Scores:
    same = (Counter(found) & Counter(right)).total()
    return _scores(em, *(same / len(side) if side else 0.0 for side in (found, right)))


def _scores(em: float, precision: float, recall: float) -> Scores:
    total = precision + recall
    return Scores(em, 2 * precision * recall / total if total else 0.0, precision, recall)


def scores(golds: Iterable[GoldAnswer], predictions: Mapping[str, Prediction]) -> dict[str, dict[str, float]]:
    """Every metric of every question; 0 where its prediction is missing."""
    found = {}
    for gold in golds:
        answer = facts = WRONG
        if said := predictions.get(gold.question_id):
            answer = answer_scores(said.answer, gold.answer)
            facts = support_scores(said.support, gold.support)
        joint = _scores(answer.em * facts.em, answer.prec * facts.prec, answer.recall * facts.recall)
        parts = zip(PREFIXES, (answer, facts, joint), strict=True)
        found[gold.question_id] = {f"{prefix}{name}": v for prefix, part in parts for name, v in part._asdict().items()}
    return found


def evaluate_reading(
    *, records: Path, positives: Path, reading: Path, outcomes: Path, answers: Path, of_paths: bool, settings: Read,
    sets: Sets,
) -> dict[str, int]:  # fmt: skip
    """Write the tables `outcomes` and, of each answer whether it is right, `answers`; `reading` is the folder of
    predictions.parquet. Returns the number of questions per set, of a reader of paths those with hops, of which some
    must be."""
    members = members_of(records, sets.evaluate)
    measured = asked(records, members if of_paths else sampled(members, settings))
    found = list(measured.records(records))
    rows = list(predicted(reading / "predictions.parquet", {question.id for question in found}, once=of_paths))
    if of_paths:
        right = golds(records, positives / "positives.parquet", [question.id for question in found if question.hops])
        values = path_reading_values(found, right, {row.question_id: row for row in rows})
    else:
        values = reading_values(found, {(row.question_id, row.top_k): row.answer for row in rows}, settings.top_k)
    write(outcomes, measured, values | _counts(found, {row.question_id for row in rows}))
    tables.write(answers, ReadAnswer, _judged(rows, found, values, of_paths))
    counted = next(iter(values.values())).rows
    return {name: int(np.isin(counted, of_set).sum()) for name, of_set in measured.members.items()}


def _judged(
    rows: Iterable[Prediction], questions: Sequence[Question], values: Mapping[str, Values], of_paths: bool
) -> Iterator[ReadAnswer]:
    """Those of questions that were measured."""
    right = {}
    for metric, (places, numbers) in values.items():
        if metric.startswith("em"):
            ids = (questions[place].id for place in places)
            right[metric] = dict(zip(ids, (numbers == 1).tolist(), strict=True))
    for row in rows:
        of_metric = right["em" if of_paths else f"em_{row.top_k}"]
        if row.question_id in of_metric:
            yield ReadAnswer(row.question_id, row.top_k, row.answer, of_metric[row.question_id])


def predicted(path: Path, ids: Collection[str], *, once: bool = False) -> Iterator[Prediction]:
    """Raises ValueError for a question that is none of `ids`, and for a second answer to it, from as many passages or,
    with `once`, at all."""
    seen = set()
    for row in tables.rows(path, Prediction):
        if row.question_id not in ids:
            raise ValueError(f"{path}: question {row.question_id!r} is in none of sets.evaluate; run `dvc repro`")
        key = row.question_id, None if once else row.top_k
        if key in seen:
            of = "" if once else f" with top_k {row.top_k}"
            raise ValueError(f"{path}: question {row.question_id!r} has two answers{of}; run `dvc repro`")
        seen.add(key)
        yield row


def golds(records: Path, positives: Path, ids: Collection[str]) -> Iterator[GoldAnswer]:
    """Of the questions with an answer. Their supporting facts are those that HotpotQA's file names, with sentences that
    the corpus lacks, as the official script counts them; of other questions the sentences that hold gold evidence. A
    fact's page is the passage's id, since titles need not differ.
    """
    named = named_facts(records, ids)
    support: dict[str, set[Sentence]] = {}
    for pair in pairs.read_pairs(records, positives, [i for i in ids if i not in named]):
        sentences = spans.overlapping(spans.sentences_of(pair.passage), pair.gold or [])
        of_question = support.setdefault(pair.question.id, set())
        of_question.update(Sentence(pair.passage.id, sentence) for sentence in sentences)
    for question in questions.read_questions(records / "questions.parquet", ids):
        for title, sentence in named.get(question.id, ()):
            support.setdefault(question.id, set()).add(Sentence(passage_id(title), sentence))
        if question.answers:
            yield GoldAnswer(question.id, question.answers[0], frozenset(support.get(question.id, ())))


def reading_values(
    questions: Sequence[Question], answers: Mapping[tuple[str, int], str], top_k: Sequence[int]
) -> dict[str, Values]:
    """`em_k` and `f1_k` of every question; `answers` by question id and k."""
    everyone = np.arange(len(questions))
    values = {}
    for name, measure in (("em", exact_match), ("f1", f1)):
        for k in top_k:
            found = [measure(answers.get((q.id, k), ""), q.answers, q.answer_kind) for q in questions]
            values[f"{name}_{k}"] = Values(everyone, np.array(found, dtype=np.float64))
    return values


def path_reading_values(
    questions: Sequence[Question], right: Iterable[GoldAnswer], answers: Mapping[str, Prediction]
) -> dict[str, Values]:
    """Every metric, over the questions with hops; a fact's page is its passage's id."""
    hops = np.array([i for i, question in enumerate(questions) if question.hops], dtype=np.int64)
    if not len(hops):
        raise ValueError("no question of sets.evaluate has hops; read paths for a set of multi-hop questions")
    scored = scores(right, answers)
    rows = [scored.get(questions[i].id, dict.fromkeys(METRICS, 0.0)) for i in hops]
    return {metric: Values(hops, np.array([row[metric] for row in rows])) for metric in METRICS}


def _counts(questions: Sequence[Question], answered: Collection[str]) -> dict[str, Values]:
    without = np.array([i for i, question in enumerate(questions) if not question.answers], dtype=np.int64)
    read = np.array([question.id in answered for question in questions], dtype=np.float64)
    return {"read": Values(np.arange(len(questions)), read), "no_answers": Values(without, np.ones(len(without)))}
