"""Sentences to put in the place of others of a positive: of like length in characters, from elsewhere, without an
answer to the question and not in the positive. A filler is a whole sentence, as far as its marks tell; it is at most
twice as long as what it stands for, and at least half.

random  from a passage of another title: one drawn from those nearest in length in a pool of passages of the corpus
title   from the passages around the positive that have its title: the nearest in length, of equals a drawn one
ranked  from the best passages of the question's BM25 ranking, in the same way

The latter two take none of the question's positives.
"""

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from eadpr.storage import engine, tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage, Positive, Ranked
from eadpr.supervision.config import FillerKind
from eadpr.supervision.draws import ByLength, alike, draw, from_drawn
from eadpr.supervision.pairs import Pair
from eadpr.supervision.spans import sentences
from eadpr.text.answers import has_answer

POOL = 2**15  # passages that `random` draws from, about 2 kB each with their sentences
BEST = 20  # ranks of a ranking, and passages of a title around the positive, half of them on either side
KEPT = 2**14  # passages whose sentences are kept, about 1 kB each
_STOPS, _CLOSING = tuple(".!?…。！？"), "\"”’»)]}」』）'"

# The sentences that may take the place of one of so many characters, the first choice first; the last is what is drawn.
Candidates = Callable[[Pair, int, int], Iterable[str]]


class Fillers:
    """`drawn`: whether numbers draw sentences, or only choose among equals of those nearest in length."""

    def __init__(self, seed: int, candidates: Candidates, *, drawn: bool = True) -> None:
        self._seed, self._candidates, self.drawn = seed, candidates, drawn

    def sentence(self, pair: Pair, piece: str, number: int, avoid: Collection[str] = ()) -> str | None:
        """A filler for a piece of the pair's passage, none of `avoid`; None if there is none. Another number draws
        another one, or the same by chance.

        But for `random`, pairs are asked for in the order of positives.parquet; any may be left out.
        """
        for text in self._candidates(pair, len(piece), draw(self._seed, pair, number)):
            if text in avoid or not alike(len(text), len(piece)) or text in pair.passage.text:
                continue
            if not has_answer(pair.question.answers, text, pair.question.answer_kind):
                return text
        return None


def whole(sentence: str) -> bool:
    """Whether it starts and ends as a sentence does, which what a cut passage begins or ends with may not."""
    first = next((character for character in sentence if character.isalnum()), "a")
    return not first.islower() and sentence.rstrip(_CLOSING).endswith(_STOPS)


def whole_sentences(text: str) -> list[str]:
    return [found for start, end in sentences(text) if whole(found := text[start:end])]


@contextmanager
def fillers(kind: FillerKind, *, seed: int, records: Path, positives: Path, ranking: Path) -> Iterator[Fillers]:
    """Fillers for the pairs of the table `positives`; `ranking` is the folder of BM25's, which `ranked` reads."""
    passages = records / "passages.parquet"
    if kind == "random":
        with engine.connect() as connection:
            engine.view(connection, "passages", passages, Passage)
            drawn = engine.batches(connection, _POOL, {"seed": seed, "most": POOL})
            pool = Pool(row for batch in drawn for row in zip(*batch.to_pydict().values(), strict=True))
        yield Fillers(seed, pool)
        return
    with ExitStack() as stack:
        table = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eadpr-fillers-"))) / "near.parquet"
        _write_near(kind, table, passages=passages, positives=positives, ranking=ranking)
        yield Fillers(seed, Nearby(tables.rows(table, Near), PassageStore(passages)), drawn=False)


class PooledSentence(NamedTuple):
    text: str
    passage_id: str
    title: str


class Pool:
    """The sentences of passages, (id, title, text) each."""

    def __init__(self, passages: Iterable[tuple[str, str, str]]) -> None:
        found = (
            PooledSentence(sentence, key, title) for key, title, text in passages for sentence in whole_sentences(text)
        )
        self._sentences = ByLength(found, lambda sentence: len(sentence.text))

    def __call__(self, pair: Pair, length: int, drawn: int) -> Iterator[str]:
        own = pair.passage
        for text, passage_id, title in self._sentences.near(length, drawn):
            if passage_id != own.id and (title != own.title or not title):
                yield text


