"""Sentences that replace others in a positive, drawn from those nearest in length in a pool of passages of the corpus.

A filler is a whole sentence, as far as its marks tell, from a passage of another title, without an answer to the
question and not in the positive. It is at most twice as long as the sentence that it replaces, and at least half.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from eadpr.storage import engine
from eadpr.storage.records import Passage
from eadpr.supervision.pairs import Pair
from eadpr.text.answers import has_answer
from eadpr.text.spans import sentences, similar

NEAREST = 40  # the fewest sentences to draw from, where there are as many
POOL = 2**15  # passages that fillers are drawn from, about 2 kB each with their sentences
_STOPS, _CLOSING = tuple(".!?…。！？"), "\"”’»)]}」』）'"


class Fillers:
    """The sentences of a pool of passages, each passage given as (id, title, text)."""

    def __init__(self, seed: int, passages: Iterable[tuple[str, str, str]]) -> None:
        self._seed = seed
        pooled = ((sentence, key, title) for key, title, text in passages for sentence in whole_sentences(text))
        self._pool = sorted(pooled, key=lambda entry: len(entry[0]))
        self._lengths = [len(sentence) for sentence, *_ in self._pool]

    def sentence(self, pair: Pair, piece: str, number: int, avoid: Collection[str] = ()) -> str | None:
        """Return a filler for a piece of the pair's passage, not in `avoid`, or None; another number, another draw."""
        for text in self.candidates(pair, len(piece), draw(self._seed, pair, number)):
            if text in avoid or not similar(len(text), len(piece)) or text in pair.passage.text:
                continue
            if not has_answer(pair.question.answers, text, pair.question.answer_kind):
                return text
        return None

    def candidates(self, pair: Pair, length: int, start: int) -> Iterator[str]:
        """Yield sentences of other titles, the NEAREST in length and all as near as these, from place `start` on."""
        passage = pair.passage
        furthest = max(length, *self._lengths[-1:], 0)
        distance = bisect_left(range(furthest), NEAREST, key=lambda distance: len(self._within(length, distance)))
        places = self._within(length, distance)
        for i in range(len(places)):
            text, passage_id, title = self._pool[places[(start + i) % len(places)]]
            if passage_id != passage.id and (title != passage.title or not title):
                yield text

    def _within(self, length: int, distance: int) -> range:
        """Return the places of the sentences with a length at most `distance` from `length`."""
        return range(bisect_left(self._lengths, length - distance), bisect_right(self._lengths, length + distance))


def draw(seed: int, pair: Pair, number: int) -> int:
    """Return a large integer, the same in every process."""
    key = f"{seed}\0{pair.question.id}\0{pair.passage.id}\0{number}"
    return int.from_bytes(hashlib.sha256(key.encode()).digest())


def whole_sentences(text: str) -> list[str]:
    """Return what starts and ends as a sentence does; the first and last of a cut passage may not."""
    pieces = [text[start:end] for start, end in sentences(text)]
    ended = [piece for piece in pieces if piece.rstrip(_CLOSING).endswith(_STOPS)]
    return [piece for piece in ended if not next(filter(str.isalnum, piece), "a").islower()]


def pool_fillers(passages: Path, seed: int) -> Fillers:
    """Return the fillers of POOL passages of the table, drawn by a hash."""
    with engine.connect() as connection:
        engine.view(connection, "passages", passages, Passage)
        batches = engine.batches(connection, _POOL, {"seed": seed, "most": POOL})
        return Fillers(seed, (row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)))


_POOL = f"""
SELECT id, title, text FROM passages p JOIN (
    SELECT {engine.POSITION} AS place, sha256($seed || chr(0) || id) AS drawn FROM passages ORDER BY drawn LIMIT $most
) ON p.{engine.POSITION} = place ORDER BY drawn
"""
