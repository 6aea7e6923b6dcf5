"""Exact search over vectors on disk, with a third of the memory that an index in memory needs.

Each side has its own process. Ours, once torch and FAISS are imported, may take a third of the bytes of the peer's
index and no more (`limit_memory`); the pages of the vectors' files are the kernel's, which takes them back when it
needs them. What was resident of either process at most, libraries and mapped pages too, stands beside.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import data
from benchmarks.runner import Comparison, Different, Goal, Side, Worker
from benchmarks.search_processes import Hits, load
from eadpr.runtime import files
from eadpr.search.vectors import DTYPE, MANIFEST, shard_name, shard_ranges


class Size(NamedTuple):
    rows: int
    dim: int
    questions: int
    depth: int
    limited: bool  # toy vectors are less than the libraries take


FULL = Size(rows=1_000_000, dim=384, questions=1_000, depth=100, limited=True)
QUICK = Size(rows=3_000, dim=16, questions=20, depth=10, limited=False)
PROCESSES = "benchmarks.search_processes"
SHARD = 32_768
SHARE = 3  # the peer's index over our memory; with a quarter FAISS was short of 6 MB on an Intel
TIE = 1e-5  # scores closer than this share of the highest are ties: float32 sums in another order


def comparisons(size: Size, folder: Path) -> Iterator[Comparison]:
    write_vectors(folder / "vectors", size)
    draw = np.random.default_rng(1)
    np.save(folder / "questions.npy", draw.standard_normal((size.questions, size.dim), np.float32))
    arguments = {"vectors": folder / "vectors", "questions": folder / "questions.npy", "depth": size.depth}
    index = size.rows * size.dim * np.dtype(np.float32).itemsize
    most = index // SHARE if size.limited else None
    arguments["machine"] = data.section("machine")
    with ExitStack() as stack:
        theirs = stack.enter_context(Worker(PROCESSES, "theirs", out=folder / "theirs", **arguments))
        ours = stack.enter_context(Worker(PROCESSES, "ours", most=most, out=folder / "ours", **arguments))

        def same(hits: Hits, expected: Hits) -> str:
            mib = [f"{worker.resident / 2**20:,.0f} MiB" for worker in (ours, theirs)]
            return f"{same_hits(hits, expected)}; resident at most {mib[0]}, the peer {mib[1]}"

        what = f"exact search of {size.rows:,} × {size.dim}" + (f" in {most / 2**20:.0f} MiB" if most else "")
        yield Comparison(
            path=what,
            peer=f"faiss IndexFlatIP, {index / 2**20:,.0f} MiB",
            goal=Goal("speed", 0.8),
            unit="questions",
            ours=side(ours, folder / "ours", size),
            theirs=side(theirs, folder / "theirs", size),
            same=same,
        )


def side(search: Worker, hits: Path, size: Size) -> Side:
    def result() -> Hits:
        search()
        return load(hits)

    return Side(lambda _: search(), result=result, units=size.questions)


def write_vectors(folder: Path, size: Size) -> None:
    """Random float16 vectors in the layout of `encode`."""
    draw = np.random.default_rng(0)
    with files.new_folder(folder) as new:
        for number, (first, end) in enumerate(shard_ranges(size.rows, SHARD)):
            np.save(new / shard_name(number), draw.standard_normal((end - first, size.dim), np.float32).astype(DTYPE))
        files.write_json(new / MANIFEST, {"rows": size.rows, "dim": size.dim, "shard_passages": SHARD})


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
