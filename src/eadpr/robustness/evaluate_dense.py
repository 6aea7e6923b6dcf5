"""An arm as near-duplicates join the corpus: these, and the questions' positives, are encoded alone and scored as
`exact` scores passages; near-duplicates then join the arm's ranking, of equal scores behind it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain, groupby, zip_longest
from operator import attrgetter, itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eadpr.robustness.evaluate import Hit, Joined, OpenSearcher, RobustnessInputs, RobustnessSettings
from eadpr.runtime import cache, files, machine
from eadpr.search import exact
from eadpr.search.encode import embed, encode
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage, Ranked
from eadpr.training.encoder import load


@contextmanager
def prepare(joined: Joined, inputs: RobustnessInputs, settings: RobustnessSettings) -> Iterator[OpenSearcher]:
    """Encode the near-duplicates with the positives behind them; yields a function that returns a `DenseSearcher`."""
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
    key = cache.fingerprint(files.tree_sha256(inputs.model), files.tree_sha256(inputs.near_duplicates))
    # `encode` keeps vectors by content, so that other counts with the same highest one encode nothing.
    with cache.workspace("robustness", key) as folder:
        passages, vectors = folder / "passages.parquet", folder / "vectors"
        tables.write(passages, Passage, [Passage(*fields, None) for fields in texts])
        encode(passages, inputs.model, vectors, settings=settings.encode, hardware=settings.hardware)
        stored = Vectors(vectors)
        yield lambda count: nullcontext(DenseSearcher(joined, count, stored, row_of, questions_QD, ranked))
        files.discard(folder)


def read_scores(ranking: Path) -> dict[str, list[Hit]]:
    groups = groupby(tables.rows(ranking, Ranked), key=attrgetter("question_id"))
    return {question_id: [(row.passage_id, row.score) for row in rows] for question_id, rows in groups}


class DenseSearcher:
    """A `Searcher` among the first `count` near-duplicates.

    `stored` has the vectors of all near-duplicates, then of positives, in rows `row_of`; `ranked` is the arm's ranking.
    """

    def __init__(
        self,
        joined: Joined,
        count: int,
        stored: Vectors,
        row_of: Mapping[str, int],
        questions_QD: NDArray[np.float32],
        ranked: Mapping[str, list[Hit]],
    ) -> None:
        self._joined, self._count = joined, count
        self._stored, self._row_of, self._questions_QD, self._ranked = stored, row_of, questions_QD, ranked

    def search(self, places: Sequence[int], depth: int) -> list[list[Hit]]:
        joining, asked_QD = self._stored.head(self._count), self._questions_QD[list(places)]
        rows, scores = exact.search(joining, asked_QD, min(depth, self._count), devices=machine.devices())
        results = []
        for place, near_duplicates in zip(places, map(zip, rows.tolist(), scores.tolist()), strict=True):
            hits = [*self._ranked.get(self._joined.questions[place].id, ()), *near_duplicates]
            results.append(sorted(hits, key=itemgetter(1), reverse=True)[:depth])  # keeps the order of equals
        return results

    def positive_first(self, places: Sequence[int]) -> list[bool]:
        look_alikes = self._joined.look_alikes(self._count)
        rows = [
            [*own, *(self._row_of[positive] for positive in positives)]
            for positives, own in (look_alikes[place] for place in places)
        ]
        rows_QK = np.array(list(zip_longest(*rows, fillvalue=-1))).T
        asked_QD = self._questions_QD[list(places)]
        best = exact.rescore(self._stored, asked_QD, rows_QK, 1, device=machine.devices()[0])
        return (best.rows[:, 0] >= len(self._joined.added)).tolist()  # of equals the near-duplicate has the lesser row
