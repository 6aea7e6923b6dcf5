"""Evidence accuracy: how often the span a QA model chose covers the answer where the source annotated it (design 7).

Sources annotate either where an answer stands (character offsets, as SQuAD) or the supporting sentence (as atlas, whose
later hops aside it holds the answer). A chosen span is right if it covers the annotated answer whole. An annotated span
that holds a whole sentence of the passage is a supporting sentence: there the span must cover an answer within it, or,
where no answer stands in it, overlap it. Outer white space does not count; one right span of the chosen, and one of
several annotated, is enough. Chance is by the same rule.

Counted are pairs of question and positive that have an annotated span and at least two spans to choose from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from statistics import fmean

from eadpr import files, questions, tables
from eadpr.config import Sets
from eadpr.evaluation.statistics import wilson
from eadpr.records import Evidence, Span
from eadpr.supervision.pairs import Pair, pairs
from eadpr.supervision.spans import overlapping, segment
from eadpr.text import answer_spans

STRATEGY = "pseudo"
PLACES = 6  # decimals in the metrics


@dataclass
class Tally:
    """What is counted of one question set; lists have one entry per counted pair."""

    hits: list[bool] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)
    uniform: list[float] = field(default_factory=list)
    without_gold: int = 0
    without_evidence: int = 0
    one_span: int = 0


def rights(pair: Pair, found: Iterable[Span]) -> list[bool]:
    """Of each span whether it is right; the pair has annotated spans."""
    text, question = pair.passage.text, pair.question
    answers = [_stripped(text, span) for span in answer_spans(question.answers, text, question.answer_kind)]
    sentences = [_stripped(text, span) for span in segment(pair.passage, "sentence")]
    to_cover: list[Span] = []
    to_touch: list[Span] = []
    for gold in (_stripped(text, span) for span in pair.gold):
        if not any(_covers(gold, sentence) for sentence in sentences):
            to_cover.append(gold)
        elif held := [answer for answer in answers if _covers(gold, answer)]:
            to_cover += held
        else:
            to_touch.append(gold)
    return [
        any(_covers(span, other) for other in to_cover) or bool(overlapping([span], to_touch))
        for span in (_stripped(text, span) for span in found)
    ]


def _covers(span: Span, other: Span) -> bool:
    return span.start <= other.start and other.end <= span.end


def _stripped(text: str, span: Span) -> Span:
    piece = text[span.start : span.end]
    start = span.start + len(piece) - len(piece.lstrip())
    return Span(start, start + len(piece.strip()))


def add(tally: Tally, pair: Pair, evidence: Evidence) -> None:
    """Count one pair. Chance is that of a span drawn by its length; `uniform` that of any span alike."""
    if not pair.gold:
        tally.without_gold += 1
    elif not evidence.chosen:
        tally.without_evidence += 1
    elif len(evidence.spans) < 2:
        tally.one_span += 1
    else:
        lengths = [span.end - span.start for span in evidence.spans]
        right = rights(pair, [Span(s.start, s.end) for s in evidence.spans])
        tally.hits.append(any(right[i] for i in evidence.chosen))
        tally.shares.append(sum(lengths[i] for i in evidence.chosen) / len(pair.passage.text))
        tally.chances.append(sum(n for n, is_right in zip(lengths, right, strict=True) if is_right) / sum(lengths))
        tally.uniform.append(sum(right) / len(right))


def metrics(tally: Tally) -> dict[str, float | int]:
    """Accuracy with Wilson's 95 % interval and what to hold it against; only counts where there is no pair."""
    found = {
        "n": len(tally.hits),
        "without_gold": tally.without_gold,
        "without_evidence": tally.without_evidence,
        "one_span": tally.one_span,
    }
    if not tally.hits:
        return found
    accuracy = wilson(sum(tally.hits), len(tally.hits))
    return found | {
        "accuracy": round(accuracy.estimate, PLACES),
        "accuracy_low": round(accuracy.low, PLACES),
        "accuracy_high": round(accuracy.high, PLACES),
        "share_of_passage": round(fmean(tally.shares), PLACES),
        "chance": round(fmean(tally.chances), PLACES),
        "chance_uniform": round(fmean(tally.uniform), PLACES),
    }


def evaluate_evidence(
    sets: Sets, *, records: Path, positives: Path, evidence: Path, distractors: Path, out: Path
) -> int:
    """Write the metrics of every set trained on or evaluated on; returns the number of pairs counted.

    Beside them stands what became of the distractors, from report.json in the folder `distractors`; without rows of
    strategy pseudo nothing else is written.
    """
    dropped = json.loads((distractors / "report.json").read_text(encoding="utf-8"))
    members = {
        name: set(questions.select(records / "question_sets.parquet", [name]))
        for name in dict.fromkeys([*sets.train, *sets.evaluate])
    }
    tallies = {name: Tally() for name in members}
    for pair, row in _pseudo(records, positives / "positives.parquet", evidence, set().union(*members.values())):
        for name, tally in tallies.items():
            if pair.question.id in members[name]:
                add(tally, pair, row)
    result = {}
    for name, tally in tallies.items():
        result[name] = {"distractors": {strategy: of[name] for strategy, of in dropped.items() if name in of}}
        if tally != Tally():
            result[name][STRATEGY] = metrics(tally)
    files.write_json(out, result)
    return sum(len(tally.hits) for tally in tallies.values())


def _pseudo(records: Path, positives: Path, evidence: Path, ids: set[str]) -> Iterator[tuple[Pair, Evidence]]:
    rows = [row for row in tables.rows(evidence, Evidence) if row.strategy == STRATEGY]
    asked = pairs(records, positives, ids) if rows else iter(())
    for pair, row in zip_longest(asked, rows):
        if not pair or not row or (pair.question.id, pair.passage.id) != (row.question_id, row.passage_id):
            raise ValueError(
                f"{evidence} does not belong to {positives} and the configured sets; run `dvc repro evidence`"
            )
        yield pair, row
