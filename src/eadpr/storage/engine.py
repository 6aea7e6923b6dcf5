"""The one place that opens DuckDB, which joins, groups, orders and samples tables that may be larger than memory.

Every query whose rows are kept orders them by explicit keys, so that no byte depends on the number of threads.
"""

import fcntl
import os
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from eadpr.runtime import cache, files
from eadpr.runtime.progress import progress
from eadpr.storage import tables

MEMORY = "512MiB"  # what one connection may hold before it spills to disk, unless $EADPR_MEMORY says otherwise
THREADS = 8  # at most: each takes some 64 MiB of MEMORY in a large join
Connection = duckdb.DuckDBPyConnection
Parameters = Mapping[str, Any] | None
SHOWN_AFTER = 2.0  # seconds that a query takes before its progress is shown
POSITION = "file_row_number"  # in every view: a row's place in its file, counted from 0


@contextmanager
def connect() -> Iterator[Connection]:
    """A database in memory that spills to the cache folder and is gone after the block.

    Raises MemoryError where a query needs more than $EADPR_MEMORY even so, OSError where the disk is full, ValueError
    for what a function of ours refuses within a query and for an $EADPR_MEMORY that is no size.
    """
    memory = os.environ.get("EADPR_MEMORY", MEMORY)
    with _spill() as spill, _opened(memory, spill) as connection:
        # DuckDB counts, `watched` shows.
        connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        try:
            yield connection
        except duckdb.OutOfMemoryException as error:
            raise MemoryError(f"{error}; set EADPR_MEMORY, e.g. to 2GiB (it is {memory})") from error
        except duckdb.IOException as error:
            raise OSError(str(error)) from error
        except duckdb.InvalidInputException as error:
            raise ValueError(str(error)) from error
        except duckdb.Error as error:
            if type(error) is not duckdb.Error:  # a query of ours that is wrong
                raise
            raise ValueError(
                f"one of {_viewed(connection)} is damaged ({error}); run `dvc repro` to rebuild it"
            ) from error


def _viewed(connection: Connection) -> str:
    found = connection.execute("SELECT comment FROM duckdb_views() WHERE comment IS NOT NULL ORDER BY comment")
    return ", ".join(path for (path,) in found.fetchall())


def _opened(memory: str, spill: str) -> Connection:
    settings = {"memory_limit": memory, "threads": min(cores(), THREADS), "temp_directory": spill}
    settings |= dict.fromkeys(("autoinstall_known_extensions", "autoload_known_extensions"), False)
    try:
        return duckdb.connect(config=settings)
    except duckdb.ParserException as error:
        raise ValueError(f"EADPR_MEMORY is {memory!r}, which is no size; write one such as 2GiB") from error


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _spill() -> Iterator[str]:
    """A folder of the cache, locked while it is in use; what killed processes left is removed first."""
    root = cache.root()
    with ExitStack() as stack:
        with (root / "spill.lock").open("w") as gate:  # else a new folder could be taken for one that was left
            fcntl.flock(gate, fcntl.LOCK_EX)
            for left in root.glob("spill-*"):
                # In use, gone meanwhile, or another user's who shares the cache.
                with suppress(BlockingIOError, FileNotFoundError, PermissionError), ExitStack() as handles:
                    _lock(left, handles, fcntl.LOCK_NB)
                    files.discard(left)
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="spill-", dir=root))
            _lock(folder, stack)
        yield folder


def _lock(folder: str | Path, stack: ExitStack, more: int = 0) -> None:
    handle = os.open(folder, os.O_RDONLY)
    stack.callback(os.close, handle)
    fcntl.flock(handle, fcntl.LOCK_EX | more)


@contextmanager
def as_written(connection: Connection) -> Iterator[None]:
    """Joins of the block run in the order of the query, each with its right table as the hash table."""
    connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    yield
    connection.execute("RESET disabled_optimizers")


def view(connection: Connection, name: str, path: Path, record: type) -> None:
    """Make the file, checked as on any read, known to queries as the table `name`; POSITION is one column more."""
    tables.check(path, record)
    connection.read_parquet([_literal(path)], file_row_number=True).create_view(name)
    quoted = str(path).replace("'", "''")
    connection.execute(f"COMMENT ON VIEW {name} IS '{quoted}'")  # for an error that names no file


