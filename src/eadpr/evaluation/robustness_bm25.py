"""BM25 as near-duplicates join the corpus: an index of both, in which everything is ranked anew.

To count how many stand before a ranked passage, as for vectors, would not do: with each text that joins, the weights of
words and the mean length change, and with them every score.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache as remembered
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np

from eadpr import cache, files, tables
from eadpr.evaluation.outcomes import Values
from eadpr.evaluation.question_tables import RankedAmong
from eadpr.evaluation.robustness import Joined, Joins, RobustnessInputs, RobustnessSettings
from eadpr.progress import progress
from eadpr.records import Passage
from eadpr.supervision.bm25 import BM25, QUERIES, Searcher, index

ADDED = "\U0010ffff"  # begins the ids of added passages: of equal scores the lesser id is first

ROUNDED = 5e-5  # half of what scores are rounded to: equal ones differ by less, so that they stand in an order

T = TypeVar("T")
Hit = tuple[str, float]  # id and score
Search = Callable[[Sequence[int], int], list[list[Hit]]]  # of questions, as deep as said; the best hit of each first


def rankings(given: Joined, inputs: RobustnessInputs, settings: RobustnessSettings) -> Callable[[int, Path], Values]:
    """As `robustness.Rankings`."""
    own: dict[str, list[int]] = {}
    for row, question_id in enumerate(given.added.question_ids):
        own.setdefault(question_id, []).append(row)
    beside = [
        (place, given.positives[question.id], own[question.id])
        for place, question in enumerate(given.questions)
        if question.id in own and question.id in given.positives
    ]

    def rank(count: int, out: Path) -> Values:
        joining = given.added.below(count)
        size = len(joining.passages)
        sides = {place: (positives, [row for row in rows if row < size]) for place, positives, rows in beside}
        return ranked_among(
            given._replace(added=joining), inputs.records / "passages.parquet", out, sides=sides,
            depth=settings.evaluate.depth, bm25=settings.bm25,
        )  # fmt: skip

    return rank


def ranked_among(
    given: Joined,
    corpus: Path,
    out: Path,
    *,
    sides: Mapping[int, tuple[Sequence[str], Sequence[int]]],
    depth: int,
    bm25: BM25,
) -> Values:
    """Write the table `out`: the first `depth` of the passages of the file `corpus` and those added.

    `sides` are for some of the questions ids of `corpus` and rows of what is added; of these the outcomes say whether
    the best is one of the former.
    """
    added, questions = given.added.passages, given.questions
    texts = hashlib.sha256()
    for one in added:
        texts.update(f"{one.title}\0{one.text}\0".encode())
    key = cache.fingerprint(cache.code(__file__), files.sha256(corpus), texts.hexdigest(), bm25.fields)
    with cache.workspace("robustness_bm25", key) as folder, progress("robustness", len(questions), "questions") as on:
        everything, lucene = folder / "passages.parquet", folder / "lucene"
        renamed = (one._replace(id=f"{ADDED}{row}") for row, one in enumerate(added))
        tables.write(everything, Passage, chain(tables.rows(corpus, Passage), renamed))
        lucene.mkdir(exist_ok=True)
        indexed = index(everything, lucene, bm25=bm25)
        searcher = remembered(lambda deep: Searcher(indexed, bm25=bm25.model_copy(update={"depth": deep})))

        def search(asked: Sequence[int], deep: int) -> list[list[Hit]]:
            return searcher(deep).search([questions[question].question for question in asked])

        tables.write(out, RankedAmong, _ranked(given, search, depth, on))
        first = {}
        for asked in _blocks([*sides]):
            first |= _deepened(asked, search, depth, lambda question, hits: _positive_first(hits, *sides[question]))
        files.discard(folder)
    return Values(np.array([*first], np.int64), np.array([*first.values()], np.float64))


def _ranked(given: Joined, search: Search, depth: int, advance: Callable[[int], None]) -> Iterator[RankedAmong]:
    def joined(question: int, hits: list[Hit]) -> tuple[list[Hit], bool]:
        kept = _without_strangers(question, hits, given.joins)
        return kept, len(kept) >= depth

    def told(name: str) -> tuple[str | None, str | None, int | None]:
        if not name.startswith(ADDED):
            return name, None, None
        row = int(name.removeprefix(ADDED))
        return None, given.added.question_ids[row], int(given.added.numbers[row])

    for asked in _blocks(range(len(given.questions))):
        for question, hits in sorted(_deepened(asked, search, depth, joined).items()):
            for place, (name, score) in enumerate(hits[:depth], start=1):
                yield RankedAmong(given.questions[question].id, *told(name), place, score)
        advance(len(asked))


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


def _positive_first(hits: list[Hit], positives: Sequence[str], added: Sequence[int]) -> tuple[bool, bool]:
    """Whether the best positive scores above all of the question's own added passages, and whether the hits tell that:
    where they have the positive alone, an added passage of the last hit's score may come next. What shares no word with
    the question is no hit and scores 0."""
    sides = {*positives}, {f"{ADDED}{row}" for row in added}
    best, other = (next((score for passage_id, score in hits if passage_id in side), 0.0) for side in sides)
    last = hits[-1][1] if hits else 0.0
    return best > other + ROUNDED, other > 0 or best > last + ROUNDED


def _without_strangers(question: int, hits: list[Hit], joins: Joins) -> list[Hit]:
    rows = [int(passage_id.removeprefix(ADDED)) for passage_id, _ in hits if passage_id.startswith(ADDED)]
    joined = joins(question, np.array(rows, dtype=np.int64))
    strangers = {f"{ADDED}{row}" for row, stays in zip(rows, joined, strict=True) if not stays}
    return [hit for hit in hits if hit[0] not in strangers]
