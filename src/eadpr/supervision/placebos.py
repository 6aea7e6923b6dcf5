"""Placebos: pieces of a positive that are as long as its evidence, or as its answers, and are neither. A passage
without its placebo is cut as a distractor is, and still has its evidence.

placebo         the sentence nearest in length to the evidence
placebo_second  the next nearest: the placebo of the placebo
placebo_words   as many words in a row as the answers have, in one sentence, outside the evidence
placebo_inside  the same in a sentence that holds evidence

No placebo touches an answer. Words are split at white space and have a letter or digit.
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence

from eadpr.storage.records import Passage, Span
from eadpr.supervision.config import PLACEBOS
from eadpr.text.answers import merge
from eadpr.text.spans import overlapping, segment, similar

_WORD = re.compile(r"(?<!\S)\S*?[^\W_]\S*")


def choose_placebos(
    passage: Passage, evidence: Sequence[Span], answers: Sequence[Span], *, key: str
) -> dict[str, Span | None]:
    """Return the piece of each kind, or None where the passage has none, as always without evidence.

    `answers` are the places of the answers; `key` names the pair and decides the place of the words.
    """
    if not evidence:
        return dict.fromkeys(PLACEBOS)
    text, forbidden = passage.text, merge([*evidence, *answers])
    sentences = segment(passage)
    with_evidence = [sentences[i] for i in overlapping(sentences, evidence)]
    count = sum(len(_words(text, answer)) for answer in answers)
    first = nearest(sentences, evidence, forbidden)
    return {
        "placebo": first,
        "placebo_second": nearest(sentences, evidence, [*forbidden, first]) if first else None,
        "placebo_words": draw_run(text, runs(text, sentences, forbidden, count), key),
        "placebo_inside": draw_run(text, runs(text, with_evidence, answers, count), key),
    }


def nearest(spans: Sequence[Span], evidence: Sequence[Span], forbidden: Sequence[Span]) -> Span | None:
    """Return the span nearest in length to all the evidence that touches nothing `forbidden`, the first of equal ones.
    None is returned if it were more than twice as long, or less than half: the two cuts would not be comparable."""
    length = sum(end - start for start, end in merge(evidence))
    touching = set(overlapping(spans, forbidden))
    free = [span for i, span in enumerate(spans) if i not in touching and similar(span.end - span.start, length)]
    return min(free, key=lambda span: abs(span.end - span.start - length), default=None)


def runs(text: str, sentences: Sequence[Span], forbidden: Sequence[Span], count: int) -> list[Span]:
    """Return every `count` words in a row of one sentence that share no character with anything `forbidden`."""
    places: list[Span] = []
    for sentence in sentences if count else ():
        words = _words(text, sentence)
        near = [span for span in forbidden if span.start < sentence.end and sentence.start < span.end]
        for first, last in zip(words, words[count - 1 :], strict=False):
            if all(last.end <= span.start or span.end <= first.start for span in near):
                places.append(Span(first.start, last.end))
    return places


def draw_run(text: str, spans: Sequence[Span], key: str) -> Span | None:
    """Draw one of the spans by a hash; punctuation at its ends is left in the passage, as that after an answer is."""
    if not spans:
        return None
    start, end = spans[int.from_bytes(hashlib.sha256(key.encode()).digest()) % len(spans)]
    while unicodedata.category(text[start]).startswith("P"):
        start += 1
    while unicodedata.category(text[end - 1]).startswith("P"):
        end -= 1
    return Span(start, end)


def _words(text: str, within: Span) -> list[Span]:
    # A slice: the word of "(Rome)" that lies in its answer begins behind a bracket.
    matches = _WORD.finditer(text[within.start : within.end])
    return [Span(within.start + match.start(), within.start + match.end()) for match in matches]
