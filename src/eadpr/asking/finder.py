"""The passages that an arm ranks first for a question, from vectors and passages that are loaded once."""

from pathlib import Path
from typing import NamedTuple

from eadpr import machine
from eadpr.passages import PassageStore
from eadpr.records import Passage
from eadpr.search import exact
from eadpr.search.encode import embed
from eadpr.search.vectors import Vectors
from eadpr.training.encoder import load


class FoundPassage(NamedTuple):
    """`score` is the dot product of question and passage."""

    passage: Passage
    score: float


class Finder:
    """Exact search, so that no index is built or held: memory is that of `exact.search` for one question.

    Raises ValueError where `vectors` are not of the passages in `records`.
    """

    def __init__(self, records: Path, model: Path, vectors: Path) -> None:
        path = records / "passages.parquet"
        self._vectors = Vectors(vectors, path, model)
        self._store = PassageStore(path)
        self._encoder = load(model, "question").to(machine.device())

    def __call__(self, question: str, top: int) -> list[FoundPassage]:
        """The `top` best passages, best first; fewer where the corpus is smaller. ValueError for an empty question."""
        if not question.strip():
            raise ValueError("the question is empty; ask one")
        asked = embed(self._encoder, self._encoder.question_ids([question]), device=machine.device())
        hits = exact.search(self._vectors, asked, top, device=machine.device())
        rows = hits.rows[0][hits.rows[0] >= 0].tolist()
        store = self._store
        columns = zip(store.ids(rows), store.titles(rows), store.texts(rows), store.sentences(rows), strict=True)
        passages = [Passage(*column) for column in columns]
        return [FoundPassage(*pair) for pair in zip(passages, hits.scores[0].tolist(), strict=False)]
