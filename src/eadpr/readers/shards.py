"""Rows of questions in shards that stay in the cache, so that a killed run resumes."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

from eadpr.runtime import cache
from eadpr.runtime.progress import progress
from eadpr.storage import tables

SHARD = 64  # questions: what a kill can cost

Item = TypeVar("Item")


def write_in_shards(
    out: Path,
    record: type,
    questions: Iterable[Item],
    make_rows: Callable[[Item], Iterable[tuple]],
    *,
    folder: Path,
    label: str,
    total: int,
) -> None:
    """Write the rows of every question to the table `out`, in order. `folder` holds the shards; it is a
    `cache.workspace` with everything that decides the rows in its key. Complete shards are not made again."""
    questions = iter(questions)
    done = min(SHARD * sum(1 for _ in folder.glob("*.parquet.sha256")), total)
    with tables.writing(out, record) as append, progress(label, total, "questions", done=done) as advance:

        def shard_rows(shard: list[Item]) -> Iterator[tuple]:
            for question in shard:
                yield from make_rows(question)
                advance(1)

        number = 0
        while shard := list(islice(questions, SHARD)):
            path = folder / f"{number:06d}.parquet"
            if not cache.intact(path):
                tables.write(path, record, shard_rows(shard))
                cache.seal(path)
            append(tables.read(path, record))
            number += 1
