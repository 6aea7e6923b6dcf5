"""The stage `evaluate_reading`: metrics of a reader's answers, for every question, as a table of outcomes.

A reader of passages has `em_5`, `f1_5` and so on, by the number of passages read: exact match and F1 of SQuAD's
evaluation (Rajpurkar et al., 2016), as usual for open-domain questions (Karpukhin et al., 2020, section 6.1). A reader
of paths has HotpotQA's official metrics (Yang et al., 2018; hotpot_evaluate_v1) under their names: `em`, `f1`, `prec`,
`recall` for answers, with `sp_` for supporting facts (`Sentence`, counted from 0), with `joint_` for both; only
questions with hops count. A question without a prediction, or without answers, counts as wrong. `read` is 1 for a
question with a prediction, `no_answers` for one without answers.
"""

import re
import string
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eadpr.corpus.formats.hotpot import passage_id
from eadpr.evaluation.outcomes import Values, load_questions, write
from eadpr.readers.config import Read
from eadpr.readers.predictions import Prediction, Sentence
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.questions import read_questions
from eadpr.storage.records import Origin, Question
from eadpr.supervision import pairs
from eadpr.text import spans
from eadpr.text.answers import nfd, pattern_matches

CLOSED = ("yes", "no", "noanswer")  # no part of these answers counts
PREFIXES = ("", "sp_", "joint_")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def exact_match_normal(answer: str) -> str:
    """Lower-case an answer without ASCII punctuation, articles and extra white space, as SQuAD's exact match does."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(prediction: str, answers: Sequence[str], kind: str = "string") -> bool:
    """Return true if the normal form of the prediction equals an answer's, or a `regex` matches it completely. An empty
    prediction is never right, even if an answer's normal form is empty."""
    if kind == "regex":
        text = nfd(prediction.strip())
        return bool(text) and any(pattern_matches(answers, text, fullmatch=True))
    return bool(prediction.strip()) and exact_match_normal(prediction) in map(exact_match_normal, answers)


def f1(prediction: str, answers: Sequence[str], kind: str = "string") -> float:
    """Return the best F1 of the prediction's and an answer's words in normal form, for a `regex` the exact match."""
    exact = exact_match(prediction, answers, kind)
    if kind == "regex" or exact:
        return float(exact)
    words = exact_match_normal(prediction).split()
    return max((_overlap(0.0, words, exact_match_normal(answer).split()).f1 for answer in answers), default=0.0)


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
    """Compare the answers' words in SQuAD's normal form; different answers of yes, no or noanswer share nothing."""
    predicted, right = exact_match_normal(answer), exact_match_normal(gold)
    if predicted != right and (predicted in CLOSED or right in CLOSED):
        return WRONG
    return _overlap(float(predicted == right), predicted.split(), right.split())


def support_scores(support: Collection[Sentence], gold: Collection[Sentence]) -> Scores:
    """Compare the sets; as in the official script, two empty sets are an exact match with an F1 of 0."""
    return _overlap(float({*support} == {*gold}), {*support}, {*gold})


def _overlap(em: float, predicted: Collection, right: Collection) -> Scores:
    common = (Counter(predicted) & Counter(right)).total()
    return _scores(em, common / len(predicted) if predicted else 0.0, common / len(right) if right else 0.0)


def _scores(em: float, precision: float, recall: float) -> Scores:
    total = precision + recall
    return Scores(em, 2 * precision * recall / total if total else 0.0, precision, recall)


def score_predictions(
    golds: Iterable[GoldAnswer], predictions: Mapping[str, Prediction]
) -> dict[str, dict[str, float]]:
    """Return every metric of every question; 0 if its prediction is missing."""
    scores = {}
    for gold in golds:
        answer = facts = WRONG
        if prediction := predictions.get(gold.question_id):
            answer = answer_scores(prediction.answer, gold.answer)
            facts = support_scores(prediction.support, gold.support)
        joint = _scores(answer.em * facts.em, answer.prec * facts.prec, answer.recall * facts.recall)
        scores[gold.question_id] = dict(zip(METRICS, (*answer, *facts, *joint), strict=True))
    return scores


