"""Cut long documents into passages of about so many words, at sentence ends if there are any.

In scripts without spaces each character counts as a word.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import groupby

import regex

from eadpr.corpus.rows import GivenPassage
from eadpr.storage.records import Span
from eadpr.text.answers import UNSPACED
from eadpr.text.spans import sentences

_WORD = regex.compile(rf"[{UNSPACED}]\p{{M}}*|[^\s{UNSPACED}]+")


def cut_passages(documents: Iterable[GivenPassage], words: int) -> Iterator[GivenPassage]:
    """Yield longer documents as passages `id#1`, `id#2`, … of about so many words, with their title."""
    for where, document, title, text, _ in documents:
        pieces = [text[slice(*span)] for span in cut_text(text, words)]
        if len(pieces) == 1:
            yield where, document, title, text, None
        else:
            yield from ((where, f"{document}#{k}", title, piece, None) for k, piece in enumerate(pieces, start=1))


def cut_text(text: str, words: int) -> list[Span]:
    """Return where the pieces stand: in order, nothing but white space between them, at most 1.5 * `words` words each.

    A piece takes sentences until the next one would make it longer than `words`, but is at least half of that; a
    sentence longer than `words` is cut between words; a last piece below a quarter joins the one before it.
    """
    spans = [Span(*match.span()) for match in _WORD.finditer(text)]
    if len(spans) <= words:
        return [Span(0, len(text))]
    groups: list[list[Span]] = [[]]
    for sentence in _sentences(text, spans, words):
        if len(groups[-1]) + len(sentence) > words and len(groups[-1]) >= words / 2:
            groups.append([])
        groups[-1] += sentence
    if len(groups) > 1 and len(groups[-1]) < words / 4 and len(groups[-2]) + len(groups[-1]) <= 1.5 * words:
        last = groups.pop()
        groups[-1] += last
    return [Span(group[0].start, group[-1].end) for group in groups]


def _sentences(text: str, spans: list[Span], words: int) -> Iterator[list[Span]]:
    """Yield the words of each sentence or line, or of each part of at most `words` words of a longer one."""
    ends = sorted([piece.end for piece in sentences(text)] + [line.start() for line in re.finditer("\n", text)])
    for _, group in groupby(spans, key=lambda word: bisect_left(ends, word.end)):
        sentence = list(group)
        yield from (sentence[first : first + words] for first in range(0, len(sentence), words))
