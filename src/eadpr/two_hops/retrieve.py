"""The stage `retrieve_multihop`: the best paths of every question, and the ranking of passages that they make.

Beam search over paths of two passages (MDR: Xiong et al., 2021); a path's score is the sum of two inner products.
Shapes: Q questions, W passages kept at hop 1, E passages kept at hop 2 for each of them, D dimensions.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from eadpr.runtime import machine
from eadpr.runtime.files import read_json
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.search import exact
from eadpr.search.encode import embed
from eadpr.search.exact import Hits
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.rankings import write_rankings
from eadpr.storage.records import Question, Ranked
from eadpr.training.encoder import load
from eadpr.two_hops.config import Beam, RankedPath
from eadpr.two_hops.hops import SETTINGS, hop_texts, second_ids, without_question_mark

QUERIES = 65_536  # of hop 2 searched for at a time: one pass over the corpus; about 0.4 GB at 768 dimensions, width 100

# The rows of a path's passages, float32 scores of its hops, their sum.
HopPath = tuple[list[int], list[float], float]


def retrieve_paths(records: Path, model: Path, vectors: Path, out: Path, *, beam: Beam, sets: Sets) -> int:
    """Write train.parquet and evaluate.parquet to the folder `out`, and return the number of questions.

    The folder `paths` in `out` has the paths (`RankedPath`), `out` itself the ranking that they make (`Ranked`: their
    passages in order, each once, with the score of its best path). Queries are encoded in float32, passages are the
    stored float16 vectors. Every block of questions takes two passes over the vectors.
    """
    store = PassageStore(records / "passages.parquet")
    stored = Vectors(vectors, store.path, model)
    encoder = load(model, "question").to(machine.device())
    query_tokens = read_json(model / SETTINGS, "query_tokens")["query_tokens"]

    def rank(questions: list[Question], part: str) -> tuple[pa.Table, pa.Table]:
        texts = [without_question_mark(question.question) for question in questions]

        def encode_second(numbers: np.ndarray, rows: np.ndarray) -> np.ndarray:
            """Encode hop 2's queries (n, D)."""
            queries = [texts[i] for i in numbers]
            return embed(encoder, second_ids(encoder, queries, hop_texts(store, rows), query_tokens))

        with progress(f"retrieve_multihop {part}", 2 * stored.rows, "passages") as advance:
            questions_QD = embed(encoder, encoder.question_ids(texts))
            best = find_paths(stored, store, questions_QD, encode_second, beam, advance)
            paths, ranking = [], []
            for question, hop_paths in zip(questions, best, strict=True):
                ranked = [
                    RankedPath(question.id, rank, store.ids(rows), scores, score)
                    for rank, (rows, scores, score) in enumerate(hop_paths, 1)
                ]
                paths += ranked
                ranking += rank_passages(ranked)
        return tables.as_table(Ranked, ranking), tables.as_table(RankedPath, paths)

    record_types = {".": Ranked, "paths": RankedPath}
    return write_rankings(records, out, rank, record_types, sets=sets, block=max(1, QUERIES // beam.width))


def rank_passages(paths: Iterable[RankedPath]) -> Iterator[Ranked]:
    """Yield the passages of one question's paths, hop by hop, each at its first place."""
    best: dict[str, RankedPath] = {}
    for path in paths:
        for passage_id in path.passage_ids:
            best.setdefault(passage_id, path)
    for rank, (passage_id, path) in enumerate(best.items(), start=1):
        yield Ranked(path.question_id, passage_id, rank, path.score)


def find_paths(
    stored: Vectors,
    store: PassageStore,
    questions_QD: np.ndarray,
    encode_second: Callable[[np.ndarray, np.ndarray], np.ndarray],
    beam: Beam,
    advance: Callable[[int], None],
) -> Iterator[list[HopPath]]:
    """Yield the best paths of each question, fewer if the beam holds fewer; ties in the order of passage ids.

    `encode_second` maps questions (n,) and rows (n,) of their hop-1 passages to vectors (n, D) of hop 2's queries.
    At hop 1 passages without text score -inf (MDR). A path has two different passages (ours). `advance` gets the rows
    scanned, of two scans in all. With a width of all passages this is exhaustive search.
    """
    width, devices = min(beam.width, stored.rows), machine.devices()
    first = exact.search(stored, questions_QD, width, devices=devices, advance=advance)
    numbers, rows = np.repeat(np.arange(len(questions_QD)), width), first.rows.ravel()
    # One more than needed, since the best passage is often that of hop 1 itself.
    depth = min(width, stored.rows - 1) + 1
    hits = exact.search(stored, encode_second(numbers, rows), depth, devices=devices, advance=advance)
    second = Hits(*(column.reshape(*first.rows.shape, depth - 1) for column in _without(hits, rows)))
    blank = np.array([not text.strip() for text in store.texts(rows)], dtype=bool)
    first_QW = np.where(blank.reshape(first.rows.shape), np.float32(-np.inf), first.scores)
    for hop1, hop2 in zip(map(Hits, first.rows, first_QW), map(Hits, *second), strict=True):
        yield _best(hop1, hop2, beam.paths, store)


def _without(hits: Hits, rows: np.ndarray) -> Hits:
    """Take the row of `rows` from each line of hits (n, E + 1), or the last hit if the row is not among them."""
    dropped = hits.rows == rows[:, None]
    dropped[:, -1] |= ~dropped.any(1)
    return Hits(*(column[~dropped].reshape(len(rows), -1) for column in hits))


def _best(first: Hits, second: Hits, count: int, store: PassageStore) -> list[HopPath]:
    """Return the best paths of one question from `first` (W,) and `second` (W, E)."""
    total = (first.scores[:, None] + second.scores).ravel()
    places = np.arange(len(total))
    if count < len(total):
        places = np.flatnonzero(total >= np.partition(total, -count)[-count])
    hops = np.unravel_index(places, second.rows.shape)
    rows = np.stack([first.rows[hops[0]], second.rows[hops]], axis=1)
    scores = np.stack([first.scores[hops[0]], second.scores[hops]], axis=1)
    names = zip(*(store.ids(column) for column in rows.T), strict=True)
    order = [i for _, _, i in sorted(zip((-total[places]).tolist(), names, range(len(places)), strict=True))][:count]
    return list(zip(rows[order].tolist(), scores[order].tolist(), total[places][order].tolist(), strict=True))
