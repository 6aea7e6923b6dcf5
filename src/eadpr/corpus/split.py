"""Long documents cut into passages of about so many words, at sentence ends where there are any."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eadpr.records import Passage, Span

_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"""[.!?…。！？]["'”’»)\]]*$""")


def split(passage: Passage, words: int) -> list[Passage]:
    """The document itself where it has at most `words` words, else pieces `id#1`, `id#2`, … with its title."""
    if passage.sentences is not None:
        raise ValueError(f"passage {passage.id!r} has given sentences and cannot be split")
    places = pieces(passage.text, words)
    if len(places) < 2:
        return [passage]
    return [
        Passage(f"{passage.id}#{k}", passage.title, passage.text[place.start : place.end], None)
        for k, place in enumerate(places, start=1)
    ]


def pieces(text: str, words: int) -> list[Span]:
    """Where the pieces stand: in order, nothing but white space between them, at most 1.5 * `words` words each.

    A piece takes sentences until the next one would make it longer than `words`, but is at least half of that; a
    sentence longer than `words` is cut between words; a last piece below a quarter joins the one before it.
    """
    found = [Span(*match.span()) for match in _WORD.finditer(text)]
    if len(found) <= words:
        return [Span(0, len(text))]
    groups: list[list[Span]] = [[]]
    for sentence in _sentences(text, found, words):
        if len(groups[-1]) + len(sentence) > words and len(groups[-1]) >= words / 2:
            groups.append([])
        groups[-1] += sentence
    if len(groups) > 1 and len(groups[-1]) < words / 4 and len(groups[-2]) + len(groups[-1]) <= 1.5 * words:
        last = groups.pop()
        groups[-1] += last
    return [Span(group[0].start, group[-1].end) for group in groups]


def _sentences(text: str, found: list[Span], words: int) -> Iterator[list[Span]]:
    """The words of each sentence, or of each part of at most `words` words of a longer one."""
    sentence: list[Span] = []
    for i, word in enumerate(found):
        sentence.append(word)
        if i + 1 == len(found) or len(sentence) == words or _ends(text, word, found[i + 1]):
            yield sentence
            sentence = []


def _ends(text: str, word: Span, following: Span) -> bool:
    if "\n" in text[word.end : following.start]:
        return True
    # A lower-case letter after a full stop is an abbreviation's.
    return bool(_SENTENCE_END.search(text[word.start : word.end])) and not text[following.start].islower()
