"""The one place that opens DuckDB, which joins, groups, orders and samples tables that may be larger than memory.

Every query whose rows are kept orders them by explicit keys, so that no byte depends on the number of threads.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from eadpr import cache, tables

MEMORY = "512MiB"  # what one connection may hold before it spills to disk, unless $EADPR_MEMORY says otherwise
POSITION = "file_row_number"  # in every view: a row's place in its file, counted from 0


@contextmanager
def connect() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory that spills to the cache folder and is gone after the block.

    Raises MemoryError where a query needs more than $EADPR_MEMORY even so, OSError where the disk is full.
    """
    cache.root().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="spill-", dir=cache.root()) as spill:
        settings = {
            "memory_limit": os.environ.get("EADPR_MEMORY", MEMORY),
            "threads": len(os.sched_getaffinity(0)),
            "temp_directory": spill,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        with duckdb.connect(config=settings) as connection:
            try:
                yield connection
            except duckdb.OutOfMemoryException as error:
                raise MemoryError(
                    f"{error}; set EADPR_MEMORY, e.g. to 2GiB (it is {settings['memory_limit']})"
                ) from error
            except duckdb.IOException as error:
                raise OSError(str(error)) from error


def view(connection: duckdb.DuckDBPyConnection, name: str, path: Path, record: type) -> None:
    """Make the file, checked as on any read, known to queries as the table `name`; POSITION is one column more."""
    tables.check(path, record)
    connection.read_parquet([_literal(path)], file_row_number=True).create_view(name)


def _literal(path: Path) -> str:
    """The path with nothing in it that DuckDB takes for a pattern of names."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))


def batches(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, Any] | None = None
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of a query; memory is one batch beside what the query itself holds."""
    yield from connection.execute(query, parameters).to_arrow_reader(tables.ROW_GROUP)


def write(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    path: Path,
    record: type,
    parameters: Mapping[str, Any] | None = None,
) -> int:
    """Write the rows of an ordered query, whose columns are those of `record` by name; returns their number."""
    schema, count = tables.schema(record), 0
    with tables.writing(path, record) as append:
        for batch in batches(connection, query, parameters):
            append(pa.Table.from_batches([batch]).select(schema.names).cast(schema))
            count += len(batch)
    return count
