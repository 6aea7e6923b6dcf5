"""The passages that an arm ranks first for a question, from vectors and passages that are loaded once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from eadpr import machine
from eadpr.passages import PassageStore
from eadpr.records import Passage, Span
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
        self._vectors = Vectors(vectors, path)
        self._store, self._sentences = PassageStore(path), GivenSentences(path)
        self._encoder = load(model, "question").to(machine.device())

    def __call__(self, question: str, top: int) -> list[FoundPassage]:
        """The `top` best passages, best first; fewer where the corpus is smaller. ValueError for an empty question."""
        if not question.strip():
            raise ValueError("the question is empty; ask one")
        asked = embed(self._encoder, self._encoder.question_ids([question]), device=machine.device())
        hits = exact.search(self._vectors, asked, top, device=machine.device())
        rows = hits.rows[0][hits.rows[0] >= 0].tolist()
        store = self._store
        columns = zip(store.ids(rows), store.titles(rows), store.texts(rows), self._sentences(rows), strict=True)
        passages = [Passage(*column) for column in columns]
        return [FoundPassage(*pair) for pair in zip(passages, hits.scores[0].tolist(), strict=False)]


class GivenSentences:
    """The sentences that the source gave of single passages, by row; None where it gave none."""

    def __init__(self, path: Path) -> None:
        self._file = pq.ParquetFile(path, memory_map=True)
        groups = self._file.metadata
        self._firsts = np.cumsum([0, *(groups.row_group(i).num_rows for i in range(groups.num_row_groups))])

    def __call__(self, rows: Sequence[int]) -> list[list[Span] | None]:
        """Loads one column of the row groups that hold the rows."""
        groups = (np.searchsorted(self._firsts, rows, side="right") - 1).tolist()
        columns = {i: self._file.read_row_group(i, columns=["sentences"])["sentences"] for i in set(groups)}
        given = [columns[i][row - int(self._firsts[i])].as_py() for i, row in zip(groups, rows, strict=True)]
        return [None if spans is None else [Span(**span) for span in spans] for spans in given]
