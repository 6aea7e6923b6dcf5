"""FAISS indexes over the stored vectors, which propose candidates for `exact.rescore`.

Unlike exact search they hold the corpus, or codes of it, in memory. An index is cached by content. FAISS' clusterings
and rotations have fixed seeds; ours draws and orders what they learn from. One thread builds graphs: several vary them.
"""

import os
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
    """Return rows (Q, size) of the index's best passages for float32 questions (Q, D), filled up with -1. Raises
    ValueError for settings that FAISS refuses."""
    faiss.omp_set_num_threads(threads)
    parameters = settings.index, settings.faiss.train_passages, settings.faiss.seed
    identity = files.sha256(vectors.folder / MANIFEST)
    key = cache.fingerprint(identity, parameters, threads, faiss.__version__, cache.code(__file__))
    with cache.workspace("faiss", key) as folder:
        path = folder / "index.faiss"
        if not cache.intact(path):
            with _explained("index", settings.index):
                index = make_empty(vectors.dim, settings.index)
            with _explained("faiss.search", settings.faiss.search):  # before a build, which may take hours
                faiss.ParameterSpace().set_index_parameters(index, settings.faiss.search)
            with _explained("index", settings.index), files.replacing(path) as temporary:
                faiss.write_index(build(vectors, settings), os.fspath(temporary))
            cache.seal(path)
        index = faiss.read_index(os.fspath(path))
    with _explained("faiss.search", settings.faiss.search):
        faiss.ParameterSpace().set_index_parameters(index, settings.faiss.search)
        return index.search(np.ascontiguousarray(questions, np.float32), min(size, vectors.rows))[1]


def build(vectors: Vectors, settings: Retrieve) -> faiss.Index:
    index, threads = make_empty(vectors.dim, settings.index), faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1 if GRAPH in settings.index else threads)
    try:
        with progress("index", vectors.rows, "passages") as advance:
            size = min(settings.faiss.train_passages, vectors.rows)
            sample = np.random.default_rng(settings.faiss.seed).choice(vectors.rows, size, replace=False)
            if not index.is_trained:
                index.train(vectors.take(sample).astype(np.float32))
            for _, block in vectors.blocks(BLOCK):
                index.add(block.astype(np.float32))
                advance(len(block))
    finally:
        faiss.omp_set_num_threads(threads)
    return index


def make_empty(dim: int, index: str) -> faiss.Index:
    empty = faiss.index_factory(dim, index, faiss.METRIC_INNER_PRODUCT)
    if empty.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise RuntimeError("it does not search by inner product, as passages are scored")
    return empty


@contextmanager
def _explained(key: str, value: str) -> Iterator[None]:
    """Turn FAISS' errors into ValueErrors that name a setting."""
    try:
        yield
    except RuntimeError as error:
        raise ValueError(f"retrieve.{key}: FAISS refuses {value!r}: {error}; retrieve.index: exact fits") from error
