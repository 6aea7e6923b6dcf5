"""Passages by id and by row, at random, at any corpus size.

Parquet decodes whole row groups, so the columns are first copied, uncompressed, to files that are memory-mapped: the
memory needed is that of the rows asked for.
"""

from __future__ import annotations

import hashlib
import mmap
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eadpr import cache, files, tables
from eadpr.records import Passage

COLUMNS = ("id", "title", "text")
LARGE = 256 * 2**20  # bytes of Parquet from which the copy is kept in the cache for the next stage


class PassageStore:
    """Passages of a `passages.parquet`; a row is a passage's position in it, counted from 0."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with ExitStack() as stack:
            folder = _copied(path, stack)
            self._columns = {name: _Strings(folder, name) for name in COLUMNS}
            self._hashes = _mapped(folder / "hashes.npy")
            self._order = _mapped(folder / "order.npy")

    def __len__(self) -> int:
        return len(self._order)

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """Shape (len(ids),), int64. Raises ValueError for an id that is not in the collection."""
        sought = _hashed(ids)
        at = np.searchsorted(self._hashes, sought)
        return np.array([self._search(*one) for one in zip(ids, sought, at.tolist(), strict=True)], dtype=np.int64)

    def _search(self, passage_id: str, sought: np.uint64, at: int) -> int:
        """The row of an id that may share its hash with others, which stand from `at` on."""
        while at < len(self) and self._hashes[at] == sought:
            row = int(self._order[at])
            if self._columns["id"][row] == passage_id:
                return row
            at += 1
        raise ValueError(
            f"passage id {passage_id!r} is not in {self.path}; a table was made from other passages, run `dvc repro`"
        )

    def ids(self, rows: Iterable[int]) -> list[str]:
        return self._take("id", rows)

    def titles(self, rows: Iterable[int]) -> list[str]:
        return self._take("title", rows)

    def texts(self, rows: Iterable[int]) -> list[str]:
        return self._take("text", rows)

    def _take(self, name: str, rows: Iterable[int]) -> list[str]:
        column = self._columns[name]
        return [column[row] for row in (rows.tolist() if isinstance(rows, np.ndarray) else rows)]


class _Strings:
    """A memory-mapped column of strings: `<name>.bin` holds their UTF-8, `<name>.npy` the n + 1 offsets into it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._ends = _mapped(folder / f"{name}.npy")
        with (folder / f"{name}.bin").open("rb") as file:
            # An empty file cannot be mapped.
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self._ends[-1] else b""

    def __getitem__(self, row: int) -> str:
        if not 0 <= row < len(self._ends) - 1:
            raise IndexError(f"row {row} of {len(self._ends) - 1} passages")
        return str(self._bytes[int(self._ends[row]) : int(self._ends[row + 1])], "utf-8")


def _mapped(path: Path) -> np.ndarray:
    return np.asarray(np.load(path, mmap_mode="r"))


def _copied(path: Path, stack: ExitStack) -> Path:
    """The folder of the copy: in the cache for a large file, else a temporary one that goes once it is mapped."""
    if path.exists() and path.stat().st_size >= LARGE:
        key = cache.fingerprint("passages", cache.code(__file__), files.sha256(path))
        folder = cache.root() / "passages" / key / "columns"
        if not folder.exists():
            with cache.workspace("passages", key), files.new_folder(folder) as temporary:
                _copy(path, temporary)
        return folder
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eadpr-passages-")))
    _copy(path, folder)
    return folder


def _copy(path: Path, folder: Path) -> None:
    hashes: list[np.ndarray] = []
    lengths: dict[str, list[np.ndarray]] = {name: [] for name in COLUMNS}
    with ExitStack() as stack:
        outputs = {name: stack.enter_context((folder / f"{name}.bin").open("wb")) for name in COLUMNS}
        for batch in tables.batches(path, Passage, columns=list(COLUMNS)):
            hashes.append(_hashed(batch.column("id").to_pylist()))
            for name, output in outputs.items():
                column = batch.column(name)
                lengths[name].append(pc.binary_length(column).to_numpy(zero_copy_only=False))
                output.write(_utf8(column))
    for name in COLUMNS:
        ends = np.concatenate([np.zeros(1, np.int64), *lengths[name]]).cumsum(dtype=np.int64)
        np.save(folder / f"{name}.npy", ends)
    hashed = np.concatenate([np.zeros(0, np.uint64), *hashes])
    order = np.argsort(hashed, kind="stable")
    np.save(folder / "order.npy", order.astype(np.int32))
    np.save(folder / "hashes.npy", hashed[order])


def _utf8(column: pa.StringArray) -> memoryview:
    """The bytes of all strings of the array, one after the other."""
    _, offsets, data = column.buffers()
    if data is None:
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return memoryview(data)[ends[0] : ends[-1]]


def _hashed(ids: Sequence[str]) -> np.ndarray:
    digests = b"".join(hashlib.blake2b(i.encode(), digest_size=8).digest() for i in ids)
    return np.frombuffer(digests, dtype=np.uint64)
