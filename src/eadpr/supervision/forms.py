"""Forms of a distractor, the positive without its evidence, and of a placebo, the positive without as much elsewhere.

cut      the piece is taken out
filled   each sentence of it is replaced by one of like length from elsewhere (`fillers`), so that length and order say
         nothing; only pieces that are whole sentences are
swapped  the answer, wherever it stands, is replaced by another question's (`swaps`); of evidence alone
written  another text, made elsewhere and handed in; of evidence alone
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from eadpr.storage.records import Distractor, Evidence, Passage, Span
from eadpr.supervision import swaps
from eadpr.supervision.config import PLACEBOS, Distractors, Form
from eadpr.supervision.fillers import Fillers
from eadpr.supervision.pairs import Pair
from eadpr.supervision.spans import segment, stripped, without
from eadpr.supervision.swaps import Swaps
from eadpr.text.answers import has_answer

KEPT = "kept"
NO_ANSWER, NO_EVIDENCE, NO_PLACEBO, UNREADABLE = "no_answer", "no_evidence", "no_placebo", "unreadable_reply"
NOTHING_LEFT, UNCHANGED, HOLDS_ANSWER, ANSWER_LOST = "nothing_left", "unchanged", "holds_answer", "answer_lost"
NOT_SENTENCES, NO_FILLER, NO_SWAP = "not_sentences", "no_filler", "no_swap"


class Attempt(NamedTuple):
    """What became of one row of evidence in one form; `distractor` is None unless the reason is KEPT. `fillers` are the
    sentences put in."""

    reason: str
    distractor: Distractor | None
    fillers: Sequence[str] = ()


class Swap(NamedTuple):
    """A passage with another answer in the place of those that it `held`."""

    text: str
    held: list[Span]


class Forms:
    """Makes the forms that the settings name; `fillers` and `swaps` are wanted for `filled` and `swapped` alone."""

    def __init__(self, settings: Distractors, fillers: Fillers | None, swaps: Swaps | None) -> None:
        self._settings, self._fillers, self._swaps = settings, fillers, swaps

    def attempts(
        self, pair: Pair, rows: Sequence[Evidence], written: Mapping[str, Attempt]
    ) -> Iterator[tuple[Evidence, Form, Attempt]]:
        """Of each row in each form, in the order of both; `written` are those of this form by strategy."""
        swap, filled = self._swap(pair), self._filled(pair, rows)
        for row in rows:
            for form in self._settings.forms:
                if form == "cut":
                    yield row, form, cut(pair, row, may_hold_answer=self._may_hold_answer(row))
                elif form == "filled":
                    yield row, form, filled[row.strategy]
                elif form == "written":
                    yield from ((row, form, attempt) for attempt in [written.get(row.strategy)] if attempt)
                elif row.strategy not in PLACEBOS:
                    yield row, form, swapped(pair, row, swap)

    def _swap(self, pair: Pair) -> Swap | None:
        other = self._swaps.draw_answer(pair, 0) if self._swaps else None
        held = [] if other is None else pair.answer_spans
        return Swap(swaps.swap_answers(pair, other), held) if held else None

    def _filled(self, pair: Pair, rows: Sequence[Evidence]) -> dict[str, Attempt]:
        """By strategy. Evidence may share fillers; a placebo has others than evidence and the placebos before it."""
        if self._fillers is None:
            return {}
        made: dict[str, Attempt] = {}
        taken: set[str] = set()
        evidence = [row for row in rows if row.strategy not in PLACEBOS]
        placebos = [row for strategy in PLACEBOS for row in rows if row.strategy == strategy]
        for row in [*evidence, *placebos]:
            avoid, may = taken if row.strategy in PLACEBOS else (), self._may_hold_answer(row)
            made[row.strategy] = filled(pair, row, self._fillers, avoid=avoid, may_hold_answer=may)
            taken.update(made[row.strategy].fillers)
        return made

    def _may_hold_answer(self, row: Evidence) -> bool:
        return self._settings.may_hold_answer.get(row.strategy, True)


def cut(pair: Pair, evidence: Evidence, *, may_hold_answer: bool) -> Attempt:
    """The passage without the chosen spans, or why there is none.

    no_answer: the question has no answer to look for in the passage; no_evidence, no_placebo: the strategy found
    nothing; unreadable_reply: a language model was asked for it, and no reply could be read; nothing_left: no letter or
    digit is left, as where the passage is one span; unchanged: only white space was removed; holds_answer: an answer
    still stands in the text, and the strategy does not allow that; answer_lost: a placebo, and none stands there any
    more (a pattern may ask for what surrounds it). What cannot be cut for another reason than the last two has no other
    form.
    """
    return _checked(pair, _cut(pair, evidence), may_hold_answer)


def filled(
    pair: Pair, evidence: Evidence, fillers: Fillers, *, avoid: Collection[str] = (), may_hold_answer: bool
) -> Attempt:
    """The passage with a filler in the place of each chosen span; fillers differ, and none is among `avoid`.

    not_sentences: one of the spans is no sentence of the passage; no_filler: there is none for one of them.
    """
    attempt = _cut(pair, evidence)
    if attempt.distractor is None:
        return attempt
    text, pieces = pair.passage.text, whole_sentences(pair.passage, attempt.distractor.removed)
    if pieces is None:
        return Attempt(NOT_SENTENCES, None)
    put = put_in(pair, pieces, fillers, avoid=avoid)
    if put is None:
        return Attempt(NO_FILLER, None)
    made = attempt.distractor._replace(form="filled", text=replaced(text, pieces, put))
    return _checked(pair, Attempt(KEPT, made, put), may_hold_answer)


def put_in(
    pair: Pair, pieces: Sequence[Span], fillers: Fillers, *, first: int = 0, avoid: Collection[str] = ()
) -> list[str] | None:
    """A filler for each of these sentences of the passage, another for each, drawn by the numbers from `first` on; None
    where one has none."""
    put: list[str] = []
    for number, (start, end) in enumerate(pieces, start=first):
        found = fillers.sentence(pair, pair.passage.text[start:end], number, {*avoid, *put})
        if found is None:
            return None
        put.append(found)
    return put


def swapped(pair: Pair, evidence: Evidence, swap: Swap | None) -> Attempt:
    """The passage with another answer, whatever the evidence is; none of its own may be left.

    no_swap: there is no other answer, or none of its own in the passage.
    """
    attempt = _cut(pair, evidence)
    if attempt.distractor is None:
        return attempt
    if swap is None:
        return Attempt(NO_SWAP, None)
    made = attempt.distractor._replace(form="swapped", text=swap.text, removed=swap.held)
    return _checked(pair, Attempt(KEPT, made), may_hold_answer=False)


def holds_answer(pair: Pair, text: str) -> bool:
    return has_answer(pair.question.answers, text, pair.question.answer_kind)


def whole_sentences(passage: Passage, spans: Sequence[Span]) -> list[Span] | None:
    """The spans sorted, without white space at their ends; None where one is no sentence of the passage."""
    sentences = {stripped(passage.text, span) for span in segment(passage, "sentence")}
    pieces = sorted(stripped(passage.text, span) for span in spans)
    return pieces if sentences.issuperset(pieces) else None


def replaced(text: str, spans: Sequence[Span], put: Sequence[str]) -> str:
    """The text with each of the spans, which are sorted and disjoint, replaced."""
    position, parts = 0, []
    for (start, end), other in zip(spans, put, strict=True):
        parts += [text[position:start], other]
        position = end
    return "".join([*parts, text[position:]])


def _cut(pair: Pair, evidence: Evidence) -> Attempt:
    if not evidence.chosen:
        found_nothing = NO_PLACEBO if evidence.strategy in PLACEBOS else NO_EVIDENCE
        if evidence.strategy == "pseudo" and evidence.spans:
            found_nothing = UNREADABLE
        return Attempt(found_nothing if evidence.target else NO_ANSWER, None)
    removed = evidence.chosen_spans
    text = without(pair.passage.text, removed)
    if not any(character.isalnum() for character in text):
        return Attempt(NOTHING_LEFT, None)
    if (
        not any(pair.passage.text[start:end].strip() for start, end in removed)
        and text.split() == pair.passage.text.split()
    ):
        return Attempt(UNCHANGED, None)
    made = Distractor(evidence.question_id, evidence.passage_id, evidence.strategy, 0, "cut", text, removed)
    return Attempt(KEPT, made)


def _checked(pair: Pair, attempt: Attempt, may_hold_answer: bool) -> Attempt:
    made = attempt.distractor
    if made is None:
        return attempt
    if not may_hold_answer and holds_answer(pair, made.text):
        return Attempt(HOLDS_ANSWER, None)
    if made.strategy in PLACEBOS and not holds_answer(pair, made.text) and holds_answer(pair, pair.passage.text):
        return Attempt(ANSWER_LOST, None)
    return attempt
