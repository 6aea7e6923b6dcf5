"""Placebos: pieces of a positive that are as long as its evidence, or as its answers, and are neither. Without one a
passage is cut as a distractor is, and still has its evidence.

placebo         the sentence nearest in length to the evidence
placebo_second  of the others the nearest: the placebo of what is a placebo itself
placebo_words   as many words in a row as the answers have, in one sentence, outside the evidence
placebo_inside  the same in a sentence that holds evidence

None touches an answer. Words are split at white space and have a letter or digit.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence

from eadpr.storage.records import Passage, Span
from eadpr.supervision.config import PLACEBOS
from eadpr.supervision.draws import alike
from eadpr.supervision.spans import Segmenter, overlapping, segment
from eadpr.text.answers import merge

_WORD = re.compile(r"(?<!\S)\S*?[^\W_]\S*")


def pieces(
    passage: Passage, evidence: Sequence[Span], held: Sequence[Span], *, key: str, segmenter: Segmenter
) -> dict[str, Span | None]:
    """The piece of each kind; None where the passage has none, as wherever there is no evidence.

    `held` are the places of the answers, `key` the pair that the place of words is drawn for; `segmenter` cut the spans
    that `evidence` was chosen from.
    """
    if not evidence:
        return dict.fromkeys(PLACEBOS)
    text, taken = passage.text, merge([*evidence, *held])
    sentences = segment(passage, "sentence")
    spans = sentences if segmenter == "sentence" else segment(passage, segmenter)
    inside = [sentences[i] for i in overlapping(sentences, evidence)]
    count = sum(len(list(_words(text, answer))) for answer in held)
    first = nearest(spans, evidence, taken)
    return {
        "placebo": first,
        "placebo_second": nearest(spans, evidence, [*taken, first]) if first else None,
        "placebo_words": drawn(text, runs(text, sentences, taken, count), key),
        "placebo_inside": drawn(text, runs(text, inside, held, count), key),
    }


def nearest(found: Sequence[Span], evidence: Sequence[Span], taken: Sequence[Span]) -> Span | None:
    """Of the spans that share no character with what is `taken` the one nearest in length to the evidence together, the
    first of equals, but none of more than twice its length or less than half: the two cuts would not be alike."""
    length = sum(end - start for start, end in merge(evidence))
    not_free = set(overlapping(found, taken))
    free = (span for i, span in enumerate(found) if i not in not_free and alike(span.end - span.start, length))
    return min(free, key=lambda span: abs(span.end - span.start - length), default=None)


def runs(text: str, sentences: Sequence[Span], taken: Sequence[Span], count: int) -> list[tuple[int, int]]:
    """Start and end of every `count` words in a row of one sentence that share no character with what is `taken`."""
    found: list[tuple[int, int]] = []
    for sentence in sentences if count else ():
        inside = [span for span in taken if span.start < sentence.end and sentence.start < span.end]
        words = list(_words(text, sentence))
        rows = zip((start for start, _ in words), (end for _, end in words[count - 1 :]), strict=False)
        found += [(start, end) for start, end in rows if all(end <= s.start or s.end <= start for s in inside)]
    return found


def drawn(text: str, found: Sequence[tuple[int, int]], key: str) -> Span | None:
    """One of these places, by a hash, without the punctuation at its ends: that behind an answer stays too."""
    if not found:
        return None
    start, end = found[int.from_bytes(hashlib.sha256(key.encode()).digest()) % len(found)]
    while unicodedata.category(text[start]).startswith("P"):
        start += 1
    while unicodedata.category(text[end - 1]).startswith("P"):
        end -= 1
    return Span(start, end)


def _words(text: str, within: Span) -> Iterator[tuple[int, int]]:
    for match in _WORD.finditer(text[within.start : within.end]):
        yield within.start + match.start(), within.start + match.end()
