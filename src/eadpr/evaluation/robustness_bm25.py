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
from eadpr.evaluation.question_tables import RankedAmong
from eadpr.progress import progress
from eadpr.records import Passage, Question, Ranked
from eadpr.search.displacement import Joins
from eadpr.supervision.bm25 import BM25, QUERIES, Searcher, index

ADDED = "\U0010ffff"  # begins the ids of added passages: of equal scores the lesser id is first

ROUNDED = 5e-5  # half of what scores are rounded to: equal ones differ by less, so that they stand in an order

T = TypeVar("T")
Hit = tuple[str, float]  # id and score
Search = Callable[[Sequence[int], int], list[list[Hit]]]  # of questions, as deep as said; the best hit of each first


def rank(
    corpus: Path,
    added: Sequence[Passage],
    questions: Sequence[Question],
    out: Path,
    *,
    joins: Joins,
    sides: Mapping[int, tuple[Sequence[str], Sequence[int]]],
    depth: int,
    bm25: BM25,
) -> dict[int, bool]:
    """Write the table `out` of `Ranked`: the first `depth` of the passages of the file `corpus` and those `added`, the
    ids of which are ADDED and their row.

    `joins(question, rows)` says which rows of `added` join that question's ranking at all. `sides` are for some of the
    questions ids of `corpus` and rows of `added`; returns whether the best of these is one of the former.
    """
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

        tables.write(out, Ranked, _ranked(questions, search, joins, depth, on))
        first = {}
        for asked in _blocks([*sides]):
            first |= _deepened(asked, search, depth, lambda question, hits: _positive_first(hits, *sides[question]))
        files.discard(folder)
    return first


def split(ranked: Path, of_corpus: Path, added: Mapping[int, tuple[str, int]]) -> Iterator[RankedAmong]:
    """What `rank` wrote, with the question and the number of each row of `added`. To the table `of_corpus` goes what it
    ranks of the corpus alone, with gaps in the ranks where added passages stand."""
    rows = tables.rows(ranked, Ranked)
    tables.write(of_corpus, Ranked, (row for row in rows if not row.passage_id.startswith(ADDED)))
    return (_told(row, added) for row in tables.rows(ranked, Ranked))


def _told(row: Ranked, added: Mapping[int, tuple[str, int]]) -> RankedAmong:
    if row.passage_id.startswith(ADDED):
        return RankedAmong(row.question_id, None, *added[int(row.passage_id.removeprefix(ADDED))], *row[2:])
    return RankedAmong(row.question_id, row.passage_id, None, None, *row[2:])


def _ranked(
    questions: Sequence[Question], search: Search, joins: Joins, depth: int, advance: Callable[[int], None]
) -> Iterator[Ranked]:
    def joined(question: int, hits: list[Hit]) -> tuple[list[Hit], bool]:
        kept = _without_strangers(question, hits, joins)
        return kept, len(kept) >= depth

    for asked in _blocks(range(len(questions))):
        for question, hits in sorted(_deepened(asked, search, depth, joined).items()):
            for place, (passage_id, score) in enumerate(hits[:depth], start=1):
                yield Ranked(questions[question].id, passage_id, place, score)
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
