"""Distractors of the form `written`: a text close to the positive, without its evidence and without an answer.

Asked for are those of the questions that are learnt from, of the strategies that the section `written` names. A text is
made from the positive without the evidence and what else holds an answer; the first that fits is kept. Why there is
none, beside what keeps a positive from being cut (`forms.cut`), is what was wrong with the last one:
no_answer       the question has no answer that a text can be told to hold, as yes and no are none
no_text         nothing to start from, or nobody wrote any
cut_off, empty, positive, holds_answer  (`generators.unfit`)
holds_evidence  a sentence of the evidence stands in it, word for word
length          shorter or longer than `written.length` lets it be
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from eadpr.runtime import parallel
from eadpr.runtime.progress import progress
from eadpr.storage import tables
from eadpr.storage.records import Evidence, Fold, Span
from eadpr.supervision.distractors import Rows, Write
from eadpr.supervision.examples import ROLES
from eadpr.supervision.forms import KEPT, NO_ANSWER, Attempt, cut
from eadpr.supervision.pairs import Pair
from eadpr.supervision.spans import sentences
from eadpr.writers.choose import Generate, original, plain, unfit, writer
from eadpr.writers.config import Writer, Written
from eadpr.writers.endpoint import AT_ONCE

NO_TEXT = "no_text"


def writing(settings: Written, by: Writer, seed: int, *, folds: Path, sources: Path, raw: Path) -> Write:
    """`folds` says what each question is learnt from for; `sources` and `raw` hold the collection's files."""
    make = writer(by, seed, sources=sources, raw=raw)
    learnt = frozenset(fold.question_id for fold in tables.rows(folds, Fold) if fold.role in ROLES)
    own = partial(_with_written, settings=settings, make=make, learnt=learnt)

    def write(found: Iterator[Rows]) -> Iterator[tuple[Rows, Mapping[str, Attempt]]]:
        with progress(f"distractors by {by.by}", None, "positives") as advance:
            for one in parallel.ahead(own, found, threads=AT_ONCE if by.by == "endpoint" else 0):
                advance(1)
                yield one

    return write


def _with_written(
    rows: Rows, settings: Written, make: Generate, learnt: Collection[str]
) -> tuple[Rows, Mapping[str, Attempt]]:
    pair, found = rows
    asked = [row for row in found if row.strategy in settings.strategies and pair.question.id in learnt]
    return rows, {row.strategy: written(pair, row, settings, make) for row in asked}


def written(pair: Pair, evidence: Evidence, settings: Written, make: Generate) -> Attempt:
    attempt = cut(pair, evidence, may_hold_answer=True)
    if attempt.distractor is None:
        return attempt
    if not pair.question.matchable:
        return Attempt(NO_ANSWER, None)
    removed, reason = attempt.distractor.removed, NO_TEXT
    start = original(pair, removed)
    for number in range(settings.candidates):
        for _, text in make(start, range(number, number + 1)):  # of given ones there may be no more
            reason = _wrong(pair, removed, text, settings.length)
            if reason is None:
                return Attempt(KEPT, attempt.distractor._replace(form="written", text=text))
    return Attempt(reason, None)


def _wrong(pair: Pair, removed: Sequence[Span], text: str | None, length: Sequence[float]) -> str | None:
    if reason := unfit(pair.question, pair.passage, text):
        return reason
    pieces = (pair.passage.text[start:end] for start, end in removed)
    if any(plain(piece[start:end]) in plain(text) for piece in pieces for start, end in sentences(piece)):
        return "holds_evidence"
    low, high = (bound * len(pair.passage.text) for bound in length)
    return None if low <= len(text) <= high else "length"
