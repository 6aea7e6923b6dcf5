"""Sentences that replace others in a positive, drawn from those nearest in length in a pool of passages of the corpus.

A filler is a whole sentence, as far as its marks tell, from a passage of another title, without an answer to the
question and not in the positive. It is at most twice as long as the sentence that it replaces, and at least half.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from eadpr.storage import engine
from eadpr.storage.records import Passage
from eadpr.supervision.draws import ByLength, draw, similar
from eadpr.supervision.pairs import Pair
from eadpr.text.answers import has_answer
from eadpr.text.spans import sentences

POOL = 2**15  # passages that fillers are drawn from, about 2 kB each with their sentences
_STOPS, _CLOSING = tuple(".!?…。！？"), "\"”’»)]}」』）'"


class _PooledSentence(NamedTuple):
    text: str
    passage_id: str
    title: str


class Fillers:
    """The sentences of a pool of passages, each passage given as (id, title, text)."""

    def __init__(self, seed: int, passages: Iterable[tuple[str, str, str]]) -> None:
        self._seed = seed
        pooled = (
            _PooledSentence(sentence, key, title) for key, title, text in passages for sentence in whole_sentences(text)
        )
        self._pool = ByLength(pooled, lambda sentence: len(sentence.text))

    def sentence(self, pair: Pair, piece: str, number: int, avoid: Collection[str] = ()) -> str | None:
        """Return a filler for a piece of the pair's passage that is not in `avoid`, or None. Another number draws
        another filler, or the same by chance."""
        passage, question = pair.passage, pair.question
        for text, passage_id, title in self._pool.nearest(len(piece), draw(self._seed, pair, number)):
            elsewhere = passage_id != passage.id and (title != passage.title or not title)
            if not elsewhere or text in avoid or not similar(len(text), len(piece)) or text in passage.text:
                continue
            if not has_answer(question.answers, text, question.answer_kind):
                return text
        return None


def is_whole(sentence: str) -> bool:
    """Return true if it starts and ends as a sentence does; the first and last of a cut passage may not."""
    first = next((character for character in sentence if character.isalnum()), "a")
    return not first.islower() and sentence.rstrip(_CLOSING).endswith(_STOPS)


def whole_sentences(text: str) -> list[str]:
    return [sentence for start, end in sentences(text) if is_whole(sentence := text[start:end])]


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
