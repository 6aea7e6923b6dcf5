"""Passage vectors on disk: float16 shards of a fixed number of rows and `vectors.json`, which says what they are.

Row r of the corpus (the r-th passage of passages.parquet) is row r % shard_passages of shard r // shard_passages.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from eadpr.runtime import files
from eadpr.runtime.model_folders import SIDES
from eadpr.storage import tables
from eadpr.storage.records import Passage

MANIFEST = "vectors.json"
DTYPE = np.dtype("<f2")

# np.load parses headers with `ast`, where Python 3.11 before 3.11.8 may raise a SystemError when several threads do so
# at the same time (CPython issue 106905).
_LOADING = threading.Lock()


def shard_name(number: int) -> str:
    return f"vectors-{number:05d}.npy"


def shard_ranges(rows: int, shard_passages: int) -> list[tuple[int, int]]:
    """First row and end row of every shard."""
    return [(first, min(first + shard_passages, rows)) for first in range(0, rows, shard_passages)]


class Vectors:
    """Read access to a folder written by `encode`; shards are memory-mapped while they are used, never loaded whole.

    Raises FileNotFoundError or ValueError where the folder, a shard or its shape is not what vectors.json says, where
    there are not as many as `passages`, a passages.parquet, holds, and where the passage encoder of the folder `model`
    is not the one that made them: scores of two models mean nothing.
    """

    def __init__(self, folder: Path, passages: Path | None = None, model: Path | None = None) -> None:
        self.folder = folder
        manifest = folder / MANIFEST
        if not manifest.exists():
            raise FileNotFoundError(f"{manifest} does not exist; run `dvc repro` to encode the passages")
        found = files.read_json(manifest, "rows", "dim", "shard_passages", *["encoder"] * (model is not None))
        self.rows: int = found["rows"]
        self.dim: int = found["dim"]
        self.shard_passages: int = found["shard_passages"]
        if passages is not None and (count := tables.count(passages, Passage)) != self.rows:
            raise ValueError(
                f"{folder} holds {self.rows:,} vectors, {passages} {count:,} passages; run `dvc repro` to encode them"
                " again"
            )
        self._encoder: str | None = found.get("encoder")
        if model is not None:
            self.check(model)
        self._ranges = shard_ranges(self.rows, self.shard_passages)
        for number in range(len(self._ranges)):
            self._shard(number)

    def check(self, model: Path) -> None:
        """ValueError where another passage encoder than that of the folder `model` made them."""
        if self._encoder != files.tree_sha256(model / SIDES[1]):
            raise ValueError(
                f"{self.folder} was not made by the passage encoder of {model}, which has changed since; run"
                " `dvc repro` to encode the passages again"
            )

    def __len__(self) -> int:
        return self.rows

    def _shard(self, number: int) -> np.ndarray:
        first, end = self._ranges[number]
        path = self.folder / shard_name(number)
        return open_shard(path, rows=end - first, dim=self.dim)

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """First row and float16 (n, dim) view of consecutive blocks, n <= size; a block never crosses a shard."""
        for number, (first, end) in enumerate(self._ranges):
            shard = self._shard(number)
            for start in range(0, end - first, size):
                yield first + start, shard[start : start + size]

    def take(self, rows: np.ndarray) -> np.ndarray:
        """float16 (n, dim) of the given rows (n,), in that order."""
        found = np.empty((len(rows), self.dim), DTYPE)
        order = np.argsort(rows, kind="stable")
        numbers, starts = np.unique(rows[order] // self.shard_passages, return_index=True)
        for number, here in zip(numbers.tolist(), np.split(order, starts)[1:], strict=True):
            found[here] = self._shard(number)[rows[here] % self.shard_passages]
        return found


def open_shard(path: Path, *, rows: int, dim: int | None = None) -> np.ndarray:
    """A shard as a read-only memory map (rows, dim); raises ValueError where it has another shape or type."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `dvc repro` to encode the passages")
    try:
        with _LOADING:
            shard = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is not a readable .npy file ({error}); delete it and run `dvc repro`") from error
    if shard.dtype != DTYPE or shard.ndim != 2 or shard.shape[0] != rows or dim not in (None, shard.shape[1]):
        expected = f"float16 ({rows}, {'any' if dim is None else dim})"
        raise ValueError(f"{path} holds {shard.dtype} {shard.shape}, expected {expected}; delete it, run `dvc repro`")
    return shard
