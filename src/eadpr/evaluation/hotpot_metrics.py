"""HotpotQA's official metrics (Yang et al., 2018; hotpot_evaluate_v1): answer, supporting facts, and both together.

A supporting fact (`Fact`) counts sentences from 0. Names of metrics are those of the official script.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from eadpr.reading_multihop.records import Fact
from eadpr.text import exact_match_normal

CLOSED = ("yes", "no", "noanswer")  # answers of which a part is worth nothing
PREFIXES = ("", "sp_", "joint_")


class Gold(NamedTuple):
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
    golds: Iterable[Gold], answers: Mapping[str, str], support: Mapping[str, Collection[Fact]]
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


def means(found: Mapping[str, Mapping[str, float]], ids: Iterable[str]) -> dict[str, float]:
    """Over the questions `ids`, each of them one of `found`, and their number `n`; only that where there are none."""
    rows = [found[question_id] for question_id in ids]
    names = rows[0] if rows else ()
    return {"n": len(rows)} | {name: sum(row[name] for row in rows) / len(rows) for name in names}
