"""Passages by id and by row, at random, at any corpus size: the one place for that; joins are the engine's.

Parquet decodes whole row groups, so the columns are first copied, uncompressed, to an Arrow file that is memory-mapped:
the memory needed is that of the rows asked for.
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

LARGE = 256 * 2**20  # bytes of Parquet from which the copy is kept in the cache for the next stage


class PassageStore:
    """Passages of a `passages.parquet`; a row is a passage's position in it, counted from 0."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with ExitStack() as stack:
            folder = _copied(path, stack)
            self._table = pa.ipc.open_file(pa.memory_map(str(folder / "passages.arrow"))).read_all()
            self._hashes, self._order = (
                np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray) for name in ("hashes", "order")
            )

    def __len__(self) -> int:
        return len(self._table)

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """Shape (len(ids),), int64. Raises ValueError for an id that is not in the collection."""
        sought = hashed(ids)
        at = np.searchsorted(self._hashes, sought)
        return np.array([self._search(*one) for one in zip(ids, sought, at.tolist(), strict=True)], dtype=np.int64)

    def _search(self, passage_id: str, sought: np.uint64, at: int) -> int:
        """The row of an id that may share its hash with others, which stand from `at` on."""
        while at < len(self) and self._hashes[at] == sought:
            row = int(self._order[at])
            if self._table["id"][row].as_py() == passage_id:
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

    def sentences(self, rows: Iterable[int]) -> list[list[Span] | None]:
        """As the source gave them; None where it gave none."""
        found = self._take("sentences", rows)
        return [None if given is None else [Span(**span) for span in given] for given in found]

    def _take(self, name: str, rows: Iterable[int]) -> list:
        column, found = self._table[name], []
        for row in rows.tolist() if isinstance(rows, np.ndarray) else rows:
            if not 0 <= row < len(column):
                raise IndexError(f"row {row} of {len(column)} passages")
            found.append(column[row].as_py())
        return found


def _copied(path: Path, stack: ExitStack) -> Path:
    """The folder of the copy: in the cache for a large file, else a temporary one that goes once it is mapped."""
    if path.exists() and path.stat().st_size >= LARGE:
        key = cache.fingerprint("passages", cache.code(__file__), files.sha256(path))
        folder = cache.root() / "passages" / key / "columns"
        if not folder.exists():
            with cache.workspace("passages", key):
                if not folder.exists():  # another process may have made it meanwhile
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
            hashes.append(hashed(batch.column("id").to_pylist()))
            writer.write_batch(batch)
    found = np.concatenate(hashes)
    order = np.argsort(found, kind="stable")
    np.save(folder / "order.npy", order.astype(np.int32))
    np.save(folder / "hashes.npy", found[order])


def hashed(ids: Sequence[str]) -> np.ndarray:
    """(n,) uint64, eight bytes each: a million ids as they are would take a hundred times the memory."""
    digests = b"".join(hashlib.blake2b(i.encode(), digest_size=8).digest() for i in ids)
    return np.frombuffer(digests, dtype=np.uint64)
