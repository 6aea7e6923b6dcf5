"""FAISS indexes over the stored vectors: candidates for `exact.rescore`, from memory and approximate where asked for.

Unlike exact search they hold the corpus in memory: flat 4·D bytes per passage, ivfpq about m·bits/8 + 8, hnsw about
4·(D + 1) + 8·m. An index is kept in the cache by content. Building and training are seeded; HNSW is built by one
thread, because several give other links at every run.
"""

import os

import faiss
import numpy as np

from eadpr import cache, files
from eadpr.progress import progress
from eadpr.search.config import Hnsw, IvfPq, Retrieve
from eadpr.search.vectors import MANIFEST, Vectors

BLOCK = 65_536  # passages added at a time


def candidates(vectors: Vectors, questions: np.ndarray, keep: int, *, settings: Retrieve, threads: int) -> np.ndarray:
    """Rows (Q, keep) of the index's best passages for float32 questions (Q, D), in its order; -1 where it finds fewer.

    HNSW looks at `ef_search` passages at least, and at no fewer than `keep`.
    """
    faiss.omp_set_num_threads(threads)
    index = _kept(vectors, settings, threads)
    if settings.index == "hnsw":
        index.hnsw.efSearch = max(settings.hnsw.ef_search, keep)
        questions = np.pad(questions, ((0, 0), (0, 1)))
    if settings.index == "ivfpq":
        index.nprobe = settings.ivfpq.nprobe
    _, rows = index.search(np.ascontiguousarray(questions, np.float32), min(keep, vectors.rows))
    return rows


def _kept(vectors: Vectors, settings: Retrieve, threads: int) -> faiss.Index:
    """The index from the cache, built first where it is not there."""
    searching = {"ivfpq": {"nprobe"}, "hnsw": {"ef_search"}}  # settings that build no other index
    used = settings.model_dump(include={settings.index}, exclude=searching)
    identity = files.sha256(vectors.folder / MANIFEST)
    key = cache.fingerprint(identity, settings.index, used, threads, faiss.__version__, cache.code(__file__))
    with cache.workspace("faiss", key) as folder:
        path = folder / "index.faiss"
        if not path.exists():
            index = build(vectors, settings)
            with files.replacing(path) as temporary:
                faiss.write_index(index, os.fspath(temporary))
            return index
        return faiss.read_index(os.fspath(path))


def build(vectors: Vectors, settings: Retrieve) -> faiss.Index:
    if settings.index == "hnsw":
        return _hnsw(vectors, settings.hnsw)
    if settings.index == "flat":
        index = faiss.index_factory(vectors.dim, "Flat", faiss.METRIC_INNER_PRODUCT)
    else:
        index = _trained(vectors, settings.ivfpq)
    return _added(index, vectors)


def _trained(vectors: Vectors, settings: IvfPq) -> faiss.Index:
    if vectors.dim % settings.m:
        raise ValueError(
            f"retrieve.ivfpq.m: {settings.m} does not divide the {vectors.dim} dimensions of {vectors.folder}; "
            "choose a divisor, e.g. a quarter of the dimensions"
        )
    needed = max(settings.nlist, 2**settings.bits)
    if vectors.rows < needed:
        raise ValueError(
            f"retrieve.ivfpq needs at least {needed:,} passages to train on (nlist {settings.nlist}, 2**bits "
            f"{2**settings.bits}), {vectors.folder} has {vectors.rows:,}; lower them, or set retrieve.index to exact"
        )
    description = f"IVF{settings.nlist},PQ{settings.m}x{settings.bits}np"
    index = faiss.index_factory(vectors.dim, description, faiss.METRIC_INNER_PRODUCT)
    for clustering in (index.cp, index.pq.cp):
        clustering.seed = settings.seed
        # The seeded choice is ours; FAISS is kept from choosing again, and from warning that passages are few.
        clustering.max_points_per_centroid, clustering.min_points_per_centroid = settings.train_passages, 1
    index.train(_sample(vectors, settings).astype(np.float32))
    return index


def _sample(vectors: Vectors, settings: IvfPq) -> np.ndarray:
    size = min(settings.train_passages, vectors.rows)
    rows = np.random.default_rng(settings.seed).choice(vectors.rows, size=size, replace=False, shuffle=False)
    return vectors.take(np.sort(rows))


def _hnsw(vectors: Vectors, settings: Hnsw) -> faiss.Index:
    """Searches inner products as Euclidean distances: one more component makes each passage as long as the longest
    (DPR's way)."""
    squares = [np.square(block, dtype=np.float32).sum(1) for _, block in vectors.blocks(BLOCK)]
    longest = max(float(square.max()) for square in squares)
    index = faiss.IndexHNSWFlat(vectors.dim + 1, settings.m)
    index.hnsw.efConstruction = settings.ef_construction
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        return _added(index, vectors, extra=[np.sqrt(np.maximum(longest - square, 0)) for square in squares])
    finally:
        faiss.omp_set_num_threads(threads)


def _added(index: faiss.Index, vectors: Vectors, extra: list[np.ndarray] | None = None) -> faiss.Index:
    with progress("index", vectors.rows, "passages") as advance:
        for number, (_, block) in enumerate(vectors.blocks(BLOCK)):
            wide = block.astype(np.float32)
            index.add(wide if extra is None else np.column_stack([wide, extra[number]]))
            advance(len(block))
    return index
