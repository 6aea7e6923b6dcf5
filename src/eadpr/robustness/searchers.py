"""How an arm and BM25 rank the corpus with near-duplicates (`evaluate.Search`).

An arm's near-duplicates are encoded alone and scored as `exact` scores passages. They join the arm's ranking, of equal
scores behind it.

BM25 ranks everything again: with each text that joins, the weights of words and the mean length change, and with them
every score.
"""

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from pathlib import Path

from eadpr.robustness.evaluate import Hit, Joined, Search
from eadpr.robustness.evaluate import RobustnessInputs as Inputs
from eadpr.robustness.evaluate import RobustnessSettings as Settings
from eadpr.runtime import cache, files, machine
from eadpr.search import exact
from eadpr.search.encode import embed, encode
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.records import Passage, Ranked
from eadpr.supervision import bm25
from eadpr.training.encoder import load

ADDED = "\U0010ffff"  # begins the ids of added passages in Lucene: of equal scores the lesser id is first


def search_dense(joined: Joined, inputs: Inputs, settings: Settings) -> Iterator[Search]:
    """Encode the near-duplicates; yield the arm's search with those of each count."""
    texts = [Passage(f"{row.question_id}#{row.number}", row.title, row.text, None) for row in joined.added]
    encoder = load(inputs.model, "question").to(machine.device())
    token_ids = encoder.question_ids([question.question for question in joined.questions])
    questions_QD = embed(encoder, token_ids)
    ranked = read_scores(inputs.ranking / "evaluate.parquet")
    with tempfile.TemporaryDirectory() as folder:  # `encode` keeps the vectors by content
        passages, vectors = Path(folder) / "passages.parquet", Path(folder) / "vectors"
        tables.write(passages, Passage, texts)
        encode(passages, inputs.model, vectors, settings=settings.encode, hardware=settings.hardware)
        stored = Vectors(vectors)

        def search(count: int, places: Sequence[int], depth: int) -> list[list[Hit]]:
            size, asked_QD = min(depth, count), questions_QD[list(places)]
            rows, scores = exact.search(stored.head(count), asked_QD, size, devices=machine.devices())
            results = []
            for place, near_duplicates in zip(places, map(zip, rows.tolist(), scores.tolist()), strict=True):
                hits = [*ranked.get(joined.questions[place].id, ()), *near_duplicates]
                results.append(sorted(hits, key=itemgetter(1), reverse=True)[:depth])  # keeps the order of equals
            return results

        yield from (partial(search, count) for count in joined.sizes(settings.robustness.counts))


def read_scores(ranking: Path) -> dict[str, list[Hit]]:
    groups = groupby(tables.rows(ranking, Ranked), key=attrgetter("question_id"))
    return {question_id: [(row.passage_id, row.score) for row in rows] for question_id, rows in groups}


def search_bm25(joined: Joined, inputs: Inputs, settings: Settings) -> Iterator[Search]:
    """Yield BM25's search of an index of corpus and near-duplicates for each count; an index lasts until the next."""
    corpus = inputs.records / "passages.parquet"
    for count in joined.sizes(settings.robustness.counts):
        added = [Passage(f"{ADDED}{row}", *joined.added[row][-2:], None) for row in range(count)]
        key = cache.fingerprint(cache.code(__file__), files.sha256(corpus), added)
        with cache.workspace("robustness_bm25", key) as folder:
            everything, lucene = folder / "passages.parquet", folder / "lucene"
            tables.write(everything, Passage, chain(tables.rows(corpus, Passage), added))
            lucene.mkdir(exist_ok=True)
            indexed = bm25.index(everything, lucene, bm25=settings.bm25)
            yield partial(search_index, indexed, joined, settings.bm25)
            files.discard(folder)


def search_index(
    indexed: Path, joined: Joined, settings: bm25.BM25, places: Sequence[int], depth: int
) -> list[list[Hit]]:
    searcher = bm25.Searcher(indexed, bm25=settings.model_copy(update={"depth": depth}))
    rankings = searcher.search([joined.questions[place].question for place in places])
    return [[(read_name(name), score) for name, score in ranking] for ranking in rankings]


def read_name(name: str) -> str | int:
    """Return the row of a near-duplicate, the id of a passage of the corpus."""
    return int(name.removeprefix(ADDED)) if name.startswith(ADDED) else name
