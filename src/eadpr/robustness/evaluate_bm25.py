"""BM25 as near-duplicates join the corpus: an index of both, in which everything is ranked anew.

To count how many stand before a ranked passage, as for vectors, would not do: with each text that joins, the weights of
words and the mean length change, and with them every score.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache as remembered
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np

from eadpr.evaluation.outcomes import Values
from eadpr.evaluation.question_tables import RankedAmong
from eadpr.robustness.evaluate import Joined, RobustnessInputs, RobustnessSettings
from eadpr.runtime import cache, files
from eadpr.runtime.progress import progress
from eadpr.storage import tables
from eadpr.storage.records import Passage
from eadpr.supervision.bm25 import QUERIES, Searcher, index

ADDED = "\U0010ffff"  # begins the ids of added passages: of equal scores the lesser id is first
ROUNDED = 5e-5  # half of what scores are rounded to: equal ones differ by less, so that they stand in an order

T = TypeVar("T")
Hit = tuple[str, float]  # id and score
Search = Callable[[Sequence[int], int], list[list[Hit]]]  # of questions, as deep as said; the best hit of each first


def rankings(given: Joined, inputs: RobustnessInputs, settings: RobustnessSettings) -> Callable[[int, Path], Values]:
    """As `robustness.Rankings`."""
    corpus, depth, bm25 = inputs.records / "passages.parquet", settings.evaluate.depth, settings.bm25

    def rank(count: int, out: Path) -> Values:
        among = given._replace(added=given.added.below(count))
        texts = "".join(f"{one.title}\0{one.text}\0" for one in among.added.passages)
        made_of = files.sha256(corpus), hashlib.sha256(texts.encode()).hexdigest(), bm25.fields
        key = cache.fingerprint(cache.code(__file__), *made_of)
        with cache.workspace("robustness_bm25", key) as folder:
            everything, lucene = folder / "passages.parquet", folder / "lucene"
            renamed = (one._replace(id=f"{ADDED}{row}") for row, one in enumerate(among.added.passages))
            tables.write(everything, Passage, chain(tables.rows(corpus, Passage), renamed))
            lucene.mkdir(exist_ok=True)
            indexed = index(everything, lucene, bm25=bm25)
            searcher = remembered(lambda deep: Searcher(indexed, bm25=bm25.model_copy(update={"depth": deep})))

            def search(asked: Sequence[int], deep: int) -> list[list[Hit]]:
                return searcher(deep).search([given.questions[question].question for question in asked])

            tables.write(out, RankedAmong, _ranked(among, search, depth))
            first = first_among(among, search, depth)
            files.discard(folder)
        return first

    return rank


def first_among(given: Joined, search: Search, depth: int) -> Values:
    """Of the questions with a positive and added passages of their own: whether a positive is the best of both."""
    own: dict[str, set[str]] = {}
    for row, question_id in enumerate(given.added.question_ids):
        own.setdefault(question_id, set()).add(f"{ADDED}{row}")
    sides = {
        place: ({*given.positives[question.id]}, own[question.id])
        for place, question in enumerate(given.questions)
        if question.id in own and question.id in given.positives
    }
    first = {}
    for asked in _blocks([*sides]):
        first |= _deepened(asked, search, depth, lambda question, hits: _positive_first(hits, *sides[question]))
    return Values(np.array([*first], np.int64), np.array([*first.values()], np.float64))


def _ranked(given: Joined, search: Search, depth: int) -> Iterator[RankedAmong]:
    """The first `depth` of the corpus and what is added, less what does not join a question's ranking."""

    def joined(question: int, hits: list[Hit]) -> tuple[list[Hit], bool]:
        rows = [row for name, _ in hits if (row := _row(name)) is not None]
        stays = dict(zip(rows, given.joins(question, np.array(rows, dtype=np.int64)), strict=True))
        kept = [hit for hit in hits if stays.get(_row(hit[0]), True)]
        return kept, len(kept) >= depth

    with progress("robustness", len(given.questions), "questions") as advance:
        for asked in _blocks(range(len(given.questions))):
            for question, hits in sorted(_deepened(asked, search, depth, joined).items()):
                for place, (name, score) in enumerate(hits[:depth], start=1):
                    row = _row(name)
                    told = (
                        (name, None, None)
                        if row is None
                        else (None, given.added.question_ids[row], int(given.added.numbers[row]))
                    )
                    yield RankedAmong(given.questions[question].id, *told, place, score)
            advance(len(asked))


def _row(name: str) -> int | None:
    """That of an added passage."""
    return int(name.removeprefix(ADDED)) if name.startswith(ADDED) else None


def _blocks(asked: Sequence[int]) -> Iterator[Sequence[int]]:
    return (asked[start : start + QUERIES] for start in range(0, len(asked), QUERIES))


def _deepened(
    asked: Sequence[int], search: Search, depth: int, judged: Callable[[int, list[Hit]], tuple[T, bool]]
) -> dict[int, T]:
    """What `judged` makes of the hits of each question, and whether these are enough: where not, and there are more,
    twice as many are asked for."""
    found: dict[int, T] = {}
    while asked:
        short = []
        for question, hits in zip(asked, search(asked, depth), strict=True):
            found[question], enough = judged(question, hits)
            if not enough and len(hits) == depth:
                short.append(question)
        asked, depth = short, 2 * depth
    return found


def _positive_first(hits: list[Hit], positives: set[str], added: set[str]) -> tuple[bool, bool]:
    """Whether the best positive scores above all of the question's own added passages, and whether the hits tell that:
    where they have the positive alone, an added passage of the last hit's score may come next. What shares no word with
    the question is no hit and scores 0."""
    best, other = (next((score for name, score in hits if name in side), 0.0) for side in (positives, added))
    last = hits[-1][1] if hits else 0.0
    return best > other + ROUNDED, other > 0 or best > last + ROUNDED