def _literal(path: Path) -> str:
    """The path with nothing in it that DuckDB takes for a pattern of names."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))


@contextmanager
def watched(connection: Connection, label: str) -> Iterator[None]:
    """Show how far the one query of the block is, where it takes longer than SHOWN_AFTER."""
    ended = threading.Event()

    def show() -> None:
        if ended.wait(SHOWN_AFTER):
            return
        percent = max(0, int(connection.query_progress()))  # of some queries it stays 0
        with progress(label, 100, "%", done=percent) as advance:
            while not ended.wait(0.5):
                more = max(0, int(connection.query_progress()) - percent)
                advance(more)
                percent += more

    with ThreadPoolExecutor(1) as pool:
        shown = pool.submit(show)
        try:
            yield
        finally:
            ended.set()
        shown.result()


def execute(connection: Connection, query: str, parameters: Parameters = None, *, label: str) -> Connection:
    """Run a query that may be long, with its progress shown under `label`."""
    with watched(connection, label):
        return connection.execute(query, parameters)


def batches(connection: Connection, query: str, parameters: Parameters = None) -> Iterator[pa.RecordBatch]:
    """Stream the rows of a query; memory is one batch beside what the query itself holds."""
    yield from connection.execute(query, parameters).to_arrow_reader(tables.ROW_GROUP)


def records(connection: Connection, query: str, record: type, parameters: Parameters = None) -> Iterator[pa.Table]:
    """Stream the rows of a query, whose columns are those of `record` by name, as tables of that schema."""
    schema = tables.schema(record)
    for batch in batches(connection, query, parameters):
        yield pa.Table.from_batches([batch]).select(schema.names).cast(schema)


def first(connection: Connection, query: str, parameters: Parameters = None) -> dict[str, Any] | None:
    """The first row of a query by column, None where there is none."""
    found = connection.execute(query, parameters)
    row = found.fetchone()
    return None if row is None else dict(zip((column[0] for column in found.description), row, strict=True))


def find_duplicate(connection: Connection, table: str, position: str) -> dict[str, Any] | None:
    """The first `id` of a table that stands in an earlier row, too, and both their positions; None if all differ."""
    several = f"SELECT id FROM {table} GROUP BY id HAVING count(*) > 1"
    query = f"SELECT id, min({position}, 2) AS rows FROM {table} SEMI JOIN ({several}) USING (id) GROUP BY id"
    return first(connection, f"{query} ORDER BY rows[2] LIMIT 1")


@contextmanager
def filling(connection: Connection, name: str, record: type) -> Iterator[Callable[[tuple], None]]:
    """Make the table `name` and yield a function that appends a record; queries find all of them after the block."""
    connection.from_arrow(tables.schema(record).empty_table()).create(name)
    with (
        connection.cursor() as cursor,
        tables.behind(lambda table: cursor.from_arrow(table).insert_into(name)) as insert,
        tables.in_chunks(record, insert) as put,
    ):
        yield put


def value(connection: Connection, query: str, parameters: Parameters = None) -> Any:
    """The one value that a query gives."""
    ((found,),) = connection.execute(query, parameters).fetchall()
    return found


def group_rows(found: Iterable[pa.RecordBatch], keys: Sequence[str], lists: Collection[str]) -> Iterator[pa.Table]:
    """Rows with the same integer `keys`, which stand together, as one: of the columns `lists` all values but null, of
    the others the first. Memory is one batch, whatever the number of groups."""
    waiting: pa.Table | None = None
    for batch in found:
        table = pa.Table.from_batches([batch])
        table = table if waiting is None else pa.concat_tables([waiting, table])
        last = _starts(table, keys)[-1]
        yield _gathered(table.slice(0, last), keys, lists)
        waiting = table.slice(last)
    if waiting is not None:
        yield _gathered(waiting, keys, lists)


def _starts(table: pa.Table, keys: Sequence[str]) -> np.ndarray:
    changes = [np.diff(table[key].to_numpy(), prepend=-1) != 0 for key in keys]
    return np.flatnonzero(np.logical_or.reduce(changes))


def _gathered(table: pa.Table, keys: Sequence[str], lists: Collection[str]) -> pa.Table:
    starts = _starts(table, keys)
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    for name, column in columns.items():
        columns[name] = column.take(starts)
        if name in lists:
            before = np.concatenate([[0], np.cumsum(column.is_valid().to_numpy(zero_copy_only=False))])
            ends = pa.array(before[[*starts, len(table)]], pa.int32())
            columns[name] = pa.ListArray.from_arrays(ends, column.drop_null())
    return pa.table(columns)


def write(connection: Connection, query: str, path: Path, record: type, parameters: Parameters = None) -> int:
    """Write the rows of an ordered query, whose columns are those of `record` by name; returns their number."""
    count = 0
    with tables.writing(path, record) as append, watched(connection, f"write {path.name}"):
        for table in records(connection, query, record, parameters):
            append(table)
            count += len(table)
    return count
