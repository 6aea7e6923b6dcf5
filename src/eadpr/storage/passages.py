"""Random access to passages, by id or row, at any corpus size.

Parquet decodes whole row groups, so the columns are first copied, uncompressed, to a memory-mapped Arrow file.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from eadpr.runtime import cache, files
from eadpr.storage import tables
from eadpr.storage.records import Passage, Span


class PassageStore:
    """The passages of a `passages.parquet`; a row is a passage's position in the file, from 0."""

    def __init__(self, path: Path) -> None:
        self.path = path
        folder = _map_columns(path)
        self._table = pa.ipc.open_file(pa.memory_map(str(folder / "passages.arrow"))).read_all()
        # A view as an array: each look-up in a memmap would make another one.
        self._hashes = np.load(folder / "hashes.npy", mmap_mode="r").view(np.ndarray)
        self._order = np.load(folder / "order.npy", mmap_mode="r").view(np.ndarray)

    def __len__(self) -> int:
        return len(self._table)

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """Return the rows of passage ids, shape (len(ids),), int64; raises ValueError for an unknown id."""
        rows = np.empty(len(ids), dtype=np.int64)
        for i, place in enumerate(np.searchsorted(self._hashes, hash_ids(ids)).tolist()):
            if place == len(self) or self._table["id"][int(self._order[place])].as_py() != ids[i]:
                raise ValueError(f"passage id {ids[i]!r} is not in {self.path}; run `dvc repro` to rebuild its tables")
            rows[i] = self._order[place]
        return rows

    def ids(self, rows: Iterable[int]) -> list[str]:
        return self._take("id", rows)

    def titles(self, rows: Iterable[int]) -> list[str]:
        return self._take("title", rows)

    def texts(self, rows: Iterable[int]) -> list[str]:
        return self._take("text", rows)

    def sentences(self, rows: Iterable[int]) -> list[list[Span] | None]:
        """Return the sentences that the source marks in each passage; None for a passage without them."""
        columns = self._take("sentences", rows)
        return [None if spans is None else [Span(**span) for span in spans] for spans in columns]

    def passages(self, rows: Iterable[int]) -> list[Passage]:
        return list(map(Passage, self.ids(rows), self.titles(rows), self.texts(rows), self.sentences(rows)))

    def _take(self, name: str, rows: Iterable[int]) -> list:
        column, values = self._table[name], []
        for row in rows.tolist() if isinstance(rows, np.ndarray) else rows:
            if not 0 <= row < len(column):
                raise IndexError(f"row {row} of {len(column)} passages")
            values.append(column[row].as_py())
        return values


def _map_columns(path: Path) -> Path:
    """Copy the passages to a folder of the cache, unless that is done, and return the folder."""
    tables.check(path, Passage)
    key = cache.fingerprint("passages", cache.code(__file__), files.sha256(path))
    folder = cache.root() / "passages" / key / "columns"
    if not cache.intact(folder):
        with cache.workspace("passages", key):
            if not cache.intact(folder):  # another process may have made it by now
                with files.new_folder(folder) as temporary:
                    _copy(path, temporary)
                cache.seal(folder)
    return folder


def _copy(path: Path, folder: Path) -> None:
    hashes = [np.zeros(0, np.uint64)]
    schema = tables.schema(Passage)
    with pa.OSFile(str(folder / "passages.arrow"), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in tables.batches(path, Passage):
            hashes.append(hash_ids(batch.column("id").to_pylist()))
            writer.write_batch(batch)
    unsorted = np.concatenate(hashes)
    order = np.argsort(unsorted, kind="stable")
    np.save(folder / "order.npy", order.astype(np.int32))
    np.save(folder / "hashes.npy", unsorted[order])


def hash_ids(ids: Sequence[str]) -> np.ndarray:
    """Hash ids to (n,) uint64, a hundredth of the memory of strings. Of 21 million ids two share a hash with a
    probability of 1e-5; the second of them would be refused as unknown."""
    digests = b"".join(hashlib.blake2b(i.encode(), digest_size=8).digest() for i in ids)
    return np.frombuffer(digests, dtype=np.uint64)
