"""Evidence accuracy: how often the span a QA model chose covers the answer where the source annotated it (design 7).

Sources annotate either where an answer stands (character offsets, as SQuAD) or the supporting sentence (as atlas, whose
later hops aside it holds the answer). A chosen span is right if it covers the annotated answer whole. An annotated span
that holds a whole sentence of the passage is a supporting sentence: there the span must cover an answer within it, or,
where no answer stands in it, overlap it. Outer white space does not count; one right span of the chosen, and one of
several annotated, is enough. Chance is that of as many spans drawn at random, by the same rule.

Counted are pairs of question and positive that have an annotated span and at least two spans to choose from.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
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
from eadpr.supervision.spans import overlapping, segment, stripped
from eadpr.text.answers import answer_spans

STRATEGY = "pseudo"
LEFT_OUT = ("without_gold", "without_evidence", "one_span")
PLACES = 6  # decimals in the metrics


class Choice(NamedTuple):
    """What was chosen of a pair: whether it is right, its share of the passage, and how often one of as many spans is
    right that are drawn by length, put back each time (`chance`), or all alike, not put back (`chance_uniform`)."""

    right: bool
    share_of_passage: float
    chance: float
    chance_uniform: float


def rights(pair: Pair, found: Iterable[Span]) -> list[bool]:
    """Of each span whether it is right; the pair has annotated spans."""
    text, question = pair.passage.text, pair.question
    answers = [stripped(text, span) for span in answer_spans(question.answers, text, question.answer_kind)]
    sentences = [stripped(text, span) for span in segment(pair.passage, "sentence")]
    to_cover: list[Span] = []
    to_touch: list[Span] = []
    for gold in (stripped(text, span) for span in pair.gold):
        if not any(_covers(gold, sentence) for sentence in sentences):
            to_cover.append(gold)
        elif held := [answer for answer in answers if _covers(gold, answer)]:
            to_cover += held
        else:
            to_touch.append(gold)
    return [
        any(_covers(span, other) for other in to_cover) or bool(overlapping([span], to_touch))
        for span in (stripped(text, span) for span in found)
    ]


def _covers(span: Span, other: Span) -> bool:
    return span.start <= other.start and other.end <= span.end


def measured(pair: Pair, evidence: Evidence) -> Choice | str:
    """One of `LEFT_OUT` where the pair is not counted."""
    if not pair.gold:
        return "without_gold"
    if not evidence.chosen:
        return "without_evidence"
    if len(evidence.spans) < 2:
        return "one_span"
    lengths = [span.end - span.start for span in evidence.spans]
    right = rights(pair, [Span(s.start, s.end) for s in evidence.spans])
    wrong, drawn = right.count(False), len(evidence.chosen)
    missed = sum(n for n, is_right in zip(lengths, right, strict=True) if not is_right) / sum(lengths)
    return Choice(
        right=any(right[i] for i in evidence.chosen),
        share_of_passage=sum(lengths[i] for i in evidence.chosen) / len(pair.passage.text),
        chance=1 - missed**drawn,
        chance_uniform=1 - comb(wrong, drawn) / comb(len(right), drawn),
    )


def metrics(found: Sequence[Choice | str]) -> dict[str, float | int]:
    """Accuracy with Wilson's (1927) 95 % interval and what to hold it against; only counts where there is no pair."""
    choices = [one for one in found if isinstance(one, Choice)]
    result: dict[str, float | int] = {"n": len(choices)} | {reason: found.count(reason) for reason in LEFT_OUT}
    if not choices:
        return result
    right, *others = zip(*choices, strict=True)
    accuracy = binomtest(sum(right), len(right))
    low, high = accuracy.proportion_ci(0.95, method="wilson")
    means = dict(zip(Choice._fields[1:], map(fmean, others), strict=True))
    means |= {"accuracy": accuracy.statistic, "accuracy_low": float(low), "accuracy_high": float(high)}
    return result | {name: round(value, PLACES) for name, value in means.items()}


def evaluate_evidence(
    sets: Sets, *, records: Path, positives: Path, evidence: Path, distractors: Path, out: Path
) -> int:
    """Write the metrics of every set trained on, validated with or evaluated on; returns the number of pairs counted.

    Beside them stands what became of the distractors, from report.json in the folder `distractors`; without rows of
    strategy pseudo nothing else is written.
    """
    dropped = files.read_json(distractors / "report.json")
    members = {
        name: set(questions.read_question_ids(records / "question_sets.parquet", [name]))
        for name in dict.fromkeys([*sets.learnt, *sets.evaluate])
    }
    asked = _pseudo(records, positives / "positives.parquet", evidence, set().union(*members.values()))
    found = [(pair.question.id, measured(pair, row)) for pair, row in asked]
    result, count = {}, 0
    for name, ids in members.items():
        result[name] = {"distractors": dropped.get(name, {})}
        if of_set := [one for question_id, one in found if question_id in ids]:
            result[name][STRATEGY] = metrics(of_set)
            count += result[name][STRATEGY]["n"]
    files.write_json(out, result)
    return count


def _pseudo(records: Path, positives: Path, evidence: Path, ids: set[str]) -> Iterator[tuple[Pair, Evidence]]:
    rows = [row for row in tables.rows(evidence, Evidence) if row.strategy == STRATEGY]
    asked = read_annotated_pairs(records, positives, evidence, ids) if rows else ()
    for pair, row in zip_longest(asked, rows):
        if not pair or not row or (pair.question.id, pair.passage.id) != (row.question_id, row.passage_id):
            raise ValueError(
                f"{evidence} does not belong to {positives} and the configured sets; run `dvc repro evidence`"
            )
        yield pair, row
