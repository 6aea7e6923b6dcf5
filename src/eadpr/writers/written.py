"""Distractors of the form `written`: a text close to the positive, without its evidence and without an answer.

They are written for the training questions and the strategies that the section `written` names. A text is made from the
positive without its evidence and without further sentences that hold an answer; the first that fits is kept. If none
fits, the reason is one of `forms.cut`'s, or the last text's defect:
no_answer       the question's answer cannot be found in a text, as yes and no cannot
no_text         nothing remains to start from, or the generator has no text
cut_off, empty, positive, holds_answer  (`original.find_defect`)
holds_evidence  a sentence of the evidence stands in it, word for word
length          more than twice as long as the positive, or less than half
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from eadpr.runtime import parallel
from eadpr.runtime.progress import progress
from eadpr.storage import tables
from eadpr.storage.records import Evidence, Fold, Span
from eadpr.supervision.distractors import Rows, Write
from eadpr.supervision.examples import ROLES
from eadpr.supervision.forms import KEPT, NO_ANSWER, Attempt, cut
from eadpr.supervision.pairs import Pair
from eadpr.text.spans import sentences, similar
from eadpr.writers.choose import make_generator
from eadpr.writers.config import Writer, Written
from eadpr.writers.endpoint import AT_ONCE
from eadpr.writers.original import Generate, find_defect, make_original, squash_spaces

NO_TEXT = "no_text"


def write_by(writer: Writer, settings: Written, seed: int, *, folds: Path, sources: Path, raw: Path) -> Write:
    """Return what adds written distractors to the rows of evidence of each pair.

    `folds` is the table of the questions' roles; `sources` and `raw` are the folders of the collection's files.
    """
    generate = make_generator(writer, seed, sources=sources, raw=raw)
    training = frozenset(fold.question_id for fold in tables.rows(folds, Fold) if fold.role in ROLES)

    def write_pair(rows: Rows) -> tuple[Rows, Mapping[str, Attempt]]:
        pair, evidence = rows
        strategies = settings.strategies if pair.question.id in training else ()
        to_cut = [row for row in evidence if row.strategy in strategies]
        return rows, {row.strategy: write_distractor(pair, row, settings, generate) for row in to_cut}

    def write(pairs: Iterator[Rows]) -> Iterator[tuple[Rows, Mapping[str, Attempt]]]:
        with progress(f"distractors by {writer.by}", None, "positives") as advance:
            for result in parallel.ahead(write_pair, pairs, threads=AT_ONCE if writer.by == "endpoint" else 0):
                advance(1)
                yield result

    return write


def write_distractor(pair: Pair, evidence: Evidence, settings: Written, generate: Generate) -> Attempt:
    """Return the first generated text that fits as a distractor, or why none does."""
    attempt = cut(pair, evidence, may_hold_answer=True)
    if attempt.distractor is None:
        return attempt
    if not pair.question.matchable:
        return Attempt(NO_ANSWER, None)
    removed, reason = attempt.distractor.removed, NO_TEXT
    original = make_original(pair, removed)
    for number in range(settings.candidates):
        for _, text in generate(original, range(number, number + 1)):  # none once `given` has no more
            reason = _find_defect(pair, removed, text)
            if reason is None:
                return Attempt(KEPT, attempt.distractor._replace(form="written", text=text))
    return Attempt(reason, None)


def _find_defect(pair: Pair, removed: Sequence[Span], text: str | None) -> str | None:
    if reason := find_defect(pair.question, pair.passage, text):
        return reason
    for start, end in removed:
        piece = pair.passage.text[start:end]
        for first, last in sentences(piece):
            if squash_spaces(piece[first:last]) in squash_spaces(text):
                return "holds_evidence"
    return None if similar(len(text), len(pair.passage.text)) else "length"
