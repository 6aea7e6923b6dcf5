"""Parquet files of records: one schema per record type, checked on read, the same bytes for the same rows."""

import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eadpr.runtime.files import check_file, replacing

ROW_GROUP = 16_384  # rows; part of the bytes of every file
CHUNK = 4096  # records collected before they become an arrow table
_SCALARS = {str: pa.string(), int: pa.int32(), float: pa.float32(), bool: pa.bool_()}


@cache
def schema(record: type) -> pa.Schema:
    return pa.schema([_field(name, annotation) for name, annotation in typing.get_type_hints(record).items()])


def _field(name: str, annotation: object) -> pa.Field:
    inner = [argument for argument in typing.get_args(annotation) if argument is not types.NoneType]
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        return _field(name, *inner).with_nullable(True)
    if typing.get_origin(annotation) is list:
        kind = pa.list_(_field("element", *inner))
    else:
        kind = pa.struct(list(schema(annotation))) if hasattr(annotation, "_fields") else _SCALARS[annotation]
    return pa.field(name, kind, nullable=False)


def as_table(record: type, rows: Iterable[tuple]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(record._fields)
    arrays = [_array(column, field.type) for column, field in zip(columns, schema(record), strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema(record))


def _array(column: Sequence, kind: pa.DataType) -> pa.Array:
    """Build a column, nested records from flat columns: arrow takes structs only as dictionaries, and slowly."""
    if pa.types.is_struct(kind):
        parts = zip(kind, list(zip(*column, strict=True)) or [()] * kind.num_fields, strict=True)
        return pa.StructArray.from_arrays([_array(part, field.type) for field, part in parts], fields=list(kind))
    if not (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)):
        return pa.array(column, type=kind)
    values = _array([item for items in column if items for item in items], kind.value_type)
    offsets = np.cumsum([0, *(len(items or ()) for items in column)], dtype=np.int32)
    absent = pa.array([items is None for items in column], pa.bool_())
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=absent)


@contextmanager
def writing(path: Path, record: type) -> Iterator[typing.Callable[[pa.Table], None]]:
    """Yield a function that appends tables of any size; rows are regrouped, so bytes depend on the rows only."""
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, schema(record), compression="zstd", version="2.6") as writer,
    ):
        waiting: pa.Table | None = None

        def append(table: pa.Table) -> None:
            nonlocal waiting
            waiting = table if waiting is None else pa.concat_tables([waiting, table])
            full = len(waiting) - len(waiting) % ROW_GROUP
            if full:
                writer.write_table(waiting.slice(0, full).combine_chunks(), row_group_size=ROW_GROUP)
                waiting = waiting.slice(full)

        yield append
        if waiting is not None:
            writer.write_table(waiting.combine_chunks(), row_group_size=ROW_GROUP)


@contextmanager
def in_chunks(record: type, append: typing.Callable[[pa.Table], None]) -> Iterator[typing.Callable[[tuple], None]]:
    """Yield a function that takes a record; `append` gets tables of CHUNK records, the last one after the block."""
    waiting: list[tuple] = []

    def add(row: tuple) -> None:
        waiting.append(row)
        if len(waiting) == CHUNK:
            append(as_table(record, waiting))
            waiting.clear()

    yield add
    if waiting:
        append(as_table(record, waiting))


@contextmanager
def adding(path: Path, record: type) -> Iterator[typing.Callable[[tuple], None]]:
    """Yield a function that adds a record to a new file; one row group is held in memory."""
    with writing(path, record) as append, in_chunks(record, append) as add:
        yield add


def write(path: Path, record: type, rows: Iterable[tuple]) -> int:
    count = 0
    with adding(path, record) as add:
        for row in rows:
            add(row)
            count += 1
    return count


def check(path: Path, record: type) -> pq.ParquetFile:
    """Open a table; raises FileNotFoundError or ValueError where the file is no table of `record`."""
    rebuild = "run `dvc repro` to rebuild it"
    check_file(path)
    try:
        file = pq.ParquetFile(path, memory_map=True)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} is not a readable Parquet file ({error}); {rebuild}") from error
    columns = {field.name: field.type for field in file.schema_arrow}
    for field in schema(record):
        if columns.get(field.name) != field.type:
            raise ValueError(f"{path}: column {field.name!r} is {columns.get(field.name)}, not {field.type}; {rebuild}")
    return file


def read(path: Path, record: type, columns: list[str] | None = None) -> pa.Table:
    """Read the whole file, or some columns, as an arrow table."""
    return check(path, record).read(columns=columns or list(record._fields))


def batches(
    path: Path, record: type, columns: list[str] | None = None, size: int = ROW_GROUP, first: int = 0
) -> Iterator[pa.RecordBatch]:
    """Stream a file from row `first`, one batch in memory."""
    file = check(path, record)
    groups = list(range(file.num_row_groups))
    while groups and first >= file.metadata.row_group(groups[0]).num_rows:
        first -= file.metadata.row_group(groups.pop(0)).num_rows
    for batch in file.iter_batches(batch_size=size, row_groups=groups, columns=columns or list(record._fields)):
        if first < len(batch):
            yield batch.slice(first)
        first = max(0, first - len(batch))


def rows(path: Path, record: type) -> Iterator[tuple]:
    for batch in batches(path, record):
        yield from records(batch, record)


def records(batch: pa.RecordBatch, record: type) -> Iterator[tuple]:
    """Iterate over the rows of a batch with all columns of `record`, nested records included."""
    hints = typing.get_type_hints(record)
    return map(record, *(_values(batch.column(name), hints[name]) for name in record._fields))


def _values(column: pa.Array, annotation: object) -> Iterable:
    """List a column's values ten times faster than `to_pylist`, which makes a dictionary of each struct."""
    if pa.types.is_struct(column.type):
        return records(pa.RecordBatch.from_struct_array(column), annotation)
    if not (pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type)):
        return column.to_pylist()
    options = (annotation, *typing.get_args(annotation))  # list[X], or the parts of list[X] | None
    (of_list,) = [option for option in options if typing.get_origin(option) is list]
    values = iter(_values(column.flatten(), *typing.get_args(of_list)))
    return [None if n is None else list(islice(values, n)) for n in pc.list_value_length(column).to_pylist()]


def count(path: Path, record: type) -> int:
    return check(path, record).metadata.num_rows
