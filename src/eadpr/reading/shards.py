"""Rows about questions in shards that stay in the cache, so that a killed run goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import TypeVar

from eadpr import tables
from eadpr.progress import progress

SHARD = 64  # questions: what a kill can cost

Asked = TypeVar("Asked")


def shards(
    folder: Path,
    record: type,
    asked: Iterable[Asked],
    rows_of: Callable[[Asked], Iterable[tuple]],
    *,
    label: str,
    total: int,
) -> Iterator[Path]:
    """A table of the rows of every SHARD questions, in their order; what `folder` holds already is not made again.

    `folder` is a `cache.workspace` whose key changes with all that decides the rows.
    """
    kept = min(SHARD * sum(1 for _ in folder.glob("*.parquet")), total)
    questions = iter(asked)
    with progress(label, total, "questions", done=kept) as advance:

        def rows(shard: list[Asked]) -> Iterator[tuple]:
            for one in shard:
                yield from rows_of(one)
                advance(1)

        for number in count():
            shard = list(islice(questions, SHARD))
            if not shard:
                return
            path = folder / f"{number:06d}.parquet"
            if not path.exists():
                tables.write(path, record, rows(shard))
            yield path
