"""Sentences that replace others in a positive: of similar length in characters, from elsewhere, without an answer to
the question and not in the positive. A filler is a whole sentence, as far as its marks tell; it is at most twice as
long as the sentence that it replaces, and at least half.

random  drawn from the sentences nearest in length in a pool of passages of the corpus with another title
title   the nearest in length from the passages around the positive with its title; among equals one is drawn
ranked  the same from the best passages of the question's BM25 ranking

`title` and `ranked` use no positive of the question.
"""

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from eadpr.storage import engine, tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage, Positive, Ranked
from eadpr.supervision.config import FillerKind
from eadpr.supervision.draws import ByLength, draw, rotate, similar
from eadpr.supervision.pairs import Pair
from eadpr.supervision.spans import sentences
from eadpr.text.answers import has_answer

POOL = 2**15  # passages that `random` draws from, about 2 kB each with their sentences
BEST = 20  # ranks of a ranking, and passages of a title around the positive, half of them on either side
CACHED = 2**14  # passages with their sentences in memory, about 1 kB each
_STOPS, _CLOSING = tuple(".!?…。！？"), "\"”’»)]}」』）'"

# (pair, length of the sentence to replace, random number) -> sentences, the best first
Candidates = Callable[[Pair, int, int], Iterable[str]]


class Fillers:
    def __init__(self, seed: int, candidates: Candidates) -> None:
        self._seed, self._candidates = seed, candidates

    def sentence(self, pair: Pair, piece: str, number: int, avoid: Collection[str] = ()) -> str | None:
        """Return a filler for a piece of the pair's passage that is not in `avoid`, or None.

        Another number draws another filler, or the same by chance. Unless fillers are `random`, pairs must come in the
        order of positives.parquet; any may be left out.
        """
        for text in self._candidates(pair, len(piece), draw(self._seed, pair, number)):
            if text in avoid or not similar(len(text), len(piece)) or text in pair.passage.text:
                continue
            if not has_answer(pair.question.answers, text, pair.question.answer_kind):
                return text
        return None


def is_whole(sentence: str) -> bool:
    """Return true if it starts and ends as a sentence does; the first and last of a cut passage may not."""
    first = next((character for character in sentence if character.isalnum()), "a")
    return not first.islower() and sentence.rstrip(_CLOSING).endswith(_STOPS)


def whole_sentences(text: str) -> list[str]:
    return [sentence for start, end in sentences(text) if is_whole(sentence := text[start:end])]


@contextmanager
def fillers(
    kind: FillerKind, *, seed: int, records: Path, positives: Path, ranking: Path | None = None
) -> Iterator[Fillers]:
    """Yield fillers for the pairs of the table `positives`; `ranking` is BM25's folder, read for `ranked`."""
    passages = records / "passages.parquet"
    if kind == "random":
        with engine.connect() as connection:
            engine.view(connection, "passages", passages, Passage)
            batches = engine.batches(connection, _POOL, {"seed": seed, "most": POOL})
            pool = Pool(row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True))
        yield Fillers(seed, pool)
        return
    with tempfile.TemporaryDirectory(prefix="eadpr-fillers-") as folder:
        table = Path(folder) / "near.parquet"
        _write_near(kind, table, passages=passages, positives=positives, ranking=ranking)
        yield Fillers(seed, Nearby(tables.rows(table, Near), PassageStore(passages)))


class PooledSentence(NamedTuple):
    text: str
    passage_id: str
    title: str


class Pool:
    """The sentences of passages, each passage given as (id, title, text)."""

    def __init__(self, passages: Iterable[tuple[str, str, str]]) -> None:
        pooled = (
            PooledSentence(sentence, key, title) for key, title, text in passages for sentence in whole_sentences(text)
        )
        self._sentences = ByLength(pooled, lambda sentence: len(sentence.text))

    def __call__(self, pair: Pair, length: int, start: int) -> Iterator[str]:
        passage = pair.passage
        for text, passage_id, title in self._sentences.nearest(length, start):
            if passage_id != passage.id and (title != passage.title or not title):
                yield text


_POOL = f"""
SELECT id, title, text FROM passages p JOIN (
    SELECT {engine.POSITION} AS place, sha256($seed || chr(0) || id) AS drawn FROM passages ORDER BY drawn LIMIT $most
) ON p.{engine.POSITION} = place ORDER BY drawn
"""


class Near(NamedTuple):
    """A pair with the passages, `near`, that its fillers may come from."""

    question_id: str
    passage_id: str
    near: list[str]


class Nearby:
    """The sentences of the passages that the rows name for each pair."""

    def __init__(self, rows: Iterator[Near], store: PassageStore) -> None:
        self._rows, self._row = rows, Near("", "", [])
        self._sentences = lru_cache(CACHED)(lambda passage_id: whole_sentences(*store.texts(store.rows([passage_id]))))

    def __call__(self, pair: Pair, length: int, start: int) -> list[str]:
        texts = [text for passage_id in self._passages_near(pair) for text in self._sentences(passage_id)]
        return sorted(rotate(texts, start), key=lambda text: abs(len(text) - length))

    def _passages_near(self, pair: Pair) -> list[str]:
        while self._row[:2] != (pair.question.id, pair.passage.id):
            self._row = next(self._rows)
        return self._row.near


def _write_near(kind: FillerKind, out: Path, *, passages: Path, positives: Path, ranking: Path) -> None:
    with engine.connect() as connection:
        engine.view(connection, "passages", passages, Passage)
        engine.view(connection, "positives", positives, Positive)
        connection.execute(_PAIRS)
        if kind == "title":
            connection.execute(_TITLED)
        else:
            for part in ("train", "evaluate"):
                engine.view(connection, part, ranking / f"{part}.parquet", Ranked)
        near = engine.batches(connection, _NEAR.format(_SAME_TITLE if kind == "title" else _RANKED))
        with tables.writing(out, Near) as append:
            for table in engine.group_rows(near, ["place"], ["near"]):
                append(table.select(Near._fields).cast(tables.schema(Near)))


_PAIRS = f"CREATE VIEW pairs AS SELECT {engine.POSITION} AS place, question_id, passage_id FROM positives"
# Passages of a title are numbered in the order of the corpus, so that neighbours are found without comparing all.
_TITLED = f"""
CREATE TABLE titled AS SELECT id, title, row_number() OVER (PARTITION BY title ORDER BY place) AS number
FROM (SELECT id, title, {engine.POSITION} AS place FROM passages WHERE title <> '')
SEMI JOIN (SELECT title FROM passages SEMI JOIN positives ON id = passage_id) USING (title)
"""
_SAME_TITLE = f"""
SELECT place, question_id, o.id AS near, 2 * abs(away) + (away < 0)::INT AS n
FROM pairs JOIN titled t ON t.id = passage_id CROSS JOIN (SELECT unnest(range(-{BEST // 2}, {BEST // 2 + 1})) AS away)
JOIN titled o ON o.title = t.title AND o.number = t.number + away WHERE away <> 0
"""
_RANKED = f"""
SELECT place, question_id, r.passage_id AS near, rank AS n
FROM pairs JOIN (FROM train UNION ALL FROM evaluate) r USING (question_id) WHERE rank <= {BEST}
"""
# A row for each pair and one for each of its passages.
_NEAR = """
SELECT place, question_id, passage_id, NULL::VARCHAR AS near, 0 AS n FROM pairs
UNION ALL SELECT place, NULL, NULL, f.near, n FROM ({}) f
    ANTI JOIN pairs p ON p.question_id = f.question_id AND p.passage_id = f.near
ORDER BY place, n
"""
