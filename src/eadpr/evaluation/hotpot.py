"""HotpotQA's official metrics (Yang et al., 2018; hotpot_evaluate_v1): answer, supporting facts, and both together,
against what the records say is right.

A supporting fact (`Fact`) counts sentences from 0. Names of metrics are those of the official script.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from eadpr import questions
from eadpr.corpus.hotpot import passage_id
from eadpr.reading.predictions import Fact, named_facts
from eadpr.supervision import pairs, spans
from eadpr.text import exact_match_normal

CLOSED = ("yes", "no", "noanswer")  # answers of which a part is worth nothing
PREFIXES = ("", "sp_", "joint_")


class GoldAnswer(NamedTuple):
    """`type` is bridge or comparison, None where the source does not say."""

    question_id: str
    type: str | None
    answer: str
    support: frozenset[Fact]


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
    em = float(said == right)
    if not em and (said in CLOSED or right in CLOSED):
        return WRONG
    same = (Counter(said.split()) & Counter(right.split())).total()
    if not same:
        return WRONG._replace(em=em)
    return _scores(em, same / len(said.split()), same / len(right.split()))


def support_scores(support: Collection[Fact], gold: Collection[Fact]) -> Scores:
    """Of the sets; nothing predicted where there is nothing to find is exact, with an F1 of 0, as the script has it."""
    found, right = set(support), set(gold)
    same = len(found & right)
    precision, recall = (same / len(facts) if facts else 0.0 for facts in (found, right))
    return _scores(float(found == right), precision, recall)


def joint_scores(answer: Scores, support: Scores) -> Scores:
    return _scores(answer.em * support.em, answer.prec * support.prec, answer.recall * support.recall)


def _scores(em: float, precision: float, recall: float) -> Scores:
    total = precision + recall
    return Scores(em, 2 * precision * recall / total if total else 0.0, precision, recall)


def scores(
    golds: Iterable[GoldAnswer], answers: Mapping[str, str], support: Mapping[str, Collection[Fact]]
) -> dict[str, dict[str, float]]:
    """Every metric of every question; 0 where its prediction is missing, joint ones where either is."""
    found = {}
    for gold in golds:
        answered, supported = gold.question_id in answers, gold.question_id in support
        answer = answer_scores(answers[gold.question_id], gold.answer) if answered else WRONG
        facts = support_scores(support[gold.question_id], gold.support) if supported else WRONG
        parts = zip(PREFIXES, (answer, facts, joint_scores(answer, facts)), strict=True)
        found[gold.question_id] = {f"{prefix}{name}": v for prefix, part in parts for name, v in part._asdict().items()}
    return found


def golds(records: Path, positives: Path, ids: Collection[str]) -> Iterator[GoldAnswer]:
    """Of the questions with an answer. Their supporting facts are those that HotpotQA's file names, with sentences that
    the corpus lacks, as the official script counts them; of other questions the sentences that hold gold evidence. A
    fact's page is the passage's id, since titles need not differ.
    """
    named = named_facts(records, ids)
    support: dict[str, set[Fact]] = {}
    for pair in pairs.pairs(records, positives, [i for i in ids if i not in named]):
        sentences = spans.overlapping(spans.sentences_of(pair.passage), pair.gold or [])
        support.setdefault(pair.question.id, set()).update((pair.passage.id, sentence) for sentence in sentences)
    for question in questions.selected(records / "questions.parquet", ids):
        for title, sentence in named.get(question.id, ()):
            support.setdefault(question.id, set()).add((passage_id(title), sentence))
        if question.answers:
            yield GoldAnswer(question.id, question.type, question.answers[0], frozenset(support.get(question.id, ())))
