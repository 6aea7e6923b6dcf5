"""Joins, groups, orders and samples tables that may be larger than memory. The one module that opens DuckDB.

A query orders the rows that are written by explicit keys, so that no byte depends on the number of threads.
"""

import glob
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from eadpr.runtime import cache, files
from eadpr.storage import tables

MEMORY = "512MiB"  # held by a connection before it spills to disk, unless $EADPR_MEMORY is set
THREADS = 8  # at most: each takes some 64 MiB of MEMORY in a large join
Connection = duckdb.DuckDBPyConnection
Parameters = Mapping[str, Any] | None
POSITION = "file_row_number"  # a column of every view: the row's number in its file, from 0


@contextmanager
def connect() -> Iterator[Connection]:
    """Open a database in memory that spills to the cache folder, and drop it after the block.

    Raises MemoryError where a query needs more than $EADPR_MEMORY though it spills, OSError where the disk is full,
    ValueError for a damaged table, for an error of a Python function in a query and for a malformed $EADPR_MEMORY.
    """
    memory = os.environ.get("EADPR_MEMORY", MEMORY)
    with _spill_folder() as spill:
        settings = {"memory_limit": memory, "threads": min(cores(), THREADS), "temp_directory": spill}
        settings |= dict.fromkeys(("autoinstall_known_extensions", "autoload_known_extensions"), False)
        try:
            connection = duckdb.connect(config=settings)
        except duckdb.ParserException as error:
            raise ValueError(f"EADPR_MEMORY is {memory!r}, which is no size; write one such as 2GiB") from error
        try:
            with connection:
                yield connection
        except duckdb.OutOfMemoryException as error:
            raise MemoryError(f"{error}; set EADPR_MEMORY, e.g. to 2GiB (it is {memory})") from error
        except duckdb.IOException as error:
            raise OSError(str(error)) from error
        except duckdb.InvalidInputException as error:
            raise ValueError(str(error)) from error


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _spill_folder() -> Iterator[str]:
    """Make a folder of the cache; those of processes of this machine that were killed are removed first."""
    root, prefix = cache.root(), f"spill-{platform.node()}-"
    for stale in root.glob(f"{prefix}*"):
        if not files.is_running(stale.name.removeprefix(prefix).partition("-")[0]):
            shutil.rmtree(stale, ignore_errors=True)  # another process may remove it too
    with tempfile.TemporaryDirectory(prefix=f"{prefix}{os.getpid()}-", dir=root) as folder:
        yield folder


@contextmanager
def as_written(connection: Connection) -> Iterator[None]:
    """Run the block's joins in the order of the query, each with its right table as the hash table."""
    connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    yield
    connection.execute("RESET disabled_optimizers")


def view(connection: Connection, name: str, path: Path, record: type) -> None:
    """Check a table's file and make it known to queries as `name`, with the column POSITION added."""
    tables.check(path, record)
    # DuckDB takes the path for a pattern.
    connection.read_parquet([glob.escape(str(path))], file_row_number=True).create_view(name)


def batches(connection: Connection, query: str, parameters: Parameters = None) -> Iterator[pa.RecordBatch]:
    yield from connection.execute(query, parameters).to_arrow_reader(tables.ROW_GROUP)


def rows(connection: Connection, query: str, parameters: Parameters = None) -> Iterator[dict[str, Any]]:
    return (row for batch in batches(connection, query, parameters) for row in batch.to_pylist())


def records(connection: Connection, query: str, record: type, parameters: Parameters = None) -> Iterator[pa.Table]:
    """Stream the rows of a query as tables of `record`; the query's columns are named like its fields."""
    schema = tables.schema(record)
    for batch in batches(connection, query, parameters):
        yield pa.Table.from_batches([batch]).select(schema.names).cast(schema)


def first(connection: Connection, query: str, parameters: Parameters = None) -> dict[str, Any] | None:
    """Return the first row of a query by column, or None where it has no rows."""
    result = connection.execute(query, parameters)
    row = result.fetchone()
    return None if row is None else dict(zip((column[0] for column in result.description), row, strict=True))


def find_duplicate(connection: Connection, table: str, position: str) -> dict[str, Any] | None:
    """Return the first repeated `id` of a table and its first two positions as `rows`; None if all ids differ."""
    repeated = f"SELECT id FROM {table} GROUP BY id HAVING count(*) > 1"
    query = f"SELECT id, min({position}, 2) AS rows FROM {table} SEMI JOIN ({repeated}) USING (id) GROUP BY id"
    return first(connection, f"{query} ORDER BY rows[2] LIMIT 1")


@contextmanager
def filling(connection: Connection, name: str, record: type) -> Iterator[Callable[[tuple], None]]:
    """Create the table `name` and yield a function that appends a record; after the block the table has all."""
    connection.from_arrow(tables.schema(record).empty_table()).create(name)
    with (
        connection.cursor() as cursor,  # an insertion ends a stream of its own connection
        tables.in_chunks(record, lambda table: cursor.from_arrow(table).insert_into(name)) as append,
    ):
        yield append


def value(connection: Connection, query: str, parameters: Parameters = None) -> Any:
    return connection.execute(query, parameters).fetchone()[0]


def write(connection: Connection, query: str, path: Path, record: type, *parameters: Parameters) -> int:
    """Write the rows of an ordered query as a table, for each of `parameters` in turn, and return their number."""
    count = 0
    with tables.writing(path, record) as append:
        for values in parameters or [None]:
            for table in records(connection, query, record, values):
                append(table)
                count += len(table)
    return count
