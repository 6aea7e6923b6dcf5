"""Read rows of files from outside, each with its place for messages ("<file>, line 7").

Text is plain, gzip or bzip2, UTF-8 with or without a byte order mark, LF or CRLF; its lines end at a newline and
nowhere else: U+2028 and its like are text. The parsers are Python's own and pyarrow's: they keep every value as it is
written, and say where they stop.
"""

import bz2
import codecs
import csv
import gzip
import json
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from eadpr.corpus.rows import Row, RowError, join_names

CHUNK = 1 << 20  # bytes read at a time from a JSON list
LARGEST = 1 << 28  # characters of one item of a JSON list; more means a missing bracket
TOO_DEEP = "malformed JSON: brackets nested too deep, or a number of thousands of digits; mend it"
FIELD = 1 << 25  # characters of one field of a TSV file; more means an unclosed quote
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
ARCHIVES = (".tar", ".tar.gz", ".tar.bz2")

_SPACE = re.compile(r"[ \t\n\r]*")  # JSON's
_DECODER = json.JSONDecoder()

Place = Path | zipfile.Path  # a file, or one inside a zip


def check_exists(path: Place) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; put the file there or mend its path in data/collections")


@contextmanager
def open_unpacked(path: Place) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, gzip and bzip2 unpacked. Raises ValueError for a damaged one."""
    check_exists(path)
    try:
        file = path.open("rb")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:  # offsets, methods, passwords
        if isinstance(path, Path):
            raise
        raise ValueError(f"{path} is damaged or encrypted ({error}); copy or download the zip again") from error
    with file, _unpack(file, path) as unpacked:
        yield unpacked


@contextmanager
def _unpack(file: IO[bytes], path: Place) -> Iterator[BinaryIO]:
    kind, opener = "file of a zip" if isinstance(path, zipfile.Path) else "", nullcontext
    try:
        start = file.peek(10)[:10]
        if start[:2] == b"\x1f\x8b":
            kind, opener = "gzip file", gzip.open
        elif start[:3] + start[4:] == b"BZh1AY&SY":
            kind, opener = "bzip2 file", bz2.open
        with opener(file) as unpacked:
            yield unpacked
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
        if not kind or getattr(error, "errno", None) is not None:  # an error of the disk, not of the file's content
            raise
        raise ValueError(f"{path} is a truncated or damaged {kind} ({error}); copy or download it again") from error


def _read_lines(file: BinaryIO, path: Place) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(file, start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            yield number, line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _not_utf8(path, number, line[error.start]) from None


def _not_utf8(path: Place, line: int, byte: int) -> RowError:
    reason = f"byte 0x{byte:02x} is not UTF-8; convert the file, e.g. with iconv -t utf-8"
    return RowError(f"{path}, line {line}", "", reason)


# Tables.


def read_table(
    path: Path, names: Sequence[str] = (), *, needed: Sequence[str] = (), quoted: bool = True, delimiters: str = "\t"
) -> Iterator[Row]:
    """Read rows of separated cells by column, which the first line names where `names` does not.

    The header must have the columns `needed`. If there are several `delimiters`, the one that the first line has most
    often is taken. A row's place is the line it ends on.
    """
    delimiter = delimiters if len(delimiters) == 1 else max(delimiters, key=_first_line(path).count)
    number = 0
    for where, cells in read_cells(path, quoted=quoted, delimiter=delimiter):
        if not names:
            names = cells
            for name in needed:
                if name not in names:
                    there = join_names(names)
                    raise RowError(where, f"column {name!r}", f"is missing (there are {there}); add or rename it")
            if len(set(names)) < len(names):
                raise RowError(where, "", f"a column name stands twice in the header ({join_names(names)})")
            continue
        if len(cells) != len(names):
            expected = f"expected {len(names)} ({join_names(names)}), by {SEPARATORS[delimiter]}"
            raise RowError(where, "", f"{len(cells)} cells, {expected}")
        number += 1
        yield Row(where, number, dict(zip(names, cells, strict=True)))


def _first_line(path: Path) -> str:
    with open_unpacked(path) as file:
        return next(_read_lines(file, path), (1, ""))[1]


def read_cells(path: Path, *, quoted: bool = False, delimiter: str = "\t") -> Iterator[tuple[str, list[str]]]:
    """Read the place and the cells of each line; quoted ones as in CSV, with doubled quotes inside quotes."""
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    csv.field_size_limit(FIELD)
    with open_unpacked(path) as file:
        lines = (line for _, line in _read_lines(file, path))
        reader = csv.reader(lines, delimiter=delimiter, strict=True, quoting=quoting)
        try:
            yield from ((f"{path}, line {reader.line_num}", cells) for cells in reader if cells)
        except csv.Error as error:
            hint = "a cell that begins with a quote must end with one, and quotes inside it are doubled"
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
    try:
        with tarfile.open(fileobj=file, mode="r|") as archive:
            for member in archive:
                if member.isfile():
                    where = path / member.name
                    with _unpack(archive.extractfile(member), where) as unpacked:
                        yield from _json_values(unpacked, where)
    except tarfile.TarError as error:
        raise ValueError(f"{path} is a truncated or damaged archive ({error}); copy or download it again") from error


def _json_values(file: BinaryIO, path: Place) -> Iterator[tuple[str, object]]:
    is_list = file.peek(4096).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
    for line, value in (_list_items if is_list else _json_lines)(file, path):
        yield f"{path}, line {line}", value


def _json_lines(file: BinaryIO, path: Place) -> Iterator[tuple[int, object]]:
    for number, line in _read_lines(file, path):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            yield number, json.loads(line)
        except json.JSONDecodeError as error:
            raise RowError(where, "", f"malformed JSON at character {error.pos}: {error.msg}; mend it") from None
        except (ValueError, RecursionError):
            raise RowError(where, "", TOO_DEEP) from None


def _list_items(file: BinaryIO, path: Place) -> Iterator[tuple[int, object]]:
    """Yield the items of a JSON list with their lines; memory holds one item and a chunk.

    No library: ijson turns half a surrogate pair into "?", refuses NaN and takes all memory for nested brackets.
    """
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    text, position, line, opening, ended = "", 0, 1, "[", False
    while True:
        try:
            start, item, end = _item_at(text, position, opening)
        except json.JSONDecodeError as error:
            # An item cut by the end of what was read fails in its last characters or in a string without end.
            cut = len(text) - error.pos <= 16 or error.msg.startswith("Unterminated string")
            if not cut or ended or len(text) - position > LARGEST:
                reason = f"{error.msg} (or the file is truncated)" if cut and ended else error.msg
                line += text.count("\n", position, error.pos)
                raise RowError(f"{path}, line {line}", "", f"malformed JSON: {reason}; mend it") from None
            # As much as is waiting, so that an item of many chunks is tried a logarithmic number of times.
            data, text, position = file.read(max(CHUNK, len(text) - position)), text[position:], 0
            ended = not data
            try:
                text += decode(data, final=ended)
            except UnicodeDecodeError as bad:
                line += text.count("\n") + bad.object[: bad.start].count(b"\n")
                raise _not_utf8(path, line, bad.object[bad.start]) from None
            continue
        except (ValueError, RecursionError):
            raise RowError(f"{path}, line {line}", "", TOO_DEEP) from None
        if item is None:
            break
        line += text.count("\n", position, start)
        yield line, item
        line, position, opening = line + text.count("\n", start, end), end, ","
    if text[end:].strip() or file.read(CHUNK).strip():
        raise RowError(f"{path}, line {line}", "", "something follows the closing bracket of the list; mend it")


def _item_at(text: str, position: int, opening: str) -> tuple[int, object, int]:
    """Return where the next item begins, its value and where it ends; None as the value at the end of the list.

    `opening` is what stands before the item: the list's bracket or a comma.
    """
    position = _SPACE.match(text, position).end()
    start = _SPACE.match(text, position + 1).end()
    mark = text[position : position + 1]
    if opening == "," and mark == "]":
        return position, None, position + 1
    if mark != opening:
        raise json.JSONDecodeError(f"expected {opening!r} or ']'", text, position)
    if opening == "[" and text[start : start + 1] == "]":
        return start, None, start + 1
    item, end = _DECODER.raw_decode(text, start)
    if not isinstance(item, dict):  # a number might go on in the next chunk
        raise json.JSONDecodeError("expected an object", text, start)
    return start, item, end


def read_data(path: Path) -> Row:
    """Return the list `data` of a file that is one JSON object, as SQuAD's; the file is held in memory."""
    with open_unpacked(path) as file:
        try:
            return Row(str(path), 0, {"data": json.loads(file.read().decode("utf-8-sig"))["data"]})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}: expected a JSON object with a list `data` ({error})") from None


# Parquet.


def read_parquet(path: Path) -> Iterator[Row]:
    check_exists(path)
    number = 0
    try:
        if len(set(names := (file := pq.ParquetFile(path)).schema_arrow.names)) < len(names):
            raise ValueError(f"{path}: a column name stands twice ({join_names(names)}); rename or drop one")
        for batch in file.iter_batches(batch_size=4096):
            _check_columns(f"{path}, after row {number}", batch)
            for row in batch.to_pylist():
                number += 1
                yield Row(f"{path}, row {number}", number, row)
    except (pa.ArrowInvalid, OSError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: damaged after row {number}, or not Parquet ({reason}); write it again") from None
    except OverflowError as error:
        raise ValueError(f"{path}, after row {number}: a value is beyond Python's ({error}); drop its column") from None


def _check_columns(where: str, batch: Any) -> None:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise RowError(where, f"column {name!r}", f"is damaged or not UTF-8 ({error}); write it again") from None
