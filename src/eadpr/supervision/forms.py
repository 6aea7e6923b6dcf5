"""Forms of a distractor (the positive without its evidence) and of a placebo (the positive without as much elsewhere).

cut      the piece is removed
filled   each sentence of it is replaced by one of similar length from elsewhere (`fillers`), so that length and order
         tell nothing; only for pieces that are whole sentences
swapped  the answer is replaced everywhere by another question's (`swaps`); not for placebos
written  a text that a language model wrote; not for placebos
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from eadpr.storage.records import Distractor, Evidence, Passage, Span
from eadpr.supervision.config import PLACEBOS, Distractors, Form
from eadpr.supervision.fillers import Fillers
from eadpr.supervision.pairs import Pair
from eadpr.supervision.spans import segment, stripped, without
from eadpr.supervision.swaps import Swaps, swap_answers
from eadpr.text.answers import has_answer

KEPT = "kept"
NO_ANSWER, NO_EVIDENCE, NO_PLACEBO, UNREADABLE = "no_answer", "no_evidence", "no_placebo", "unreadable_reply"
NOTHING_LEFT, UNCHANGED, HOLDS_ANSWER, ANSWER_LOST = "nothing_left", "unchanged", "holds_answer", "answer_lost"
NOT_SENTENCES, NO_FILLER, NO_SWAP = "not_sentences", "no_filler", "no_swap"


class Attempt(NamedTuple):
    """The outcome of one row of evidence in one form: a distractor with its `fillers` and the reason KEPT, or None with
    the reason why."""

    reason: str
    distractor: Distractor | None
    fillers: Sequence[str] = ()


class Swap(NamedTuple):
    """A passage with another answer; `replaced` are the places of its answers before."""

    text: str
    replaced: list[Span]


class Forms:
    """Makes the forms that the settings name; `fillers` and `swaps` are needed for `filled` and `swapped` only."""

    def __init__(self, settings: Distractors, fillers: Fillers | None, swaps: Swaps | None) -> None:
        self._settings, self._fillers, self._swaps = settings, fillers, swaps

    def attempts(
        self, pair: Pair, rows: Sequence[Evidence], written: Mapping[str, Attempt]
    ) -> Iterator[tuple[Evidence, Form, Attempt]]:
        """Yield each row in each form, in the order of both; `written` are the attempts of that form by strategy."""
        swap = self._swap_answers(pair)
        filled = self._fill(pair, rows) if self._fillers else {}
        for row in rows:
            for form in self._settings.forms:
                if form == "cut":
                    yield row, form, cut(pair, row, may_hold_answer=self._may_hold_answer(row))
                elif form == "filled":
                    yield row, form, filled[row.strategy]
                elif form == "written" and row.strategy in written:
                    yield row, form, written[row.strategy]
                elif form == "swapped" and row.strategy not in PLACEBOS:
                    yield row, form, apply_swap(pair, row, swap)

    def _swap_answers(self, pair: Pair) -> Swap | None:
        answer = self._swaps.draw_answer(pair, 0) if self._swaps else None
        if answer is None or not pair.answer_spans:
            return None
        return Swap(swap_answers(pair, answer), pair.answer_spans)

    def _fill(self, pair: Pair, rows: Sequence[Evidence]) -> dict[str, Attempt]:
        """Return an attempt for each strategy. Evidence may share fillers; placebos get fillers of their own."""
        attempts: dict[str, Attempt] = {}
        used: set[str] = set()
        evidence = [row for row in rows if row.strategy not in PLACEBOS]
        placebos = [row for strategy in PLACEBOS for row in rows if row.strategy == strategy]
        for row in [*evidence, *placebos]:
            avoid = used if row.strategy in PLACEBOS else ()
            may_hold_answer = self._may_hold_answer(row)
            attempt = fill(pair, row, self._fillers, avoid=avoid, may_hold_answer=may_hold_answer)
            attempts[row.strategy] = attempt
            used.update(attempt.fillers)
        return attempts

    def _may_hold_answer(self, row: Evidence) -> bool:
        return self._settings.may_hold_answer.get(row.strategy, True)


def cut(pair: Pair, evidence: Evidence, *, may_hold_answer: bool) -> Attempt:
    """Return the passage without the chosen spans, or a reason:

    no_answer         the question has no answer to look for in the passage
    no_evidence, no_placebo  the strategy chose nothing
    unreadable_reply  a language model was asked for the evidence, and no reply could be read
    nothing_left      no letter or digit remains, as of a passage of one span
    unchanged         only white space was removed
    holds_answer      an answer is still in the text, and the strategy does not allow that
    answer_lost       no answer is left after cutting a placebo (a pattern may match the words around an answer)

    A row with any but the last two reasons has no other form either.
    """
    return _check_answers(pair, _cut(pair, evidence), may_hold_answer)


def fill(
    pair: Pair, evidence: Evidence, fillers: Fillers, *, avoid: Collection[str] = (), may_hold_answer: bool
) -> Attempt:
    """Return the passage with a filler for each chosen span; fillers differ, and none is among `avoid`. Further
    reasons: not_sentences, a span is no sentence of the passage; no_filler, a span has no filler."""
    attempt = _cut(pair, evidence)
    if attempt.distractor is None:
        return attempt
    pieces = as_sentences(pair.passage, attempt.distractor.removed)
    if pieces is None:
        return Attempt(NOT_SENTENCES, None)
    chosen = choose_fillers(pair, pieces, fillers, avoid=avoid)
    if chosen is None:
        return Attempt(NO_FILLER, None)
    text = replace_spans(pair.passage.text, pieces, chosen)
    attempt = Attempt(KEPT, attempt.distractor._replace(form="filled", text=text), chosen)
    return _check_answers(pair, attempt, may_hold_answer)


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


def apply_swap(pair: Pair, evidence: Evidence, swap: Swap | None) -> Attempt:
    """Return the passage with another answer, whatever the evidence is; no answer of the question may be left. Further
    reason: no_swap, there is no other answer, or no answer in the passage."""
    attempt = _cut(pair, evidence)
    if attempt.distractor is None:
        return attempt
    if swap is None:
        return Attempt(NO_SWAP, None)
    distractor = attempt.distractor._replace(form="swapped", text=swap.text, removed=swap.replaced)
    return _check_answers(pair, Attempt(KEPT, distractor), may_hold_answer=False)


def as_sentences(passage: Passage, spans: Sequence[Span]) -> list[Span] | None:
    """Return the spans sorted, without white space at their ends, or None if one is no sentence of the passage."""
    sentences = {stripped(passage.text, span) for span in segment(passage, "sentence")}
    pieces = sorted(stripped(passage.text, span) for span in spans)
    return pieces if sentences.issuperset(pieces) else None


def replace_spans(text: str, spans: Sequence[Span], replacements: Sequence[str]) -> str:
    """Return the text with each of the sorted, disjoint spans replaced."""
    position, parts = 0, []
    for (start, end), replacement in zip(spans, replacements, strict=True):
        parts += [text[position:start], replacement]
        position = end
    return "".join([*parts, text[position:]])


def _cut(pair: Pair, evidence: Evidence) -> Attempt:
    text, removed = pair.passage.text, evidence.chosen_spans
    if not evidence.chosen:
        if not evidence.target:
            return Attempt(NO_ANSWER, None)
        if evidence.strategy in PLACEBOS:
            return Attempt(NO_PLACEBO, None)
        return Attempt(UNREADABLE if evidence.strategy == "pseudo" and evidence.spans else NO_EVIDENCE, None)
    rest = without(text, removed)
    if not any(character.isalnum() for character in rest):
        return Attempt(NOTHING_LEFT, None)
    if rest.split() == text.split() and not any(text[start:end].strip() for start, end in removed):
        return Attempt(UNCHANGED, None)
    distractor = Distractor(evidence.question_id, evidence.passage_id, evidence.strategy, 0, "cut", rest, removed)
    return Attempt(KEPT, distractor)


def _check_answers(pair: Pair, attempt: Attempt, may_hold_answer: bool) -> Attempt:
    distractor = attempt.distractor
    if distractor is None:
        return attempt
    present = _has_answer(pair, distractor.text)
    if present and not may_hold_answer:
        return Attempt(HOLDS_ANSWER, None)
    if not present and distractor.strategy in PLACEBOS and _has_answer(pair, pair.passage.text):
        return Attempt(ANSWER_LOST, None)
    return attempt


def _has_answer(pair: Pair, text: str) -> bool:
    return has_answer(pair.question.answers, text, pair.question.answer_kind)
