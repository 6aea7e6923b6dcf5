"""Rows about questions in shards that stay in the cache, so that a killed run goes on where it was."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

from eadpr.runtime import cache
from eadpr.runtime.progress import progress
from eadpr.storage import tables

SHARD = 64  # questions: what a kill can cost

Asked = TypeVar("Asked")


def write(
    out: Path,
    record: type,
    asked: Iterable[Asked],
    rows_of: Callable[[Asked], Iterable[tuple]],
    *,
    folder: Path,
    label: str,
    total: int,
) -> None:
    """Write the rows of every question to the table `out`, in order. The shards are in `folder`, a `cache.workspace`
    whose key changes with all that decides the rows; those that are there already are not made again."""
    questions = iter(asked)
    done = min(SHARD * sum(1 for _ in folder.glob("*.parquet.sha256")), total)
    with tables.writing(out, record) as append, progress(label, total, "questions", done=done) as advance:

        def rows(shard: list[Asked]) -> Iterator[tuple]:
            for one in shard:
                yield from rows_of(one)
                advance(1)

        number = 0
        while shard := list(islice(questions, SHARD)):
            path = folder / f"{number:06d}.parquet"
            if not cache.intact(path):
                tables.write(path, record, rows(shard))
                cache.seal(path)
            append(tables.read(path, record))
            number += 1
