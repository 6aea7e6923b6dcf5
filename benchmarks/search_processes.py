"""The two sides of the exact search, each for a process of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.runner import limit_memory
from eadpr.search.vectors import Vectors

ADDED = 65_536  # rows given to the peer's index at a time


class Hits(NamedTuple):
    """(questions, depth), best first."""

    rows: np.ndarray
    scores: np.ndarray


def load(folder: Path) -> Hits:
    return Hits(np.load(folder / "rows.npy"), np.load(folder / "scores.npy"))


def ours(
    vectors: str, questions: str, depth: int, out: str, machine: dict[str, Any], most: int | None
) -> Callable[[], None]:
    from eadpr.runtime.machine import Machine, settle

    settle(Machine(**machine))
    import faiss

    from eadpr.search import exact

    faiss.omp_set_num_threads(machine["threads"])
    if most is not None:  # where memory ends while a library is imported, the process crashes
        limit_memory(most)
    corpus, queries = Vectors(Path(vectors)), np.load(questions)
    return _saving(Path(out), lambda: Hits(*exact.search(corpus, queries, depth)))


def theirs(vectors: str, questions: str, depth: int, out: str, machine: dict[str, Any]) -> Callable[[], None]:
    import faiss

    faiss.omp_set_num_threads(machine["threads"])
    corpus, queries = Vectors(Path(vectors)), np.load(questions)
    index = faiss.IndexFlatIP(corpus.dim)
    for _, block in corpus.blocks(ADDED):
        index.add(block.astype(np.float32))

    def search() -> Hits:
        scores, rows = index.search(queries, depth)
        return Hits(rows, scores)

    return _saving(Path(out), search)


def _saving(folder: Path, search: Callable[[], Hits]) -> Callable[[], None]:
    folder.mkdir()

    def run() -> None:
        hits = search()
        np.save(folder / "rows.npy", hits.rows)
        np.save(folder / "scores.npy", hits.scores)

    return run
