"""Exact search over vectors on disk, with a quarter of the memory that an index in memory needs.

Each side has its own process. Ours may hold no more than a quarter of what is resident of the peer's after a search
(see `Worker`); the pages of the vectors' files are the kernel's, which takes them back when it needs them. How the
search fares when it has none of them is the second row: before each run they are dropped, so that every byte is read
from the disk again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import data
from benchmarks.runner import Comparison, Different, Goal, Side, Worker
from eadpr import files
from eadpr.search.vectors import DTYPE, MANIFEST, Vectors, shard_name, shard_ranges


class Size(NamedTuple):
    rows: int
    dim: int
    questions: int
    depth: int
    limited: bool  # toy vectors are less than the libraries take


FULL = Size(rows=1_000_000, dim=384, questions=1_000, depth=100, limited=True)
QUICK = Size(rows=3_000, dim=16, questions=20, depth=10, limited=False)
SHARD = 32_768
SHARE = 4  # the peer's memory over ours
TIE = 1e-5  # scores closer than this share of the highest are ties: float32 sums in another order
ADDED = 65_536  # rows given to the peer's index at a time


class Hits(NamedTuple):
    """(questions, depth), best first."""

    rows: np.ndarray
    scores: np.ndarray


def comparisons(size: Size, folder: Path) -> Iterator[Comparison]:
    write_vectors(folder / "vectors", size)
    draw = np.random.default_rng(1)
    np.save(folder / "questions.npy", draw.standard_normal((size.questions, size.dim), np.float32))
    given = {"vectors": folder / "vectors", "questions": folder / "questions.npy", "depth": size.depth}
    with ExitStack() as stack:
        theirs = stack.enter_context(Worker(__name__, "their_search", out=folder / "theirs", **given))
        theirs()
        needed = theirs.memory()["VmRSS"]
        limit = needed // SHARE if size.limited else None
        ours = stack.enter_context(Worker(__name__, "our_search", data_bytes=limit, out=folder / "ours", **given))
        ours()
        memory = "no limit" if limit is None else f"{limit / 2**20:.0f} MiB"
        for path, ready in (("", lambda: None), (", from disk", lambda: evict(folder / "vectors"))):
            yield Comparison(
                path=f"exact search of {size.rows:,} × {size.dim}{path} ({memory})",
                peer=f"faiss IndexFlatIP ({needed / 2**20:.0f} MiB)",
                goal=Goal("speed", 0.8),
                unit="questions",
                ours=side(ours, folder / "ours", size, ready),
                theirs=side(theirs, folder / "theirs", size, lambda: None),
                same=same_hits,
            )


def side(search: Worker, found: Path, size: Size, ready: Callable[[], None]) -> Side:
    def result() -> Hits:
        search()
        return Hits(np.load(found / "rows.npy"), np.load(found / "scores.npy"))

    return Side(lambda _: search(), ready=ready, result=result, units=size.questions)


def write_vectors(folder: Path, size: Size) -> None:
    """Random float16 vectors in the layout of `encode`."""
    draw = np.random.default_rng(0)
    with files.new_folder(folder) as made:
        for number, (first, end) in enumerate(shard_ranges(size.rows, SHARD)):
            np.save(made / shard_name(number), draw.standard_normal((end - first, size.dim), np.float32).astype(DTYPE))
        files.write_json(made / MANIFEST, {"rows": size.rows, "dim": size.dim, "shard_passages": SHARD})


def evict(folder: Path) -> None:
    """Drop the pages of the files from the page cache."""
    for path in folder.iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def our_search(vectors: str, questions: str, depth: int, out: str) -> Callable[[], None]:
    from eadpr.search import exact

    corpus, asked = Vectors(Path(vectors)), np.load(questions)
    return _saving(Path(out), lambda: Hits(*exact.search(corpus, asked, depth)))


def their_search(vectors: str, questions: str, depth: int, out: str) -> Callable[[], None]:
    import faiss

    corpus, asked = Vectors(Path(vectors)), np.load(questions)
    faiss.omp_set_num_threads(data.threads())
    index = faiss.IndexFlatIP(corpus.dim)
    for _, block in corpus.blocks(ADDED):
        index.add(block.astype(np.float32))

    def search() -> Hits:
        scores, rows = index.search(asked, depth)
        return Hits(rows, scores)

    return _saving(Path(out), search)


def _saving(folder: Path, search: Callable[[], Hits]) -> Callable[[], None]:
    folder.mkdir()

    def run() -> None:
        found = search()
        np.save(folder / "rows.npy", found.rows)
        np.save(folder / "scores.npy", found.scores)

    return run


def same_hits(ours: Hits, theirs: Hits) -> str:
    """The same rows with the same scores; another row may stand in the place of one only where their scores tie."""
    if ours.rows.shape != theirs.rows.shape:
        raise Different(f"hits have the shapes {ours.rows.shape} and {theirs.rows.shape}")
    tie = TIE * float(np.abs(theirs.scores).max())
    moved = 0
    for number, (rows, scores, their_rows, their_scores) in enumerate(zip(*ours, *theirs, strict=True)):
        theirs_of = dict(zip(their_rows.tolist(), their_scores.tolist(), strict=True))
        for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
            expected = theirs_of.get(row, float(their_scores[-1]))
            if not abs(expected - score) <= tie:
                raise Different(f"question {number}: row {row} has score {score}, the peer's is {expected}")
        if len(set(rows.tolist())) < len(rows) or np.abs(scores - their_scores).max() > tie:
            raise Different(f"question {number}: the scores by rank differ, or a row stands twice")
        moved += int((rows != their_rows).sum())
    return f"same rows but for {moved:,} of {ours.rows.size:,} places with ties"
