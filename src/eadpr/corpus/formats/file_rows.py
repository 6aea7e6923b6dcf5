"""Rows of the files that come from outside, each with its place for messages ("<file>, line 7").

Text is plain, gzip or bzip2, UTF-8 with or without a byte order mark, LF or CRLF; its lines end at a newline and
nowhere else: U+2028 and its like are text. Errors are ValueErrors that name file and line. The parsers are Python's own
and pyarrow's: they keep every value as it is written, and say where they stop.
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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

CHUNK = 1 << 20  # bytes read at a time from a JSON list
LARGEST = 1 << 28  # characters of one item of a JSON list; more means a missing bracket
BEYOND = "malformed JSON: brackets nested too deep, or a number of thousands of digits; mend it"
FIELD = 1 << 25  # characters of one field of a TSV file; more means an unclosed quote
SEPARATED_BY = {",": "commas", ";": "semicolons", "\t": "tabs"}
ARCHIVES = (".tar", ".tar.gz", ".tar.bz2")

_SPACE = re.compile(r"[ \t\n\r]*")  # JSON's
_DECODER = json.JSONDecoder()

Place = Path | zipfile.Path  # a file, or one inside a zip


def check_there(path: Place) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; put the file there or mend its path in data/collections")


@contextmanager
def opened(path: Place) -> Iterator[BinaryIO]:
    check_there(path)
    with _opened(path) as file, _unpacked(file, path) as unpacked:
        yield unpacked


def _opened(path: Place) -> IO[bytes]:
    try:
        return path.open("rb")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:  # of offsets, methods, passwords
        if isinstance(path, Path):
            raise
        raise ValueError(f"{path} is damaged or encrypted ({error}); copy or download the zip again") from error


@contextmanager
def _unpacked(file: IO[bytes], path: Place) -> Iterator[BinaryIO]:
    """`file` must be buffered; `path` is for messages."""
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
        if not kind or getattr(error, "errno", None) is not None:  # of the disk, not of what stands on it
            raise
        raise ValueError(f"{path} is a truncated or damaged {kind} ({error}); copy or download it again") from error


def _lines_of(file: BinaryIO, path: Place) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(file, start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            yield number, line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(_not_utf8(path, number, line[error.start])) from None


def _not_utf8(path: Place, line: int, byte: int) -> str:
    return f"{path}, line {line}: byte 0x{byte:02x} is not UTF-8; convert the file, e.g. with iconv -t utf-8"


def tsv(
    path: Path,
    names: Sequence[str] = (),
    *,
    needed: Sequence[str] = (),
    quoted: bool = True,
    delimiters: str = "\t",
) -> Iterator[tuple[str, dict[str, str]]]:
    """Rows of separated cells by column, which the first line names where `names` does not; `needed` must be among
    them. Of several `delimiters` the one that the first line has most of counts. The place is the line a row ends on.
    """
    by = delimiters if len(delimiters) == 1 else max(delimiters, key=_first_line(path).count)
    for where, found in cells(path, quoted=quoted, delimiter=by):
        if not names:
            names = found
            for name in needed:
                if name not in names:
                    raise ValueError(
                        f"{where}: column {name!r} is missing (there are {listed(names)}); add or rename it"
                    )
            if len(set(names)) < len(names):
                raise ValueError(f"{where}: a column name stands twice in the header ({listed(names)})")
        elif len(found) != len(names):
            raise ValueError(
                f"{where}: {len(found)} cells, expected {len(names)} ({listed(names)}), by {SEPARATED_BY[by]}"
            )
        else:
            yield where, dict(zip(names, found, strict=True))


def listed(names: Iterable[str]) -> str:
    """For a message, on one line."""
    return ", ".join(name if name.isprintable() else repr(name) for name in names)


def _first_line(path: Path) -> str:
    with opened(path) as file:
        return next(_lines_of(file, path), (1, ""))[1]


def cells(path: Path, *, quoted: bool = False, delimiter: str = "\t") -> Iterator[tuple[str, list[str]]]:
    """The place and the cells of each line; quoted ones as in CSV, with doubled quotes inside quotes."""
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    csv.field_size_limit(FIELD)
    with opened(path) as file:
        lines = (line for _, line in _lines_of(file, path))
        reader = csv.reader(lines, delimiter=delimiter, strict=True, quoting=quoting)
        try:
            yield from ((f"{path}, line {reader.line_num}", found) for found in reader if found)
        except csv.Error as error:
            hint = "a cell that begins with a quote must end with one, and quotes inside it are doubled"
            raise ValueError(f"{path}, line {reader.line_num}: {error}; {hint}") from None


def objects(path: Place) -> Iterator[tuple[str, dict[str, Any]]]:
    """JSON objects: one per line (blank lines are passed over), or those of a list, of which memory holds one and a
    chunk; of a tar archive those of all its files, none of which is unpacked to disk."""
    with opened(path) as file:
        yield from _archived(file, path) if path.name.endswith(ARCHIVES) else _objects_of(file, path)


def _archived(file: BinaryIO, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        with tarfile.open(fileobj=file, mode="r|") as archive:
            for member in archive:
                if member.isfile():
                    where = path / member.name
                    with _unpacked(archive.extractfile(member), where) as unpacked:
                        yield from _objects_of(unpacked, where)
    except tarfile.TarError as error:
        raise ValueError(f"{path} is a truncated or damaged archive ({error}); copy or download it again") from error


def _objects_of(file: BinaryIO, path: Place) -> Iterator[tuple[str, dict[str, Any]]]:
    listed = file.peek(4096).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
    for line, value in (_listed if listed else _one_per_line)(file, path):
        where = f"{path}, line {line}"
        if not isinstance(value, dict):
            raise ValueError(f"{where}: expected a JSON object, found {type(value).__name__}")
        yield where, value


def _one_per_line(file: BinaryIO, path: Place) -> Iterator[tuple[int, object]]:
    for number, line in _lines_of(file, path):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{path}, line {number}: malformed JSON at character {error.pos}: {error.msg}; mend it"
            ) from None
        except (ValueError, RecursionError):
            raise ValueError(f"{path}, line {number}: {BEYOND}") from None


def data_of(path: Path) -> list[Any]:
    """The list `data` of a file that is one JSON object, as SQuAD's; held in memory."""
    with opened(path) as file:
        try:
            found = json.loads(file.read().decode("utf-8-sig"))["data"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}: expected a JSON object with a list `data` ({error})") from None
    return found


