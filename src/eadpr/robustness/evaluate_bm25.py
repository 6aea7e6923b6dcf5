"""BM25 as near-duplicates join the corpus: an index of both, in which everything is ranked again.

To count how many stand before a ranked passage, as for vectors, would not do: with each text that joins, the weights of
words and the mean length change, and with them every score.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import chain
from pathlib import Path

from eadpr.robustness.evaluate import Hit, Joined, OpenSearcher, RobustnessInputs, RobustnessSettings, deepen
from eadpr.runtime import cache, files
from eadpr.storage import tables
from eadpr.storage.records import Passage
from eadpr.supervision.bm25 import BM25, Searcher, index

ADDED = "\U0010ffff"  # begins the ids of added passages: of equal scores the lesser id is first
ROUNDED = 5e-5  # half of what scores are rounded to: equal ones differ by less, so that they stand in an order


def prepare(
    joined: Joined, inputs: RobustnessInputs, settings: RobustnessSettings
) -> AbstractContextManager[OpenSearcher]:
    return nullcontext(partial(open_index, joined, inputs, settings.bm25))


@contextmanager
def open_index(joined: Joined, inputs: RobustnessInputs, bm25: BM25, count: int) -> Iterator["Bm25Searcher"]:
    """Index the corpus with the first `count` near-duplicates; the index lasts as long as the block."""
    corpus = inputs.records / "passages.parquet"
    added = [Passage(f"{ADDED}{row}", *joined.added[row][-2:], None) for row in range(count)]
    key = cache.fingerprint(cache.code(__file__), files.sha256(corpus), added, bm25.fields)
    with cache.workspace("robustness_bm25", key) as folder:
        everything, lucene = folder / "passages.parquet", folder / "lucene"
        tables.write(everything, Passage, chain(tables.rows(corpus, Passage), added))
        lucene.mkdir(exist_ok=True)
        yield Bm25Searcher(joined, count, index(everything, lucene, bm25=bm25), bm25)
        files.discard(folder)


class Bm25Searcher:
    """A `Searcher` in the Lucene index of the corpus and the first `count` near-duplicates."""

    def __init__(self, joined: Joined, count: int, indexed: Path, bm25: BM25) -> None:
        self._joined, self._count, self._indexed, self._bm25 = joined, count, indexed, bm25

    def search(self, places: Sequence[int], depth: int) -> list[list[Hit]]:
        searcher = Searcher(self._indexed, bm25=self._bm25.model_copy(update={"depth": depth}))
        rankings = searcher.search([self._joined.questions[place].question for place in places])
        return [
            [(int(name.removeprefix(ADDED)) if name.startswith(ADDED) else name, score) for name, score in ranking]
            for ranking in rankings
        ]

    def positive_first(self, places: Sequence[int]) -> list[bool]:
        """A passage that shares no word with the question is no hit and scores 0."""
        look_alikes = self._joined.look_alikes(self._count)

        def compare(place: int, hits: list[Hit]) -> tuple[bool, bool]:
            """When the hits have the positive alone, a near-duplicate with the last hit's score may come next."""
            sides = look_alikes[place]
            best, rival = (next((score for name, score in hits if name in side), 0.0) for side in sides)
            last = hits[-1][1] if hits else 0.0
            return best > rival + ROUNDED, rival > 0 or best > last + ROUNDED

        first = deepen(self.search, places, self._bm25.depth, compare)
        return [first[place] for place in places]