def evaluate_reading(
    *, records: Path, positives: Path, reading: Path, outcomes: Path, of_paths: bool, settings: Read, sets: Sets
) -> dict[str, int]:
    """Write the table `outcomes`.

    `reading` is the folder of predictions.parquet. Return the number of questions per set, for a reader of paths only
    questions with hops; raises ValueError if there are none.
    """
    evaluated = load_questions(records, sets.evaluate)
    questions = list(evaluated.records(records))
    rows = list(tables.rows(reading / "predictions.parquet", Prediction))
    if of_paths:
        ids = [question.id for question in questions if question.hops]
        golds = read_golds(records, positives / "positives.parquet", ids)
        values = path_reading_values(questions, golds, {row.question_id: row for row in rows})
    else:
        predictions = {(row.question_id, row.top_k): row.answer for row in rows}
        values = reading_values(questions, predictions, settings.top_k)
    write(outcomes, evaluated, values | _counts(questions, {row.question_id for row in rows}))
    counted = next(iter(values.values())).rows
    return {name: int(np.isin(counted, members).sum()) for name, members in evaluated.members.items()}


def read_golds(records: Path, positives: Path, ids: Collection[str]) -> Iterator[GoldAnswer]:
    """Yield the gold answers of the questions that have an answer.

    Supporting facts are those in HotpotQA's file, also sentences that the corpus lacks, as the official script counts
    them; for other questions they are the sentences with gold evidence. Pages go by id, since titles may be equal.
    """
    id_set, origins = frozenset(ids), tables.rows(records / "origins.parquet", Origin)
    facts = {origin.question_id: origin.facts for origin in origins if origin.question_id in id_set and origin.facts}
    support: defaultdict[str, set[Sentence]] = defaultdict(set)
    for pair in pairs.read_pairs(records, positives, [i for i in ids if i not in facts]):
        sentences = spans.overlapping(spans.sentences_of(pair.passage), pair.gold or [])
        support[pair.question.id].update(Sentence(pair.passage.id, sentence) for sentence in sentences)
    for question in read_questions(records / "questions.parquet", ids):
        for title, sentence in facts.get(question.id, ()):
            support[question.id].add(Sentence(passage_id(title), sentence))
        if question.answers:
            yield GoldAnswer(question.id, question.answers[0], frozenset(support[question.id]))


def reading_values(
    questions: Sequence[Question], answers: Mapping[tuple[str, int], str], top_k: Sequence[int]
) -> dict[str, Values]:
    """Return `em_k` and `f1_k` of every question; `answers` are by question id and k."""
    places = np.arange(len(questions))
    values = {}
    for name, metric in (("em", exact_match), ("f1", f1)):
        for k in top_k:
            scores = [metric(answers.get((q.id, k), ""), q.answers, q.answer_kind) for q in questions]
            values[f"{name}_{k}"] = Values(places, np.array(scores, dtype=np.float64))
    return values


def path_reading_values(
    questions: Sequence[Question], golds: Iterable[GoldAnswer], predictions: Mapping[str, Prediction]
) -> dict[str, Values]:
    """Return every metric over the questions with hops, 0 without an answer or a prediction."""
    hops = np.array([i for i, question in enumerate(questions) if question.hops], dtype=np.int64)
    if not len(hops):
        raise ValueError("no question of sets.evaluate has hops; read paths for a set of multi-hop questions")
    scores = score_predictions(golds, predictions)
    rows = [scores.get(questions[i].id, dict.fromkeys(METRICS, 0.0)) for i in hops]
    return {metric: Values(hops, np.array([row[metric] for row in rows])) for metric in METRICS}


def _counts(questions: Sequence[Question], answered: Collection[str]) -> dict[str, Values]:
    without = np.array([i for i, question in enumerate(questions) if not question.answers], dtype=np.int64)
    read = np.array([question.id in answered for question in questions], dtype=np.float64)
    return {"read": Values(np.arange(len(questions)), read), "no_answers": Values(without, np.ones(len(without)))}
