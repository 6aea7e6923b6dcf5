"""How an arm and BM25 rank the corpus with near-duplicates (`evaluate.CorpusSearcher`).

An arm's near-duplicates, and the questions' positives, are encoded alone and scored as `exact` scores passages. They
join the arm's ranking, of equal scores behind it.

BM25 ranks everything again: with each text that joins, the weights of words and the mean length change, and with them
every score.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import chain, groupby, zip_longest
from operator import attrgetter, itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eadpr.robustness import evaluate
from eadpr.robustness.evaluate import CorpusSearcher, Hit, Joined, LookAlikes, OpenSearcher
from eadpr.robustness.evaluate import RobustnessInputs as Inputs
from eadpr.robustness.evaluate import RobustnessSettings as Settings
from eadpr.runtime import cache, files, machine
from eadpr.search import exact
from eadpr.search.encode import embed, encode
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage, Ranked
from eadpr.supervision import bm25
from eadpr.training.encoder import load

ADDED = "\U0010ffff"  # begins the ids of added passages in Lucene: of equal scores the lesser id is first
ROUNDED = 5e-5  # half of what BM25's scores are rounded to: equal ones differ by less, so that they stand in an order


@contextmanager
def prepare_dense(joined: Joined, inputs: Inputs, settings: Settings) -> Iterator[OpenSearcher]:
    """Encode the near-duplicates with the positives behind them; yields a function that opens a searcher."""
    of_questions = joined.look_alikes(len(joined.added)).values()
    positives = list(dict.fromkeys(chain.from_iterable(passage_ids for passage_ids, _ in of_questions)))
    row_of = {passage_id: row for row, passage_id in enumerate(positives, start=len(joined.added))}
    store = PassageStore(inputs.records / "passages.parquet")
    rows = store.rows(positives)
    texts = [(f"{row.question_id}#{row.number}", row.title, row.text) for row in joined.added]
    texts += zip(positives, store.titles(rows), store.texts(rows), strict=True)
    encoder = load(inputs.model, "question").to(machine.device())
    token_ids = encoder.question_ids([question.question for question in joined.questions])
    questions_QD = embed(encoder, token_ids, device=machine.device())
    ranked = read_scores(inputs.ranking / "evaluate.parquet")
    with tempfile.TemporaryDirectory() as folder:  # `encode` keeps the vectors by content
        passages, vectors = Path(folder) / "passages.parquet", Path(folder) / "vectors"
        tables.write(passages, Passage, [Passage(*fields, None) for fields in texts])
        encode(passages, inputs.model, vectors, settings=settings.encode, hardware=settings.hardware)
        stored = Vectors(vectors)

        def open_searcher(count: int) -> AbstractContextManager[CorpusSearcher]:
            def search(places: Sequence[int], depth: int) -> list[list[Hit]]:
                size, asked_QD = min(depth, count), questions_QD[list(places)]
                rows, scores = exact.search(stored.head(count), asked_QD, size, devices=machine.devices())
                results = []
                for place, near_duplicates in zip(places, map(zip, rows.tolist(), scores.tolist()), strict=True):
                    hits = [*ranked.get(joined.questions[place].id, ()), *near_duplicates]
                    results.append(sorted(hits, key=itemgetter(1), reverse=True)[:depth])  # keeps the order of equals
                return results

            own = joined.look_alikes(count)
            return nullcontext(CorpusSearcher(search, partial(compare_scores, own, row_of, stored, questions_QD)))

        yield open_searcher


def read_scores(ranking: Path) -> dict[str, list[Hit]]:
    groups = groupby(tables.rows(ranking, Ranked), key=attrgetter("question_id"))
    return {question_id: [(row.passage_id, row.score) for row in rows] for question_id, rows in groups}


def compare_scores(
    look_alikes: LookAlikes,
    row_of: Mapping[str, int],
    stored: Vectors,
    questions_QD: NDArray[np.float32],
    places: Sequence[int],
) -> list[bool]:
    """Of equal scores that of the near-duplicate counts, since it has the lesser row in `stored`."""
    sides = [look_alikes[place] for place in places]
    rows = [[*own, *(row_of[positive] for positive in positives)] for positives, own in sides]
    rows_QK = np.array(list(zip_longest(*rows, fillvalue=-1))).T
    best = exact.rescore(stored, questions_QD[list(places)], rows_QK, 1, device=machine.devices()[0])
    return [row not in own for row, (_, own) in zip(best.rows[:, 0].tolist(), sides, strict=True)]


def prepare_bm25(joined: Joined, inputs: Inputs, settings: Settings) -> AbstractContextManager[OpenSearcher]:
    """Return a function that opens a searcher for BM25: an index of corpus and near-duplicates."""
    return nullcontext(partial(open_index, joined, inputs, settings.bm25))


@contextmanager
def open_index(joined: Joined, inputs: Inputs, bm25_settings: bm25.BM25, count: int) -> Iterator[CorpusSearcher]:
    """Index the corpus with the first `count` near-duplicates; the index lasts as long as the block."""
    corpus = inputs.records / "passages.parquet"
    added = [Passage(f"{ADDED}{row}", *joined.added[row][-2:], None) for row in range(count)]
    key = cache.fingerprint(cache.code(__file__), files.sha256(corpus), added, bm25_settings.fields)
    with cache.workspace("robustness_bm25", key) as folder:
        everything, lucene = folder / "passages.parquet", folder / "lucene"
        tables.write(everything, Passage, chain(tables.rows(corpus, Passage), added))
        lucene.mkdir(exist_ok=True)
        indexed = bm25.index(everything, lucene, bm25=bm25_settings)

        def search(places: Sequence[int], depth: int) -> list[list[Hit]]:
            searcher = bm25.Searcher(indexed, bm25=bm25_settings.model_copy(update={"depth": depth}))
            rankings = searcher.search([joined.questions[place].question for place in places])
            return [[(read_name(name), score) for name, score in ranking] for ranking in rankings]

        yield CorpusSearcher(search, partial(compare_hits, joined.look_alikes(count), search, bm25_settings.depth))
        files.discard(folder)


def read_name(name: str) -> str | int:
    """Return the row of a near-duplicate, the id of a passage of the corpus."""
    return int(name.removeprefix(ADDED)) if name.startswith(ADDED) else name


def compare_hits(look_alikes: LookAlikes, search: evaluate.Search, depth: int, places: Sequence[int]) -> list[bool]:
    """A passage that shares no word with the question is no hit and scores 0."""

    def compare(place: int, hits: list[Hit]) -> tuple[bool, bool]:
        """When the hits have the positive alone, a near-duplicate with the last hit's score may come next."""
        sides = look_alikes[place]
        best, rival = (next((score for name, score in hits if name in side), 0.0) for side in sides)
        last = hits[-1][1] if hits else 0.0
        return best > rival + ROUNDED, rival > 0 or best > last + ROUNDED

    first = evaluate.deepen(search, places, depth, compare)
    return [first[place] for place in places]
