"""Random access to passages, by id or row, at any corpus size.

Parquet decodes whole row groups, so the columns are first copied, uncompressed, to an Arrow file that is memory-mapped:
only the rows that are read take memory.
"""

import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa

from eadpr.runtime import cache, files
from eadpr.storage import tables
from eadpr.storage.records import Passage, Span

LARGE = 256 * 2**20  # bytes of Parquet; the copy of a larger file stays in the cache for the next stage


class PassageStore:
    """The passages of a `passages.parquet`; a row is a passage's position in the file, from 0."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with ExitStack() as stack:
            folder = _mappable_copy(path, stack)
            self._table = pa.ipc.open_file(pa.memory_map(str(folder / "passages.arrow"))).read_all()
            self._hashes, self._order = (
                np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray) for name in ("hashes", "order")
            )

    def __len__(self) -> int:
        return len(self._table)

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """Return the rows of passage ids, shape (len(ids),), int64; raises ValueError for an unknown id."""
        hashes = hash_ids(ids)
        starts = np.searchsorted(self._hashes, hashes).tolist()
        return np.array([self._row(*lookup) for lookup in zip(ids, hashes, starts, strict=True)], dtype=np.int64)

    def _row(self, passage_id: str, digest: np.uint64, start: int) -> int:
        # Ids with the same hash are neighbours from `start` on.
        for position in range(start, len(self)):
            if self._hashes[position] != digest:
                break
            row = int(self._order[position])
            if self._table["id"][row].as_py() == passage_id:
                return row
        raise ValueError(
            f"passage id {passage_id!r} is not in {self.path}; a table was made from other passages, run `dvc repro`"
        )

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

    def _take(self, name: str, rows: Iterable[int]) -> list:
        column, values = self._table[name], []
        for row in rows.tolist() if isinstance(rows, np.ndarray) else rows:
            if not 0 <= row < len(column):
                raise IndexError(f"row {row} of {len(column)} passages")
            values.append(column[row].as_py())
        return values


def _mappable_copy(path: Path, stack: ExitStack) -> Path:
    """Copy the passages to a folder of the cache, or a small file to one that is temporary, and return the folder."""
    if path.exists() and path.stat().st_size >= LARGE:
        key = cache.fingerprint("passages", cache.code(__file__), files.sha256(path))
        folder = cache.root() / "passages" / key / "columns"
        if not folder.exists():
            with cache.workspace("passages", key):
                if not folder.exists():  # another process may have made it by now
                    with files.new_folder(folder) as temporary:
                        _copy(path, temporary)
        return folder
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eadpr-passages-")))
    _copy(path, folder)
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
    """Hash ids to (n,) uint64; a million ids as strings would take a hundred times the memory."""
    digests = b"".join(hashlib.blake2b(i.encode(), digest_size=8).digest() for i in ids)
    return np.frombuffer(digests, dtype=np.uint64)
