"""Forms of a distractor (the positive without its evidence) and of a placebo (the positive without as much elsewhere).

cut      the piece is removed
filled   each sentence of it is replaced by one of similar length from elsewhere (`fillers`), so that length and order
         tell nothing; only for pieces that are whole sentences

A row of evidence that has no distractor has one of these reasons; with one of the first five it has no form at all:

no_answer         the question has no answer to look for in the passage
no_evidence, no_placebo  the strategy chose nothing
little_left       less than a fifth of the text remains: a heading, or nothing, as of a passage of one span
holds_answer      an answer is still in the text, and the strategy is one of ANSWER_FREE
answer_lost       no answer is left after a placebo is taken out (a pattern may match the words around an answer)
not_sentences     a span to fill is no sentence of the passage
no_filler         a span has no filler
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from eadpr.storage.records import Distractor, Evidence, Passage, Span
from eadpr.supervision.config import PLACEBOS, Form
from eadpr.supervision.fillers import Fillers
from eadpr.supervision.pairs import Pair
from eadpr.text.answers import has_answer
from eadpr.text.spans import segment, stripped, without

# Strategies whose distractors may hold no answer: PiCL's rules. EADPR does not filter.
ANSWER_FREE = ("sentence", "window", "answer")
KEPT, NO_ANSWER, NO_EVIDENCE = "kept", "no_answer", "no_evidence"


class Attempt(NamedTuple):
    """The outcome of a row of evidence in a form: a distractor with its `fillers` and KEPT, or None and the reason."""

    reason: str
    distractor: Distractor | None
    fillers: Sequence[str] = ()


def make_forms(
    pair: Pair, rows: Sequence[Evidence], forms: Sequence[Form], fillers: Fillers | None
) -> Iterator[tuple[Evidence, Form, Attempt]]:
    """Yield each row in each form, in the order of both; `fillers` are needed for `filled` only."""
    filled = fill_all(pair, rows, fillers) if fillers else {}
    attempt = {"cut": lambda row: cut(pair, row), "filled": lambda row: filled[row.strategy]}
    for row in rows:
        for form in forms:
            yield row, form, attempt[form](row)


def fill_all(pair: Pair, rows: Sequence[Evidence], fillers: Fillers) -> dict[str, Attempt]:
    """Return an attempt for each strategy. Evidence may share fillers; placebos get fillers of their own."""
    attempts: dict[str, Attempt] = {}
    used: set[str] = set()
    evidence = [row for row in rows if row.strategy not in PLACEBOS]
    placebos = [row for strategy in PLACEBOS for row in rows if row.strategy == strategy]
    for row in [*evidence, *placebos]:
        attempts[row.strategy] = fill(pair, row, fillers, avoid=used if row.strategy in PLACEBOS else ())
        used.update(attempts[row.strategy].fillers)
    return attempts


def cut(pair: Pair, evidence: Evidence) -> Attempt:
    """Return the passage without the chosen spans, or a reason."""
    return _check_answers(pair, _cut(pair, evidence))


def fill(pair: Pair, evidence: Evidence, fillers: Fillers, *, avoid: Collection[str] = ()) -> Attempt:
    """Return the passage with a filler for each chosen span; fillers differ, and none is among `avoid`."""
    attempt = _cut(pair, evidence)
    if attempt.distractor is None:
        return attempt
    pieces = as_sentences(pair.passage, attempt.distractor.removed)
    if pieces is None:
        return Attempt("not_sentences", None)
    chosen = choose_fillers(pair, pieces, fillers, avoid=avoid)
    if chosen is None:
        return Attempt("no_filler", None)
    text = replace_spans(pair.passage.text, pieces, chosen)
    return _check_answers(pair, Attempt(KEPT, attempt.distractor._replace(form="filled", text=text), chosen))


def choose_fillers(
    pair: Pair, pieces: Sequence[Span], fillers: Fillers, *, first: int = 0, avoid: Collection[str] = ()
) -> list[str] | None:
    """Return a different filler for each sentence, drawn by numbers from `first` on, or None if one has no filler."""
    chosen: list[str] = []
    for number, (start, end) in enumerate(pieces, start=first):
        filler = fillers.sentence(pair, pair.passage.text[start:end], number, {*avoid, *chosen})
        if filler is None:
            return None
        chosen.append(filler)
    return chosen


def as_sentences(passage: Passage, spans: Sequence[Span]) -> list[Span] | None:
    """Return the spans sorted, without white space at their ends, or None if one is no sentence of the passage."""
    sentences = {stripped(passage.text, span) for span in segment(passage)}
    pieces = sorted(stripped(passage.text, span) for span in spans)
    return pieces if sentences.issuperset(pieces) else None


def replace_spans(text: str, spans: Sequence[Span], replacements: Sequence[str]) -> str:
    """Return the text with each of the sorted, disjoint spans replaced."""
    for (start, end), replacement in zip(reversed(spans), reversed(replacements), strict=True):
        text = text[:start] + replacement + text[end:]
    return text


def _cut(pair: Pair, evidence: Evidence) -> Attempt:
    if not evidence.chosen:
        missing = "no_placebo" if evidence.strategy in PLACEBOS else NO_EVIDENCE
        return Attempt(missing if evidence.target else NO_ANSWER, None)
    removed = evidence.chosen_spans
    rest = without(pair.passage.text, removed)
    if not any(character.isalnum() for character in rest) or 5 * len(rest) < len(pair.passage.text):
        return Attempt("little_left", None)
    distractor = Distractor(evidence.question_id, evidence.passage_id, evidence.strategy, 0, "cut", rest, removed)
    return Attempt(KEPT, distractor)


def _check_answers(pair: Pair, attempt: Attempt) -> Attempt:
    distractor = attempt.distractor
    if distractor is None:
        return attempt
    answers, kind = pair.question.answers, pair.question.answer_kind
    present = has_answer(answers, distractor.text, kind)
    if present and distractor.strategy in ANSWER_FREE:
        return Attempt("holds_answer", None)
    if not present and distractor.strategy in PLACEBOS and has_answer(answers, pair.passage.text, kind):
        return Attempt("answer_lost", None)
    return attempt
