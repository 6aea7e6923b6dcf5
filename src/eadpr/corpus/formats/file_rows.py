"""Read rows of files from outside, each with its place for messages ("<file>, line 7").

Text is plain, gzip or bzip2, UTF-8 with or without a byte order mark, LF or CRLF; its lines end at a newline and
nowhere else: U+2028 and its like are text. Python's parsers and pyarrow's keep every value, and say where they stop.
"""

import bz2
import codecs
import csv
import gzip
import io
import json
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from eadpr.corpus.rows import Row, RowError, excerpt, join_names

CHUNK = 1 << 20  # characters read at a time from a JSON list
LARGEST = 1 << 28  # characters of one item of a JSON list; more means a missing bracket
FIELD = 1 << 25  # characters of one cell; more means an unclosed quote
ARCHIVES = (".tar", ".tar.gz", ".tar.bz2")
# A value that is missing: pandas writes NaN where JSON has null.
JSON = json.JSONDecoder(parse_constant=lambda name: None if name == "NaN" else float(name))

Place = Path | zipfile.Path  # a file, or one inside a zip
Lines = Iterator[tuple[str, str]]  # of a file, with their places
Lists = Iterator[tuple[str, list[str]]]


@contextmanager
def _open_bz2(file: BinaryIO) -> Iterator[BinaryIO]:
    with bz2.open(file) as unpacked:
        unpacked._buffer.raw._trailing_error = ()  # else a damaged stream behind the first is taken for the end
        yield unpacked


PACKED = {b"\x1f\x8b": gzip.open, b"BZh": _open_bz2}  # by a file's first bytes


def check_exists(path: Place) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; put the file there or mend its path in data/collections")