def _listed(file: BinaryIO, path: Place) -> Iterator[tuple[int, object]]:
    text = _Text(file, path)
    text.next()  # the opening bracket
    text.at += 1
    last = text.next() == "]"
    while not last:
        yield text.item()
        if (found := text.next()) not in ("]", ","):
            raise text.error(_ended("between items", found))
        last = found == "]"
        text.at += not last
    text.at += 1
    if text.next():
        raise text.error("malformed JSON: something follows the list's closing bracket")


def _ended(place: str, found: str) -> str:
    return (
        f"malformed JSON {place}: found {found!r}" if found else "the file ends inside the JSON list; it is truncated"
    )


class _Text:
    """Characters of a file, read as they are needed; those before `at` are consumed."""

    def __init__(self, file: BinaryIO, path: Place) -> None:
        self.at = 0
        self._file, self._path, self._text, self._ended = file, path, "", False
        self._line, self._counted = 1, 0  # the line on which the character `_counted` stands
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode

    def next(self) -> str:
        """The next character that is not white space; empty at the end of the file."""
        while True:
            self.at = _SPACE.match(self._text, self.at).end()
            if self.at < len(self._text) or self._ended:
                return self._text[self.at : self.at + 1]
            self._read()

    def item(self) -> tuple[int, object]:
        """The object that begins here, and its line."""
        if (found := self.next()) != "{":
            raise self.error(_ended("in the list, expected an object", found))
        line = self._reached()
        while True:
            try:
                value, self.at = _DECODER.raw_decode(self._text, self.at)
                return line, value
            except json.JSONDecodeError as error:
                # An item cut by the end of what was read fails in its last characters or in a string without end.
                cut = len(self._text) - error.pos <= 16 or error.msg.startswith("Unterminated string")
                if not cut or self._ended or len(self._text) - self.at > LARGEST:
                    end = " (or the file is truncated)" if cut and self._ended else ""
                    self.at = error.pos
                    raise self.error(f"malformed JSON: {error.msg}{end}; mend it") from None
                self._read()
            except (ValueError, RecursionError):
                raise self.error(BEYOND) from None

    def error(self, said: str) -> ValueError:
        return ValueError(f"{self._path}, line {self._reached()}: {said}")

    def _reached(self) -> int:
        self._line += self._text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def _read(self) -> None:
        # As much as is waiting, so that an item of many chunks is tried a logarithmic number of times.
        data = self._file.read(max(CHUNK, len(self._text) - self.at))
        self._ended = not data
        line = self._reached()
        try:
            more = self._decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            line += self._text.count("\n", self.at) + error.object[: error.start].count(b"\n")
            raise ValueError(_not_utf8(self._path, line, error.object[error.start])) from None
        self._text, self.at, self._counted = self._text[self.at :] + more, 0, 0


def parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    check_there(path)
    number = 0
    try:
        if len(set(names := (file := pq.ParquetFile(path)).schema_arrow.names)) < len(names):
            raise ValueError(f"{path}: a column name stands twice ({listed(names)}); rename or drop one")
        for batch in file.iter_batches(batch_size=4096):
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                _check_column(f"{path}, after row {number}", name, column)
            for row in batch.to_pylist():
                number += 1
                yield f"{path}, row {number}", row
    except (pa.ArrowInvalid, OSError) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"{path}: damaged after row {number}, or not Parquet at all ({said}); write it anew") from None
    except OverflowError as error:
        raise ValueError(f"{path}, after row {number}: a value is beyond Python's ({error}); drop its column") from None


def _check_column(where: str, name: str, column: pa.Array) -> None:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{where}: column {name!r} is damaged or not UTF-8 ({error}); write it anew") from None
