"""Parquet files of records: one schema per record type, checked on read, the same bytes for the same rows."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eadpr.files import replacing

ROW_GROUP = 16_384  # rows; part of the bytes of every file
_SCALARS = {str: pa.string(), int: pa.int32(), float: pa.float32(), bool: pa.bool_()}


def _arrow_type(annotation: object) -> tuple[pa.DataType, bool]:
    """The arrow type of a field's annotation and whether the field may be null."""
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        (inner,) = [a for a in typing.get_args(annotation) if a is not types.NoneType]
        return _arrow_type(inner)[0], True
    if typing.get_origin(annotation) is list:
        (item,) = typing.get_args(annotation)
        return pa.list_(pa.field("element", _arrow_type(item)[0], nullable=False)), False
    if hasattr(annotation, "_fields"):
        return pa.struct(list(schema(annotation))), False
    return _SCALARS[annotation], False


@cache
def schema(record: type) -> pa.Schema:
    hints = typing.get_type_hints(record)
    fields = []
    for name in record._fields:
        arrow_type, nullable = _arrow_type(hints[name])
        fields.append(pa.field(name, arrow_type, nullable=nullable))
    return pa.schema(fields)


def as_table(record: type, rows: Iterable[tuple]) -> pa.Table:
    rows = list(rows)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(record._fields)
    arrays = [
        pa.array([_plain(v) for v in column], type=field.type)
        for column, field in zip(columns, schema(record), strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema(record))


def _plain(value: object) -> object:
    """Nested records as dictionaries, which is what arrow takes for structs."""
    if isinstance(value, list) and value and hasattr(value[0], "_asdict"):
        return [v._asdict() for v in value]
    return value


@contextmanager
def writing(path: Path, record: type) -> Iterator[typing.Callable[[pa.Table], None]]:
    """Yield a function that appends tables of any size; rows are regrouped, so bytes depend on the rows only."""
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, schema(record), compression="zstd", version="2.6") as writer,
    ):
        waiting: list[pa.Table] = []

        def append(table: pa.Table) -> None:
            waiting.append(table)
            if sum(t.num_rows for t in waiting) >= ROW_GROUP:
                flush(final=False)

        def flush(final: bool) -> None:
            if not waiting:
                return
            table = pa.concat_tables(waiting).combine_chunks()
            cut = table.num_rows if final else table.num_rows - table.num_rows % ROW_GROUP
            writer.write_table(table.slice(0, cut), row_group_size=ROW_GROUP)
            waiting[:] = [table.slice(cut)]

        yield append
        flush(final=True)


def write(path: Path, record: type, rows: Iterable[tuple]) -> int:
    """Write records, holding one row group in memory; returns the number of rows."""
    count = 0
    with writing(path, record) as append:
        rows = iter(rows)
        while chunk := list(islice(rows, ROW_GROUP)):
            append(as_table(record, chunk))
            count += len(chunk)
    return count


def _checked(path: Path, record: type) -> pq.ParquetFile:
    again = f"run `dvc repro` to rebuild it (stage {record.made_by})"
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; {again}")
    try:
        file = pq.ParquetFile(path, memory_map=True)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} is not a readable Parquet file ({error}); {again}") from error
    found = file.schema_arrow
    for field in schema(record):
        if field.name not in found.names:
            raise ValueError(f"{path}: column {field.name!r} is missing (it has {found.names}); {again}")
        if not found.field(field.name).type.equals(field.type):
            raise ValueError(
                f"{path}: column {field.name!r} has type {found.field(field.name).type}, expected {field.type}; {again}"
            )
    return file


def read(path: Path, record: type, columns: list[str] | None = None) -> pa.Table:
    """The whole file (or some columns) as an arrow table."""
    return _checked(path, record).read(columns=columns or list(record._fields))


def batches(
    path: Path, record: type, columns: list[str] | None = None, size: int = ROW_GROUP, first: int = 0
) -> Iterator[pa.RecordBatch]:
    """Stream a file from row `first`; memory is one batch."""
    file = _checked(path, record)
    groups = list(range(file.num_row_groups))
    while groups and first >= file.metadata.row_group(groups[0]).num_rows:
        first -= file.metadata.row_group(groups.pop(0)).num_rows
    for batch in file.iter_batches(batch_size=size, row_groups=groups, columns=columns or list(record._fields)):
        if first < len(batch):
            yield batch.slice(first)
        first = max(0, first - len(batch))


def rows(path: Path, record: type) -> Iterator[tuple]:
    """Stream a file as records. Nested spans come back as dictionaries' values in their record types."""
    nested = {name: _element(typing.get_type_hints(record)[name]) for name in record._fields}
    nested = {name: kind for name, kind in nested.items() if kind}
    for batch in batches(path, record):
        columns = [batch.column(name).to_pylist() for name in record._fields]
        for name, kind in nested.items():
            column = columns[record._fields.index(name)]
            for i, value in enumerate(column):
                if value is not None:
                    column[i] = [kind(**item) for item in value]
        yield from map(record, *columns)


def _element(annotation: object) -> type | None:
    """The record type inside `list[Record]` or `list[Record] | None`."""
    for candidate in (annotation, *typing.get_args(annotation)):
        if typing.get_origin(candidate) is list and hasattr(typing.get_args(candidate)[0], "_fields"):
            return typing.get_args(candidate)[0]
    return None


def count(path: Path, record: type) -> int:
    return _checked(path, record).metadata.num_rows
