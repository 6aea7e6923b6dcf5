"""The stage `retrieve_multihop`: the best paths of every question, and the ranking of passages that they make.

Beam search over paths of two passages (MDR: Xiong et al., 2021); a path's score is the sum of two inner products.
Shapes: Q questions, W passages kept at hop 1, E kept behind each of these at hop 2, D dimensions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from eadpr.runtime import machine
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.search import exact
from eadpr.search.encode import embed
from eadpr.search.exact import Hits
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.rankings import write_rankings
from eadpr.storage.records import Question, Ranked, RankedPath
from eadpr.training.encoder import load
from eadpr.two_hops.config import Beam
from eadpr.two_hops.hops import hop_texts, query_tokens_of, second_ids, without_question_mark

QUERIES = 65_536  # of hop 2 searched for at a time: one pass over the corpus; about 0.4 GB at 768 dimensions, width 100
EMBEDDED = 4_096  # queries of hop 2 tokenised and encoded at a time; decides the last bits of their vectors


# Of a path: the rows of its passages, float32 scores of its hops, their sum.
HopPath = tuple[list[int], list[float], float]


def retrieve_paths(records: Path, model: Path, vectors: Path, out: Path, *, beam: Beam, sets: Sets) -> int:
    """Write train.parquet and evaluate.parquet to the folder `out`: in `paths` the paths (`RankedPath`), beside it the
    ranking that they make (`Ranked`: their passages in order, each once, with the score of its best path). Returns the
    number of questions.

    Queries are encoded in float32, passages are the stored float16 vectors. Every block of questions takes two passes
    over the vectors.
    """
    store = PassageStore(records / "passages.parquet")
    stored = Vectors(vectors, store.path, model)
    encoder, query_tokens = load(model, "question").to(machine.device()), query_tokens_of(model)

    def rank(questions: list[Question], part: str) -> tuple[pa.Table, pa.Table]:
        asked = [without_question_mark(question.question) for question in questions]

        def second(numbers: np.ndarray, rows: np.ndarray) -> np.ndarray:
            """(n, D): the queries of hop 2."""
            parts = np.split(np.arange(len(rows)), range(EMBEDDED, len(rows), EMBEDDED))
            texts = (([asked[i] for i in numbers[part]], hop_texts(store, rows[part])) for part in parts)
            ids = (second_ids(encoder, *columns, query_tokens) for columns in texts)
            return np.concatenate([embed(encoder, of_part, device=machine.device()) for of_part in ids])

        with progress(f"retrieve_multihop {part}", 2 * stored.rows, "passages") as advance:
            found = find_paths(
                stored,
                embed(encoder, encoder.question_ids(asked), device=machine.device()),
                second,
                width=beam.width,
                count=beam.paths,
                ids=store.ids,
                blank=lambda rows: np.array([not text.strip() for text in store.texts(rows)], dtype=bool),
                devices=machine.devices(),
                advance=advance,
            )
            paths = [
                [RankedPath(question.id, rank, store.ids(rows), *scores) for rank, (rows, *scores) in enumerate(own, 1)]
                for question, own in zip(questions, found, strict=True)
            ]
        ranked = (row for of_one in paths for row in flat(of_one))
        return tables.as_table(Ranked, ranked), tables.as_table(RankedPath, chain.from_iterable(paths))

    record_types = {".": Ranked, "paths": RankedPath}
    return write_rankings(records, out, rank, record_types, sets=sets, block=max(1, QUERIES // beam.width))


def flat(paths: Iterable[RankedPath]) -> Iterator[Ranked]:
    """The passages of one question's paths, hop by hop, each at its first place."""
    best: dict[str, RankedPath] = {}
    for path in paths:
        for passage_id in path.passage_ids:
            best.setdefault(passage_id, path)
    for rank, (passage_id, path) in enumerate(best.items(), start=1):
        yield Ranked(path.question_id, passage_id, rank, path.score)


def find_paths(
    stored: Vectors,
    questions_QD: np.ndarray,
    second: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    width: int,
    count: int,
    ids: Callable[[np.ndarray], Sequence[str]],
    blank: Callable[[np.ndarray], np.ndarray],
    devices: Sequence[str] = ("cpu",),
    advance: Callable[[int], None] = lambda done: None,
) -> Iterator[list[HopPath]]:
    """The `count` best paths of each question, fewer where the beam holds fewer; ties in the order of passage ids.

    `second` maps questions (n,) and rows (n,) of their hop-1 passages to vectors (n, D) of hop 2's queries; `blank`
    says which rows have no text: as hop 1 they score -inf (MDR). A path has two different passages (ours). `advance` is
    told rows scanned, of two scans in all. With a width of all passages this is exhaustive search.
    """
    width = min(width, stored.rows)
    first = exact.search(stored, questions_QD, width, devices=devices, advance=advance)
    asked, rows = np.repeat(np.arange(len(questions_QD)), width), first.rows.ravel()
    # One more than kept, since the best one is often the passage of hop 1 itself.
    depth = min(width, stored.rows - 1) + 1
    found = exact.search(stored, second(asked, rows), depth, devices=devices, advance=advance)
    others = Hits(*(column.reshape(*first.rows.shape, depth - 1) for column in _without(found, rows)))
    first_QW = np.where(blank(rows).reshape(first.rows.shape), np.float32(-np.inf), first.scores)
    for one, two in zip(map(Hits, first.rows, first_QW), map(Hits, *others), strict=True):
        yield _best(one, two, count, ids)


def _without(found: Hits, rows: np.ndarray) -> Hits:
    """Hits (n, E + 1) less each line's own row, or less the last where that is not among them."""
    own = found.rows == rows[:, None]
    own[:, -1] |= ~own.any(1)
    return Hits(*(column[~own].reshape(len(rows), -1) for column in found))


def _best(first: Hits, second: Hits, count: int, ids: Callable[[np.ndarray], Sequence[str]]) -> list[HopPath]:
    """Of one question: `first` (W,), `second` (W, E)."""
    total = (first.scores[:, None] + second.scores).ravel()
    places = np.arange(len(total))
    if count < len(total):
        places = np.flatnonzero(total >= np.partition(total, -count)[-count])
    hops = np.unravel_index(places, second.rows.shape)
    rows, hop_scores = (np.stack([one[hops[0]], two[hops]], axis=1) for one, two in zip(first, second, strict=True))
    names = zip(*(ids(column) for column in rows.T), strict=True)
    order = [i for _, _, i in sorted(zip((-total[places]).tolist(), names, range(len(places)), strict=True))][:count]
    columns = rows[order], hop_scores[order], total[places][order]
    return list(zip(*(column.tolist() for column in columns), strict=True))
