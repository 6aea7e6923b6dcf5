"""Passage vectors on disk: float16 shards of a fixed number of rows, described by `vectors.json`.

Row r of the corpus (the r-th passage of passages.parquet) is row r % shard_passages of shard r // shard_passages.
"""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from eadpr.runtime import files, section
from eadpr.runtime.model_folders import SIDES
from eadpr.storage import tables
from eadpr.storage.records import Passage
from eadpr.training.config import ResolvedSettings

MANIFEST = "vectors.json"
DTYPE = np.dtype("<f2")

# np.load parses headers with `ast`, where Python 3.11 before 3.11.8 may raise a SystemError when several threads do so
# at the same time (CPython issue 106905).
_LOADING = threading.Lock()


def encoder_of(model: Path) -> dict[str, Any]:
    """Return what decides the vector of a passage: the hash of the passage encoder in a model folder, and settings."""
    path = model / "encoder.json"
    settings = section.checked(ResolvedSettings, files.read_json(path), path)
    return {
        "encoder": files.tree_sha256(model / SIDES[1]),
        "encoder_settings": settings.model_dump(exclude={"shared", "scale"}, exclude_defaults=True),
    }


def shard_name(number: int) -> str:
    return f"vectors-{number:05d}.npy"


def shard_ranges(rows: int, shard_passages: int) -> list[tuple[int, int]]:
    """Return the first row and end row of every shard."""
    return [(first, min(first + shard_passages, rows)) for first in range(0, rows, shard_passages)]


class Vectors:
    """Read access to a folder written by `encode`; shards are memory-mapped while they are used, never loaded whole.

    Raises FileNotFoundError or ValueError if a shard is missing or has another shape than vectors.json states, if
    `passages`, a passages.parquet, holds another number of passages, and if the passage encoder of the folder `model`
    with its settings did not make the vectors: scores of two models mean nothing.
    """

    def __init__(self, folder: Path, passages: Path | None = None, model: Path | None = None) -> None:
        self.folder = folder
        manifest = folder / MANIFEST
        if not manifest.exists():
            raise FileNotFoundError(f"{manifest} does not exist; run `dvc repro` to encode the passages")
        keys = ["rows", "dim", "shard_passages"] + ([] if model is None else ["encoder", "encoder_settings"])
        values = files.read_json(manifest, *keys)
        self.rows: int = values["rows"]
        self.dim: int = values["dim"]
        self.shard_passages: int = values["shard_passages"]
        if passages is not None and (count := tables.count(passages, Passage)) != self.rows:
            raise ValueError(
                f"{folder} holds {self.rows:,} vectors, {passages} {count:,} passages; run `dvc repro` to encode them"
                " again"
            )
        if model is not None and any(values[key] != value for key, value in encoder_of(model).items()):
            raise ValueError(
                f"{folder} was not made by the passage encoder of {model}, which has changed since; run"
                " `dvc repro` to encode the passages again"
            )
        self._ranges = shard_ranges(self.rows, self.shard_passages)
        for number in range(len(self._ranges)):
            self._shard(number)

    def __len__(self) -> int:
        return self.rows

    def _shard(self, number: int) -> np.ndarray:
        first, end = self._ranges[number]
        path = self.folder / shard_name(number)
        return open_shard(path, rows=end - first, dim=self.dim)

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the first row and a float16 (n, dim) view of consecutive blocks, n <= size, each within a shard."""
        for number, (first, end) in enumerate(self._ranges):
            shard = self._shard(number)
            for start in range(0, end - first, size):
                yield first + start, shard[start : start + size]

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return float16 (n, dim) for the rows (n,), in that order."""
        vectors = np.empty((len(rows), self.dim), DTYPE)
        order = np.argsort(rows, kind="stable")
        numbers, starts = np.unique(rows[order] // self.shard_passages, return_index=True)
        for number, places in zip(numbers.tolist(), np.split(order, starts)[1:], strict=True):
            vectors[places] = self._shard(number)[rows[places] % self.shard_passages]
        return vectors


def open_shard(path: Path, *, rows: int, dim: int | None = None) -> np.ndarray:
    """Return a shard as a read-only memory map (rows, dim); raises ValueError for another shape or type."""
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
