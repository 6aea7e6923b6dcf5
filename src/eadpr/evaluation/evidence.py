"""Evidence accuracy: how often the span that a QA model chose covers the answer where the source annotated it.

Sources annotate either where an answer stands (character offsets, as SQuAD) or the supporting sentence (as atlas, whose
later hops aside it holds the answer). A chosen span is right if it covers the annotated answer whole. An annotated span
that holds a whole sentence of the passage is a supporting sentence: there the span must cover an answer within it, or,
where no answer stands in it, overlap it. Outer white space does not count; one right span of the chosen, and one of
several annotated, is enough. Chance is that of as many spans drawn at random, by the same rule.

Counted are pairs of question and positive that have an annotated span and at least two spans to choose from.
"""

from collections.abc import Iterable, Sequence
from math import comb
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from scipy.stats import binomtest

from eadpr.runtime import files
from eadpr.runtime.section import Sets
from eadpr.storage import questions, tables
from eadpr.storage.records import Evidence, Span
from eadpr.supervision.pairs import Pair, read_annotated_pairs
from eadpr.text.answers import answer_spans
from eadpr.text.spans import overlapping, segment, stripped

STRATEGY = "pseudo"
LEFT_OUT = ("without_gold", "without_evidence", "one_span")
PLACES = 6  # decimals in the metrics


class Choice(NamedTuple):
    """The choice for a pair: whether it is right, its share of the passage, and the probability that one of as many
    random spans is right: drawn by length with replacement (`chance`), or uniformly without (`chance_uniform`)."""

    right: bool
    share_of_passage: float
    chance: float
    chance_uniform: float


def judge_spans(pair: Pair, spans: Iterable[Span]) -> list[bool]:
    """Return for each span whether it is right; the pair has annotated spans."""
    text, question = pair.passage.text, pair.question
    answers = [stripped(text, span) for span in answer_spans(question.answers, text, question.answer_kind)]
    sentences = [stripped(text, span) for span in segment(pair.passage)]
    to_cover: list[Span] = []
    to_touch: list[Span] = []
    for gold in (stripped(text, span) for span in pair.gold):
        if not any(_covers(gold, sentence) for sentence in sentences):
            to_cover.append(gold)
        elif inside := [answer for answer in answers if _covers(gold, answer)]:
            to_cover += inside
        else:
            to_touch.append(gold)
    inner = [stripped(text, span) for span in spans]
    return [any(_covers(span, target) for target in to_cover) or bool(overlapping([span], to_touch)) for span in inner]


def _covers(span: Span, target: Span) -> bool:
    return span.start <= target.start and target.end <= span.end


def measure_pair(pair: Pair, evidence: Evidence) -> Choice | str:
    """Measure the choice, or return the reason in `LEFT_OUT` for a pair that is not counted."""
    if not pair.gold:
        return "without_gold"
    if not evidence.chosen:
        return "without_evidence"
    if len(evidence.spans) < 2:
        return "one_span"
    lengths = [span.end - span.start for span in evidence.spans]
    right = judge_spans(pair, [Span(s.start, s.end) for s in evidence.spans])
    wrong, count = right.count(False), len(evidence.chosen)
    missed = sum(n for n, is_right in zip(lengths, right, strict=True) if not is_right) / sum(lengths)
    return Choice(
        right=any(right[i] for i in evidence.chosen),
        share_of_passage=sum(lengths[i] for i in evidence.chosen) / len(pair.passage.text),
        chance=1 - missed**count,
        chance_uniform=1 - comb(wrong, count) / comb(len(right), count),
    )


def summarise(pairs: Sequence[Choice | str]) -> dict[str, float | int]:
    """Return accuracy with Wilson's (1927) 95 % interval and the chance levels; only counts without any choice."""
    choices = [pair for pair in pairs if isinstance(pair, Choice)]
    result: dict[str, float | int] = {"n": len(choices)} | {reason: pairs.count(reason) for reason in LEFT_OUT}
    if not choices:
        return result
    right, *chances = zip(*choices, strict=True)
    accuracy = binomtest(sum(right), len(right))
    low, high = accuracy.proportion_ci(0.95, method="wilson")
    means = dict(zip(Choice._fields[1:], map(fmean, chances), strict=True))
    means |= {"accuracy": accuracy.statistic, "accuracy_low": float(low), "accuracy_high": float(high)}
    return result | {name: round(value, PLACES) for name, value in means.items()}


def evaluate_evidence(
    sets: Sets, *, records: Path, positives: Path, evidence: Path, distractors: Path, out: Path
) -> int:
    """Write the metrics of every set trained on, validated with or evaluated on, of strategy pseudo, with the counts of
    report.json in the folder `distractors`; return the number of pairs counted."""
    dropped = files.read_json(distractors / "report.json")
    names = dict.fromkeys([*sets.learnt, *sets.evaluate])
    members = {name: set(questions.read_question_ids(records / "question_sets.parquet", [name])) for name in names}
    rows = [row for row in tables.rows(evidence, Evidence) if row.strategy == STRATEGY]
    question_ids = set().union(*members.values())
    pairs = read_annotated_pairs(records, positives / "positives.parquet", evidence, question_ids) if rows else ()
    choices = [(pair.question.id, measure_pair(pair, row)) for pair, row in zip(pairs, rows, strict=True)]
    result, count = {}, 0
    for name, ids in members.items():
        result[name] = {"distractors": dropped.get(name, {})}
        if choices_of_set := [choice for question_id, choice in choices if question_id in ids]:
            result[name][STRATEGY] = summarise(choices_of_set)
            count += result[name][STRATEGY]["n"]
    files.write_json(out, result)
    return count