@contextmanager
def open_unpacked(path: Place, opener: Callable[[], IO[bytes]] | None = None) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, gzip and bzip2 unpacked; `opener` opens one inside a tar archive.

    Raises ValueError for a damaged one.
    """
    if opener is None:
        check_exists(path)
    try:
        with opener() if opener else path.open("rb") as file:
            start = file.peek(3)
            unpack = next((unpack for magic, unpack in PACKED.items() if start.startswith(magic)), nullcontext)
            with unpack(file) as unpacked:
                yield unpacked
    except (EOFError, OSError, RuntimeError, zlib.error, tarfile.TarError, zipfile.BadZipFile) as error:
        if isinstance(path, Path) and getattr(error, "errno", None) is not None:  # of the disk, not of the content
            raise
        raise ValueError(f"{path} is truncated, damaged or encrypted ({error}); copy or download it again") from error


def _read_lines(file: BinaryIO, path: Place) -> Lines:
    for number, line in enumerate(file, start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            yield f"{path}, line {number}", line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _not_utf8(f"{path}, line {number}", error) from None


def _not_utf8(where: str, error: UnicodeDecodeError) -> RowError:
    byte = f"byte 0x{error.object[error.start]:02x}"
    return RowError(where, "", f"{byte} is not UTF-8; unpack the file, or convert it, as by iconv -t utf-8")


# Tables.


def read_table(path: Path, names: Sequence[str] = (), *, quoted: bool = True, delimiters: str = "\t") -> Iterator[Row]:
    """Read rows of cells by column: `names`, or the names in the first line. Empty cells behind them are no column."""
    number = 0
    for where, cells in read_cells(path, quoted=quoted, delimiters=delimiters):
        if not names:
            names = "\t".join(map(str.strip, cells)).rstrip("\t").split("\t")
            _check_distinct(names, where)
            continue
        if len(cells) < len(names) or any(cells[len(names) :]):
            rule = "; a row of TSV is one line, with quoted cells too" if quoted and delimiters == "\t" else ""
            raise RowError(where, "", f"{len(cells)} cells, expected {len(names)} ({join_names(names)}){rule}")
        number += 1
        yield Row(where, number, dict(zip(names, cells, strict=False)))


def _check_distinct(names: Sequence[str], where: str) -> None:
    if len(set(names)) < len(names):
        raise RowError(where, "", f"a column name stands twice ({join_names(names)}); rename or drop one")


def read_cells(path: Path, *, quoted: bool = False, delimiters: str = "\t") -> Iterator[tuple[str, list[str]]]:
    """Read the place (the line a row ends on) and the cells of each row with any; quoted ones as in CSV.

    Of several `delimiters` the one that the first line has most often is taken, or the one that it names (`sep=;`).
    """
    csv.field_size_limit(FIELD)
    with open_unpacked(path) as file:
        lines = _read_lines(file, path)
        rows = _split_at_tabs(lines, quoted=quoted) if delimiters == "\t" else _read_csv(lines, path, delimiters)
        yield from ((where, cells) for where, cells in rows if any(cells))


def _split_at_tabs(lines: Lines, *, quoted: bool) -> Lists:
    """Yield cells as they are written, unless the first that begins with a quote also closes on its line: then all such
    cells are quoted, and must close on theirs."""
    closes = None if quoted else False
    for where, line in lines:
        text = line.removesuffix("\n").removesuffix("\r")
        cells = text.split("\t") if text else []
        if closes is not False and any(cell.startswith('"') for cell in cells):
            try:
                closes, cells = True, next(csv.reader([line], delimiter="\t", strict=True))
            except csv.Error:
                if closes:
                    reason = "a cell that begins with a quote must close on its line, quotes inside it doubled"
                    raise RowError(where, "", f"{reason}; mend {excerpt(text)}, or write JSONL") from None
                closes = False
        yield where, cells


def _read_csv(lines: Lines, path: Path, delimiters: str) -> Lists:
    _, first = next(lines, ("", ""))
    declaration = re.fullmatch(r"sep=(.)\r?\n", first)
    delimiter = declaration[1] if declaration else max(delimiters, key=first.count)
    texts = chain(["\n" if declaration else first], (line for _, line in lines))
    # A space behind each delimiter of the header is no part of the cells.
    reader = csv.reader(texts, delimiter=delimiter, strict=True, skipinitialspace=f"{delimiter} " in first)
    try:
        yield from ((f"{path}, line {reader.line_num}", cells) for cells in reader)
    except csv.Error as error:
        hint = "a cell that begins with a quote must end with one, and quotes inside it are doubled"
        if "new-line" in str(error):
            hint = "a carriage return stands in it that ends no line; convert line ends, or quote the cell"
        raise RowError(f"{path}, line {reader.line_num}", "", f"{error}; {hint}") from None


# JSON.


def read_objects(path: Place) -> Iterator[Row]:
    """Read JSON objects: one per line (blank lines are passed over), or the items of a list, one at a time.

    A tar archive gives the objects of all its files, and nothing is unpacked to disk.
    """
    with open_unpacked(path) as file:
        values = _archive_values(file, path) if path.name.endswith(ARCHIVES) else _json_values(file, path)
        for number, (where, value) in enumerate(values, start=1):
            if not isinstance(value, dict):
                raise RowError(where, "", f"expected a JSON object, found {type(value).__name__}")
            yield Row(where, number, value)


def _archive_values(file: BinaryIO, path: Path) -> Iterator[tuple[str, object]]:
    with tarfile.open(fileobj=file, mode="r|") as archive:
        archive.fileobj.seekable = lambda: False  # which readers of text ask for
        for member in filter(tarfile.TarInfo.isfile, archive):
            where = path / member.name
            with open_unpacked(where, partial(archive.extractfile, member)) as unpacked:
                yield from _json_values(unpacked, where)
        # `tarfile` takes what is no header for the end, which is two blocks of zeros, and so may be all that follows.
        rest = list(map(any, iter(partial(archive.fileobj.read, tarfile.BLOCKSIZE), b"")))
        if any(rest) or not rest:
            raise tarfile.TarError("a header is missing or damaged")


def _json_values(file: BinaryIO, path: Place) -> Iterator[tuple[str, object]]:
    is_list = file.peek(4096).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
    return (_list_items if is_list else _json_lines)(file, path)


def _json_lines(file: BinaryIO, path: Place) -> Iterator[tuple[str, object]]:
    for where, line in _read_lines(file, path):
        if line.strip():
            try:
                yield where, JSON.decode(line)
            except (ValueError, RecursionError) as error:
                advice = f"the line, {excerpt(line)}, must be one whole object, or the file a list of them"
                raise _malformed(where, error, advice) from None


def _list_items(file: BinaryIO, path: Place) -> Iterator[tuple[str, object]]:
    """Yield the items of a JSON list; memory holds one item and a chunk."""
    stream = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    text, number, prefix, reason = "", 1, re.compile(r"\s*\[\s*"), "empty"
    try:
        # As much as is waiting, so that an item of many chunks is tried a logarithmic number of times.
        while len(text) < LARGEST and (chunk := stream.read(max(CHUNK, len(text)))):
            text, position = text + chunk, 0
            try:
                while opening := prefix.match(text, position):
                    item, position = JSON.raw_decode(text, opening.end())
                    yield f"{path}, item {number}", item
                    number, prefix, reason = number + 1, re.compile(r"\s*,\s*"), "expected ',' or ']'"
            except (ValueError, RecursionError) as error:  # most often an item that goes on in the next chunk
                reason = error
            text = text[position:]
    except UnicodeDecodeError as error:
        raise _not_utf8(f"{path}, item {number}", error) from None
    if not re.fullmatch(rf"{prefix.pattern}\]\s*" if number == 1 else r"\s*\]\s*", text):
        raise _malformed(f"{path}, item {number}", reason)


def _malformed(where: str, error: object, advice: str = "mend it, or fetch a truncated file again") -> RowError:
    return RowError(where, "", f"malformed JSON: {getattr(error, 'msg', error)}; {advice}")


def read_data(path: Path) -> Row:
    """Return the list `data` of a file that is one JSON object, as SQuAD's; the file is held in memory."""
    with open_unpacked(path) as file:
        try:
            return Row(str(path), 0, {"data": JSON.decode(file.read().decode("utf-8-sig"))["data"]})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}: expected a JSON object with a list `data` ({error})") from None


# Parquet.


def read_parquet(path: Path) -> Iterator[Row]:
    check_exists(path)
    number = 0
    try:
        file = pq.ParquetFile(path)
        _check_distinct(file.schema_arrow.names, str(path))
        for batch in file.iter_batches(batch_size=4096):
            batch.validate(full=True)
            for row in batch.to_pylist():
                number += 1
                yield Row(f"{path}, row {number}", number, row)
    except (pa.ArrowInvalid, OSError, OverflowError) as error:
        reason = f"damaged, or not Parquet ({' '.join(str(error).split())}); write it again"
        raise RowError(f"{path}, after row {number}", "", reason) from None