_POOL = f"""
SELECT id, title, text FROM passages p JOIN (
    SELECT {engine.POSITION} AS place, sha256($seed || chr(0) || id) AS drawn FROM passages ORDER BY drawn LIMIT $most
) ON p.{engine.POSITION} = place ORDER BY drawn
"""


class Near(NamedTuple):
    """`near` are the passages whose sentences may be fillers for the pair."""

    made_by = "distractors"
    question_id: str
    passage_id: str
    near: list[str]


class Nearby:
    """The sentences of the passages that a row of `near` names for each pair."""

    def __init__(self, near: Iterator[Near], store: PassageStore) -> None:
        self._near, self._at = near, Near("", "", [])
        self._sentences = lru_cache(KEPT)(lambda passage_id: whole_sentences(*store.texts(store.rows([passage_id]))))

    def __call__(self, pair: Pair, length: int, drawn: int) -> list[str]:
        found = [text for passage_id in self._of(pair) for text in self._sentences(passage_id)]
        return sorted(from_drawn(found, drawn), key=lambda text: abs(len(text) - length))

    def _of(self, pair: Pair) -> list[str]:
        while self._at[:2] != (pair.question.id, pair.passage.id):
            self._at = next(self._near, None)
            if self._at is None:
                raise ValueError(
                    f"pair ({pair.question.id}, {pair.passage.id}) is not in positives.parquet, or before another that"
                    " was asked for; run `dvc repro positives`"
                )
        return self._at.near


def _write_near(kind: FillerKind, out: Path, *, passages: Path, positives: Path, ranking: Path) -> None:
    with engine.connect() as connection:
        engine.view(connection, "passages", passages, Passage)
        engine.view(connection, "positives", positives, Positive)
        for part in ("train", "evaluate") if kind == "ranked" else ():
            engine.view(connection, part, ranking / f"{part}.parquet", Ranked)
        connection.execute(_GIVEN)
        if kind == "title":
            engine.execute(connection, _TITLED, label="passages of the positives' titles")
        found = engine.batches(connection, _NEAR.format(_OF_TITLE if kind == "title" else _OF_RANKING))
        with tables.writing(out, Near) as append, engine.watched(connection, "passages to take fillers from"):
            for table in engine.group_rows(found, ["place"], ["near"]):
                append(table.select(Near._fields).cast(tables.schema(Near)))


_GIVEN = f"CREATE VIEW given AS SELECT {engine.POSITION} AS place, question_id, passage_id FROM positives"
# Passages of a title are numbered in the order of the corpus, so that those around one are found without all pairs.
_TITLED = f"""
CREATE TABLE titled AS SELECT id, title, row_number() OVER (PARTITION BY title ORDER BY place) AS number
FROM (SELECT id, title, {engine.POSITION} AS place FROM passages WHERE title <> '')
SEMI JOIN (SELECT title FROM passages SEMI JOIN positives ON id = passage_id) USING (title)
"""
_OF_TITLE = f"""
SELECT place, question_id, o.id AS near, 2 * abs(away) + (away < 0)::INT AS n
FROM given JOIN titled t ON t.id = passage_id CROSS JOIN (SELECT unnest(range(-{BEST // 2}, {BEST // 2 + 1})) AS away)
JOIN titled o ON o.title = t.title AND o.number = t.number + away WHERE away <> 0
"""
_OF_RANKING = f"""
SELECT place, question_id, r.passage_id AS near, rank AS n
FROM given JOIN (FROM train UNION ALL FROM evaluate) r USING (question_id) WHERE rank <= {BEST}
"""
# A row for each pair and one for each of its passages.
_NEAR = """
SELECT place, question_id, passage_id, NULL::VARCHAR AS near, 0 AS n FROM given
UNION ALL SELECT place, NULL, NULL, f.near, n FROM ({}) f
    ANTI JOIN given own ON own.question_id = f.question_id AND own.passage_id = f.near
ORDER BY place, n
"""
