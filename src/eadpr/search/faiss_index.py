"""FAISS indexes over the stored vectors, which propose candidates for `exact.rescore`.

Unlike exact search they hold the corpus, or codes of it, in memory. An index is cached by content. FAISS' clusterings
and rotations have fixed seeds; ours draws and orders the passages that they learn from. Graphs are built by one thread,
because several give other links at every run.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import faiss
import numpy as np

from eadpr.runtime import cache, files
from eadpr.runtime.progress import progress
from eadpr.search.config import Retrieve
from eadpr.search.vectors import MANIFEST, Vectors

BLOCK = 65_536  # passages added at a time
GRAPH = "HNSW"


def find_candidates(
    vectors: Vectors, questions: np.ndarray, size: int, *, settings: Retrieve, threads: int
) -> np.ndarray:
    """Return rows (Q, size) of the index's best passages for float32 questions (Q, D), filled up with -1.

    Raises ValueError for settings that FAISS refuses, if possible before anything is built.
    """
    faiss.omp_set_num_threads(threads)
    with _explained("faiss.search", settings.faiss.search, vectors):
        faiss.ParameterSpace().set_index_parameters(empty(vectors, settings), settings.faiss.search)
    index = _read_or_build(vectors, settings, threads)
    with _explained("faiss.search", settings.faiss.search, vectors):
        faiss.ParameterSpace().set_index_parameters(index, settings.faiss.search)
        _, rows = index.search(np.ascontiguousarray(questions, np.float32), min(size, vectors.rows))
    return rows


def _read_or_build(vectors: Vectors, settings: Retrieve, threads: int) -> faiss.Index:
    """Return the index from the cache; it is built first if it is missing."""
    parameters = settings.index, settings.faiss.train_passages, settings.faiss.seed
    identity = files.sha256(vectors.folder / MANIFEST)
    key = cache.fingerprint(identity, parameters, threads, faiss.__version__, cache.code(__file__))
    with cache.workspace("faiss", key) as folder:
        path = folder / "index.faiss"
        if not cache.intact(path):
            index = build(vectors, settings)
            with files.replacing(path) as temporary:
                faiss.write_index(index, os.fspath(temporary))
            cache.seal(path)
            return index
        return faiss.read_index(os.fspath(path))


def build(vectors: Vectors, settings: Retrieve) -> faiss.Index:
    index, threads = empty(vectors, settings), faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1 if GRAPH in settings.index else threads)
    try:
        with _explained("index", settings.index, vectors), progress("index", vectors.rows, "passages") as advance:
            if not index.is_trained:
                index.train(_sample(vectors, settings).astype(np.float32))
            for _, block in vectors.blocks(BLOCK):
                index.add(block.astype(np.float32))
                advance(len(block))
    finally:
        faiss.omp_set_num_threads(threads)
    return index


def empty(vectors: Vectors, settings: Retrieve) -> faiss.Index:
    with _explained("index", settings.index, vectors):
        index = faiss.index_factory(vectors.dim, settings.index, faiss.METRIC_INNER_PRODUCT)
    if index.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise ValueError(
            f"retrieve.index: {settings.index!r} does not search by inner product, as passages are scored; take another"
            " or exact (docs/howto/indexes.md)"
        )
    return index


def _sample(vectors: Vectors, settings: Retrieve) -> np.ndarray:
    size = min(settings.faiss.train_passages, vectors.rows)
    return vectors.take(np.random.default_rng(settings.faiss.seed).choice(vectors.rows, size, replace=False))


def is_index(index: str) -> bool:
    """Tell whether this is a string of index_factory; it may still not fit the vectors."""
    try:
        faiss.index_factory(768, index, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        return "could not parse" not in str(error)
    return True


@contextmanager
def _explained(key: str, value: str, vectors: Vectors) -> Iterator[None]:
    """Turn FAISS' errors into ValueErrors that name a setting, without the place in FAISS' code."""
    try:
        yield
    except RuntimeError as error:
        reason = re.sub(r"(?s).*\.(cpp|h):\d+: (Error: '.*' failed:? ?)?", "", str(error)).strip() or str(error)
        raise ValueError(
            f"retrieve.{key}: FAISS refuses {value!r} for the {vectors.rows:,} x {vectors.dim} vectors of"
            f" {vectors.folder}: {reason}; docs/howto/indexes.md says what fits, and retrieve.index: exact always does"
        ) from error
