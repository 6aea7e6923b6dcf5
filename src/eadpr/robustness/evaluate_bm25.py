"""BM25 as near-duplicates join the corpus: an index of both, in which everything is ranked again.

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


def rankings(joined: Joined, inputs: RobustnessInputs, settings: RobustnessSettings) -> Callable[[int, Path], Values]:
    """Return a function that ranks with BM25, a `robustness.Rankings`."""
    corpus, depth, bm25 = inputs.records / "passages.parquet", settings.evaluate.depth, settings.bm25

    def rank(count: int, out: Path) -> Values:
        subset = joined._replace(added=joined.added.below(count))
        texts = "".join(f"{passage.title}\0{passage.text}\0" for passage in subset.added.passages)
        made_of = files.sha256(corpus), hashlib.sha256(texts.encode()).hexdigest(), bm25.fields
        key = cache.fingerprint(cache.code(__file__), *made_of)
        with cache.workspace("robustness_bm25", key) as folder:
            everything, lucene = folder / "passages.parquet", folder / "lucene"
            renamed = (passage._replace(id=f"{ADDED}{row}") for row, passage in enumerate(subset.added.passages))
            tables.write(everything, Passage, chain(tables.rows(corpus, Passage), renamed))
            lucene.mkdir(exist_ok=True)
            indexed = index(everything, lucene, bm25=bm25)
            searcher = remembered(lambda deep: Searcher(indexed, bm25=bm25.model_copy(update={"depth": deep})))

            def search(rows: Sequence[int], deep: int) -> list[list[Hit]]:
                return searcher(deep).search([joined.questions[question].question for question in rows])

            tables.write(out, RankedAmong, _ranked(subset, search, depth))
            first = first_among(subset, search, depth)
            files.discard(folder)
        return first

    return rank


def first_among(joined: Joined, search: Search, depth: int) -> Values:
    """Return, for the questions with a positive and added passages of their own, if a positive is the best of both."""
    added_ids: dict[str, set[str]] = {}
    for row, question_id in enumerate(joined.added.question_ids):
        added_ids.setdefault(question_id, set()).add(f"{ADDED}{row}")
    sides = {
        place: ({*joined.positives[question.id]}, added_ids[question.id])
        for place, question in enumerate(joined.questions)
        if question.id in added_ids and question.id in joined.positives
    }
    first = {}
    for block in _blocks([*sides]):
        first |= _deepened(block, search, depth, lambda question, hits: _positive_first(hits, *sides[question]))
    return Values(np.array([*first], np.int64), np.array([*first.values()], np.float64))


def _ranked(joined: Joined, search: Search, depth: int) -> Iterator[RankedAmong]:
    """Yield the first `depth` of the corpus and the added passages, without any that do not join the ranking."""

    def keep_joining(question: int, hits: list[Hit]) -> tuple[list[Hit], bool]:
        rows = [row for name, _ in hits if (row := _row(name)) is not None]
        stays = dict(zip(rows, joined.joins(question, np.array(rows, dtype=np.int64)), strict=True))
        ranking = [hit for hit in hits if stays.get(_row(hit[0]), True)]
        return ranking, len(ranking) >= depth

    with progress("robustness", len(joined.questions), "questions") as advance:
        for block in _blocks(range(len(joined.questions))):
            for question, hits in sorted(_deepened(block, search, depth, keep_joining).items()):
                for place, (name, score) in enumerate(hits[:depth], start=1):
                    row = _row(name)
                    ids = name, None, None
                    if row is not None:
                        ids = None, joined.added.question_ids[row], int(joined.added.numbers[row])
                    yield RankedAmong(joined.questions[question].id, *ids, place, score)
            advance(len(block))


def _row(name: str) -> int | None:
    """Return the row of an added passage by its id, None for a passage of the corpus."""
    return int(name.removeprefix(ADDED)) if name.startswith(ADDED) else None


def _blocks(questions: Sequence[int]) -> Iterator[Sequence[int]]:
    return (questions[start : start + QUERIES] for start in range(0, len(questions), QUERIES))


def _deepened(
    questions: Sequence[int], search: Search, depth: int, judged: Callable[[int, list[Hit]], tuple[T, bool]]
) -> dict[int, T]:
    """Return the result of `judged` for the hits of each question. It also tells if these are enough: if not, and there
    are more, twice as many are retrieved."""
    results: dict[int, T] = {}
    while questions:
        short = []
        for question, hits in zip(questions, search(questions, depth), strict=True):
            results[question], enough = judged(question, hits)
            if not enough and len(hits) == depth:
                short.append(question)
        questions, depth = short, 2 * depth
    return results


def _positive_first(hits: list[Hit], positives: set[str], added: set[str]) -> tuple[bool, bool]:
    """Return if the best positive scores above all added passages of the question, and if the hits suffice to
    tell: when they have the positive alone, an added passage with the last hit's score may come next. A passage that
    shares no word with the question is no hit and scores 0."""
    best, rival = (next((score for name, score in hits if name in side), 0.0) for side in (positives, added))
    last = hits[-1][1] if hits else 0.0
    return best > rival + ROUNDED, rival > 0 or best > last + ROUNDED
