"""BM25 rankings and which of the ranked passages hold an answer, against Pyserini's rankings alone."""

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from benchmarks import data
from benchmarks.runner import Comparison, Goal, Side, equal
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Question
from eadpr.supervision.bm25 import BM25, Searcher, index
from eadpr.text.answers import AnswerMatcher

BLOCK = 512  # questions whose passages are held at once
Ranking = list[tuple[str, float]]  # passage id, score


class Size(NamedTuple):
    passages: int
    questions: int


FULL = Size(passages=42_000, questions=1_000)
QUICK = Size(passages=210, questions=10)


def comparisons(size: Size, folder: Path) -> list[Comparison]:
    atlas, bm25 = data.atlas(size.passages), BM25(**data.section("bm25"))
    questions = [pair.question for pair in islice(data.pairs(atlas), size.questions)]
    passages = data.records(atlas, folder) / "passages.parquet"
    (folder / "index").mkdir()
    built = index(passages, folder / "index", bm25=bm25)
    searcher, store = Searcher(built, bm25=bm25), PassageStore(passages)
    peer = Pyserini(built, bm25)
    return [
        Comparison(
            path="BM25 ranking and answer filter",
            peer="Pyserini's batch_search alone",
            goal=Goal("time", 1.15),
            unit="questions",
            ours=Side(
                lambda _: rank_and_filter(searcher, store, questions),
                result=lambda: rank_and_filter(searcher, store, questions)[0],
                units=len(questions),
            ),
            theirs=Side(
                lambda _: peer.search(questions), result=lambda: peer.rankings(questions), units=len(questions)
            ),
            same=equal("rankings with scores"),
        )
    ]


def rank_and_filter(
    searcher: Searcher, store: PassageStore, questions: Sequence[Question]
) -> tuple[list[Ranking], list[list[bool]]]:
    """Return rankings and where they hold an answer, as the stages `bm25` and `negatives` do, without their files."""
    matcher = AnswerMatcher()
    rankings = searcher.search([question.question for question in questions])
    matches = []
    for start in range(0, len(questions), BLOCK):
        block = rankings[start : start + BLOCK]
        ids = sorted({passage_id for ranking in block for passage_id, _ in ranking})
        texts = dict(zip(ids, store.texts(store.rows(ids)), strict=True))
        for question, ranking in zip(questions[start : start + BLOCK], block, strict=True):
            ranked_texts = [texts[passage_id] for passage_id, _ in ranking]
            matches.append(matcher.matches(question.answers, ranked_texts, question.answer_kind).tolist())
    return rankings, matches


class Pyserini:
    """In the JVM that our own searcher has started."""

    def __init__(self, built: Path, bm25: BM25) -> None:
        os.environ.setdefault("OPENAI_API_KEY", "not used")  # without it, the import fails
        from pyserini.search.lucene import LuceneSearcher

        self._searcher = LuceneSearcher(str(built))
        self._searcher.set_bm25(bm25.k1, bm25.b)
        self._depth = bm25.depth

    def search(self, questions: Sequence[Question]) -> dict:
        ids = [str(i) for i in range(len(questions))]
        texts = [question.question for question in questions]
        return self._searcher.batch_search(texts, ids, k=self._depth, threads=len(os.sched_getaffinity(0)))

    def rankings(self, questions: Sequence[Question]) -> list[Ranking]:
        hits = self.search(questions)
        return [[(hit.docid, hit.score) for hit in hits[str(i)]] for i in range(len(questions))]
