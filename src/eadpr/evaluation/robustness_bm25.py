"""BM25 as near-duplicates join the corpus: an index of both, in which everything is ranked anew.

To count how many stand before a ranked passage, as for vectors, would not do: with each text that joins, the weights of
words and the mean length change, and with them every score.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache as remembered
from itertools import chain
from pathlib import Path

import numpy as np

from eadpr import cache, files, tables
from eadpr.progress import progress
from eadpr.records import Passage, Question, Ranked
from eadpr.search.displacement import Joins
from eadpr.supervision.bm25 import BM25, QUERIES, Searcher, index

ADDED = "\U0010ffff"  # begins the ids of added passages: of equal scores the lesser id is first

Hit = tuple[str, float]  # id and score
Search = Callable[[list[str], int], list[list[Hit]]]  # of texts, as deep as said; the best hit of each first


def rank(
    corpus: Path,
    added: Sequence[Passage],
    questions: Sequence[Question],
    out: Path,
    *,
    joins: Joins,
    depth: int,
    bm25: BM25,
) -> None:
    """Write the table `out` of `Ranked`: the passages of the file `corpus` among the first `depth` of these and those
    `added`. The latter are left out, so that ranks have gaps where they stand.

    `joins(question, rows)` says which rows of `added` join that question's ranking at all.
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
        ranked = _ranked(questions, lambda texts, deep: searcher(deep).search(texts), joins, depth, on)
        tables.write(out, Ranked, ranked)
        files.discard(folder)


def _ranked(
    questions: Sequence[Question], search: Search, joins: Joins, depth: int, advance: Callable[[int], None]
) -> Iterator[Ranked]:
    for start in range(0, len(questions), QUERIES):
        block = range(start, min(start + QUERIES, len(questions)))
        for question, hits in zip(block, _joined(questions, block, search, joins, depth), strict=True):
            for place, (passage_id, score) in enumerate(hits[:depth], start=1):
                if not passage_id.startswith(ADDED):
                    yield Ranked(questions[question].id, passage_id, place, score)
        advance(len(block))


def _joined(questions: Sequence[Question], block: range, search: Search, joins: Joins, depth: int) -> list[list[Hit]]:
    """Each question's hits without added passages that do not join: `depth` of them, or all there are. Where too few
    are left of so many, twice as many are asked for."""
    found: dict[int, list[Hit]] = {}
    waiting, deep = list(block), depth
    while waiting:
        texts = [questions[question].question for question in waiting]
        short = []
        for question, hits in zip(waiting, search(texts, deep), strict=True):
            found[question] = _without_strangers(question, hits, joins)
            if len(found[question]) < depth and len(hits) == deep:
                short.append(question)
        waiting, deep = short, 2 * deep
    return [found[question] for question in block]


def _without_strangers(question: int, hits: list[Hit], joins: Joins) -> list[Hit]:
    rows = [int(passage_id.removeprefix(ADDED)) for passage_id, _ in hits if passage_id.startswith(ADDED)]
    joined = joins(question, np.array(rows, dtype=np.int64))
    strangers = {f"{ADDED}{row}" for row, stays in zip(rows, joined, strict=True) if not stays}
    return [hit for hit in hits if hit[0] not in strangers]
