"""Text files as they come from outside: plain, gzip or bzip2, UTF-8 with or without a byte order mark, LF or CRLF.

Lines end at a newline and nowhere else: U+2028 and its like are text. Errors are ValueErrors that name file and line.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import json
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, BinaryIO

CHUNK = 1 << 20  # bytes read at a time from a JSON list
LARGEST = 1 << 28  # characters of one item of a JSON list; more means a missing bracket
TOO_DEEP = "malformed JSON: brackets nested too deep; mend it"
FIELD = 1 << 25  # characters of one field of a TSV file; more means an unclosed quote

_DECODER = json.JSONDecoder()

Place = Path | zipfile.Path  # a file, or one inside a zip


@contextmanager
def opened(path: Place) -> Iterator[BinaryIO]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; put the file there or mend its path in params.yaml")
    try:
        with path.open("rb") as file, _unpacked(file, path) as unpacked:
            yield unpacked
    except (EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is a truncated or damaged file of a zip ({error}); copy or download it again"
        ) from error


@contextmanager
def _unpacked(file: IO[bytes], path: Place) -> Iterator[BinaryIO]:
    """`file` must be buffered; `path` is for messages."""
    start = file.peek(10)[:10]
    kind = "gzip" if start[:2] == b"\x1f\x8b" else "bzip2" if start[:3] + start[4:] == b"BZh1AY&SY" else ""
    with {"gzip": gzip.open, "bzip2": bz2.open, "": nullcontext}[kind](file) as unpacked:
        try:
            yield unpacked
        except (EOFError, OSError, zlib.error) as error:
            if not kind or getattr(error, "errno", None) is not None:  # of the disk, not of what stands on it
                raise
            raise ValueError(
                f"{path} is a truncated or damaged {kind} file ({error}); copy or download it again"
            ) from error


def archived_jsonl(path: Path) -> Iterator[tuple[Path, int, dict[str, Any]]]:
    """The objects of all JSONL files in a tar archive, with file and line; nothing is unpacked to disk."""
    with opened(path) as file:
        try:
            with tarfile.open(fileobj=file, mode="r|") as archive:
                for member in archive:
                    if member.isfile():
                        where = path / member.name
                        with _unpacked(archive.extractfile(member), where) as unpacked:
                            yield from ((where, line, item) for line, item in _jsonl_of(unpacked, where))
        except tarfile.TarError as error:
            raise ValueError(
                f"{path} is a truncated or damaged archive ({error}); copy or download it again"
            ) from error


def lines(path: Place) -> Iterator[tuple[int, str]]:
    """Line numbers from 1, and the lines with their ends."""
    with opened(path) as file:
        yield from _lines_of(file, path)


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


def tsv(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows of tab-separated cells, quoted as in CSV (doubled quotes inside quotes), with the line a row ends on."""
    csv.field_size_limit(FIELD)
    reader = csv.reader((line for _, line in lines(path)), delimiter="\t", strict=True)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            hint = "a cell that begins with a quote must end with one, and quotes inside it are doubled"
            raise ValueError(f"{path}, line {reader.line_num}: {error}; {hint}") from None
        if cells is None:
            return
        if cells:
            yield reader.line_num, cells


def jsonl(path: Place) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects, one per line; blank lines are passed over."""
    with opened(path) as file:
        yield from _jsonl_of(file, path)


def _jsonl_of(file: BinaryIO, path: Place) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in _lines_of(file, path):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{path}, line {number}: malformed JSON at character {error.pos}: {error.msg}; mend it"
            ) from None
        except RecursionError:
            raise ValueError(f"{path}, line {number}: {TOO_DEEP}") from None
        yield number, _object(path, number, value)


def json_items(path: Place) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON list, or of a JSONL file, with the line each begins on; memory is one item and a chunk."""
    with opened(path) as file:
        start = file.read(4096).removeprefix(codecs.BOM_UTF8).lstrip()
    yield from _list_items(path) if start.startswith(b"[") else jsonl(path)


class _Buffer:
    """Characters of a file that are not consumed yet, and the line the first of them stands on."""

    def __init__(self, path: Place, file: BinaryIO) -> None:
        self.path, self.file, self.text, self.at, self.line, self.ended = path, file, "", 0, 1, False
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode

    def fill(self) -> None:
        # Reads as much as is waiting, so that an item of many chunks is tried a logarithmic number of times.
        data = self.file.read(max(CHUNK, len(self.text) - self.at))
        self.ended = not data
        try:
            more = self._decode(data, final=self.ended)
        except UnicodeDecodeError as error:
            line = self.line + self.text.count("\n", self.at) + error.object[: error.start].count(b"\n")
            raise ValueError(_not_utf8(self.path, line, error.object[error.start])) from None
        self.text, self.at = self.text[self.at :] + more, 0

    def take(self, end: int) -> None:
        self.line += self.text.count("\n", self.at, end)
        self.at = end

    def peek(self) -> str:
        """The next character that is not white space; empty at the end of the file."""
        while True:
            left = len(self.text) - self.at
            stripped = self.text[self.at : self.at + 64].lstrip(" \t\r\n")
            if stripped:
                self.take(self.at + min(left, 64) - len(stripped))
                return self.text[self.at]
            if left:
                self.take(self.at + min(left, 64))
            elif self.ended:
                return ""
            else:
                self.fill()

    def error(self, said: str) -> ValueError:
        return ValueError(f"{self.path}, line {self.line}: {said}")


def _list_items(path: Place) -> Iterator[tuple[int, dict[str, Any]]]:
    with opened(path) as file:
        buffer = _Buffer(path, file)
        if buffer.peek() != "[":
            raise buffer.error("expected a JSON list")
        separator = "["
        while True:
            buffer.take(buffer.at + 1)
            if separator == "[" and buffer.peek() == "]":
                break
            line = (buffer.peek(), buffer.line)[1]
            yield line, _object(path, line, _item(buffer))
            separator = buffer.peek()
            if separator == "]":
                break
            if separator != ",":
                raise buffer.error(_ended("between items", separator))
        buffer.take(buffer.at + 1)
        if buffer.peek():
            raise buffer.error("malformed JSON: something follows the list's closing bracket")


def _ended(place: str, found: str) -> str:
    return (
        f"malformed JSON {place}: found {found!r}" if found else "the file ends inside the JSON list; it is truncated"
    )


def _item(buffer: _Buffer) -> object:
    if buffer.peek() != "{":
        raise buffer.error(_ended("in the list, expected an object", buffer.peek()))
    while True:
        try:
            value, end = _DECODER.raw_decode(buffer.text, buffer.at)
        except json.JSONDecodeError as error:
            # An item cut by the buffer's end fails in its last characters or in a string that does not end.
            cut = len(buffer.text) - error.pos <= 16 or error.msg.startswith("Unterminated string")
            if not cut or buffer.ended or len(buffer.text) - buffer.at > LARGEST:
                end = " (or the file is truncated)" if cut and buffer.ended else ""
                buffer.take(error.pos)
                raise buffer.error(f"malformed JSON: {error.msg}{end}; mend it") from None
            buffer.fill()
        except RecursionError:
            raise buffer.error(TOO_DEEP) from None
        else:
            buffer.take(end)
            return value


def _object(path: Place, line: int, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{path}, line {line}: expected a JSON object, found {type(value).__name__}")
    return value
