"""Passage vectors on disk: float16 shards of a fixed number of rows, described by `vectors.json`.

Row r of the corpus (the r-th passage of passages.parquet) is row r % shard_passages of shard r // shard_passages.
"""

import copy
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from eadpr.runtime import files
from eadpr.runtime.model_folders import SIDES
from eadpr.training.config import settings_of

MANIFEST = "vectors.json"
DTYPE = np.dtype("<f2")

# np.load parses headers with `ast`: before 3.11.8 Python may raise a SystemError in threads (CPython issue 106905).
_LOADING = threading.Lock()


def encoder_of(model: Path) -> dict[str, Any]:
    """Return what decides the vector of a passage: the hash of the passage encoder in a model folder, and settings."""
    return {
        "encoder": files.tree_sha256(model / SIDES[1]),
        "encoder_settings": settings_of(model).model_dump(exclude={"shared", "scale", "unit"}, exclude_defaults=True),
    }


def shard_name(number: int) -> str:
    return f"vectors-{number:05d}.npy"


def shard_ranges(rows: int, shard_passages: int) -> list[tuple[int, int]]:
    return [(first, min(first + shard_passages, rows)) for first in range(0, rows, shard_passages)]


class Vectors:
    """Read access to a folder written by `encode`; shards are memory-mapped while they are used, never loaded whole.

    Raises OSError or ValueError if a shard is missing or has another shape than vectors.json states, if the vectors are
    not of the file `passages`, a passages.parquet, and if the passage encoder of the folder `model` with its
    settings did not make the vectors: scores of two models mean nothing.
    """

    def __init__(self, folder: Path, passages: Path | None = None, model: Path | None = None) -> None:
        self.folder = folder
        values = files.read_json(folder / MANIFEST, "rows", "dim", "shard_passages")
        self.rows: int = values["rows"]
        self.dim: int = values["dim"]
        self.shard_passages: int = values["shard_passages"]
        again = "run `dvc repro` to encode the passages again"
        if passages is not None and files.sha256(passages) != values.get("passages"):
            raise ValueError(f"{folder} holds vectors of other passages than {passages} has now; {again}")
        if model is not None and any(values.get(key) != value for key, value in encoder_of(model).items()):
            raise ValueError(f"{folder} was not made by the passage encoder of {model}, which has changed; {again}")
        self._ranges = shard_ranges(self.rows, self.shard_passages)
        for number in range(len(self._ranges)):
            self._shard(number)

    def _shard(self, number: int) -> np.ndarray:
        """Return a shard as a read-only memory map (rows, dim); raises ValueError for another shape or type."""
        first, end = self._ranges[number]
        path, shape = self.folder / shard_name(number), (end - first, self.dim)
        try:
            with _LOADING:
                shard = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path} is not a readable .npy file ({error}); delete it and run `dvc repro`") from error
        if shard.dtype != DTYPE or shard.shape != shape:
            actual = f"{shard.dtype} {shard.shape}"
            raise ValueError(f"{path} holds {actual}, expected float16 {shape}; delete it, run `dvc repro`")
        return shard

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the first row and a float16 (n, dim) view of consecutive blocks, n <= size, each within a shard."""
        for number, (first, _) in enumerate(self._ranges):
            shard = self._shard(number)[: max(0, self.rows - first)]
            for start in range(0, len(shard), size):
                yield first + start, shard[start : start + size]

    def head(self, rows: int) -> Self:
        """Return the vectors with `blocks` of the first `rows` alone."""
        first = copy.copy(self)
        first.rows = rows
        return first

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return float16 (n, dim) for the rows (n,), in that order."""
        vectors = np.empty((len(rows), self.dim), DTYPE)
        order = np.argsort(rows, kind="stable")
        numbers, starts = np.unique(rows[order] // self.shard_passages, return_index=True)
        for number, places in zip(numbers.tolist(), np.split(order, starts)[1:], strict=True):
            vectors[places] = self._shard(number)[rows[places] % self.shard_passages]
        return vectors
