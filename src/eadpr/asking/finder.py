"""The passages that an arm ranks first for a question, from vectors and passages that are loaded once."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eadpr.asking.answers import Snippet
from eadpr.runtime import machine
from eadpr.search import exact
from eadpr.search.encode import embed
from eadpr.search.vectors import Vectors
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage
from eadpr.training.encoder import load


class FoundPassage(NamedTuple):
    """`score` is the dot product of question and passage."""

    passage: Passage
    score: float


class HeldVectors(Vectors):
    """Their shards stay mapped, so that what was loaded is searched even where its files are replaced meanwhile."""

    def __init__(self, *of: Path) -> None:
        self._held: dict[int, np.ndarray] = {}
        super().__init__(*of)

    def _shard(self, number: int) -> np.ndarray:
        if number not in self._held:
            self._held[number] = super()._shard(number)
        return self._held[number]


class Finder:
    """Exact search, so that no index is built or held: memory is that of `exact.search` for one question.

    Raises ValueError where `vectors` are not of the passages in `records`, nor of the model that was loaded.
    """

    def __init__(self, records: Path, model: Path, vectors: Path) -> None:
        path = records / "passages.parquet"
        self._vectors = HeldVectors(vectors, path, model)
        self._store = PassageStore(path)
        self._encoder, self._passage_encoder = (
            load(model, side).to(machine.device()) for side in ("question", "passage")
        )
        self._vectors.check(model)  # once more: what was loaded may be another by now

    def __call__(self, question: str, top: int) -> list[FoundPassage]:
        """The `top` best passages, best first; fewer where the corpus is smaller. ValueError for an empty question, and
        for one that UTF-8 cannot write."""
        if not question.strip():
            raise ValueError("the question is empty; ask one")
        try:
            question.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the question is not text at character {error.start}; write it in UTF-8") from None
        hits = exact.search(
            self._vectors, self._asked(question), min(top, self._vectors.rows), devices=machine.devices()
        )
        rows = hits.rows[0][hits.rows[0] >= 0].tolist()
        store = self._store
        columns = zip(store.ids(rows), store.titles(rows), store.texts(rows), store.sentences(rows), strict=True)
        passages = [Passage(*column) for column in columns]
        return [FoundPassage(*pair) for pair in zip(passages, hits.scores[0].tolist(), strict=False)]

    def similarities(self, questions: Sequence[str], snippets: Sequence[Snippet]) -> np.ndarray:
        """Shape (len(questions), len(snippets)): dot products with each snippet as a passage of its own."""
        ids = self._passage_encoder.passage_ids(*([getattr(one, name) for one in snippets] for name in Snippet._fields))
        return self._asked(*questions) @ embed(self._passage_encoder, ids, device=machine.device()).T

    def _asked(self, *questions: str) -> np.ndarray:
        return embed(self._encoder, self._encoder.question_ids(questions), device=machine.device())
