"""The stage `retrieve_multihop`: the best paths of every question, and the ranking of passages that they make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from eadpr import files, machine, tables
from eadpr.config import Sets
from eadpr.multihop.config import Beam
from eadpr.multihop.paths import Paths, find_paths
from eadpr.multihop.queries import hop_texts, plain, query_tokens_of, second_ids
from eadpr.multihop.records import Path as HopPath
from eadpr.passages import PassageStore
from eadpr.progress import progress
from eadpr.questions import select, selected
from eadpr.records import Question, Ranked
from eadpr.search.embed import embed
from eadpr.search.vectors import Vectors
from eadpr.training.encoder import TextEncoder, load

QUERIES = 65_536  # of hop 2 searched for at a time: one pass over the corpus; about 0.4 GB at 768 dimensions, width 100
EMBEDDED = 4_096  # queries of hop 2 tokenised and encoded at a time; decides the last bits of their vectors


def retrieve_paths(
    records: Path, model: Path, vectors: Path, out: Path, ranking: Path, *, beam: Beam, sets: Sets
) -> int:
    """Write train.parquet and evaluate.parquet to the folder `out` (`Path`) and to `ranking` (`Ranked`, the passages of
    the paths in their order, each once, with the score of its best path); returns the number of questions.

    Queries are encoded in float32, passages are the stored float16 vectors. Every block of questions takes two passes
    over the vectors.
    """
    stored = Vectors(vectors)
    store = PassageStore(records / "passages.parquet")
    if len(store) != stored.rows:
        raise ValueError(
            f"{vectors} holds {stored.rows:,} vectors, {store.path} {len(store):,} passages; run `dvc repro` to encode"
            " them again"
        )
    encoder = load(model, "question").to(machine.device())
    search = _Search(store, stored, encoder, query_tokens_of(model), beam)
    count = 0
    with files.new_folder(out) as paths, files.new_folder(ranking) as ranked:
        for name in ("train", "evaluate"):
            ids = select(records / "question_sets.parquet", getattr(sets, name))
            questions = selected(records / "questions.parquet", ids)
            with (
                tables.writing(paths / f"{name}.parquet", HopPath) as append_path,
                tables.writing(ranked / f"{name}.parquet", Ranked) as append_ranked,
            ):
                while block := list(islice(questions, max(1, QUERIES // beam.width))):
                    with progress(f"retrieve_multihop {name}", 2 * stored.rows, "passages") as advance:
                        rows = [list(of_one) for of_one in search(block, advance)]
                    append_path(tables.as_table(HopPath, (row for of_one in rows for row in of_one)))
                    append_ranked(tables.as_table(Ranked, (row for of_one in rows for row in flat(of_one))))
                    count += len(block)
    return count


class _Search:
    def __init__(
        self, store: PassageStore, stored: Vectors, encoder: TextEncoder, query_tokens: int, beam: Beam
    ) -> None:
        self._store = store
        self._stored = stored
        self._encoder = encoder
        self._query_tokens = query_tokens
        self._beam = beam

    def __call__(self, questions: list[Question], advance) -> Iterator[list[HopPath]]:
        device = machine.device()
        asked = [plain(question.question) for question in questions]
        found = find_paths(
            self._stored,
            embed(self._encoder, self._encoder.question_ids(asked), device=device),
            lambda numbers, rows: self._second([asked[i] for i in numbers.tolist()], rows),
            width=self._beam.width,
            count=self._beam.paths,
            ids=self._store.ids,
            blank=lambda rows: np.array([not text.strip() for text in self._store.texts(rows)], dtype=bool),
            device=device,
            advance=advance,
        )
        for question, paths in zip(questions, found, strict=True):
            yield list(self._records(question.id, paths))

    def _second(self, asked: list[str], rows: np.ndarray) -> np.ndarray:
        parts = []
        for start in range(0, len(rows), EMBEDDED):
            part = slice(start, start + EMBEDDED)
            texts = hop_texts(self._store, rows[part])
            ids = second_ids(self._encoder, asked[part], texts, self._query_tokens)
            parts.append(embed(self._encoder, ids, device=machine.device()))
        return np.concatenate(parts)

    def _records(self, question_id: str, paths: Paths) -> Iterator[HopPath]:
        columns = zip(paths.rows, paths.hop_scores.tolist(), paths.scores.tolist(), strict=True)
        for rank, (rows, hop_scores, score) in enumerate(columns, start=1):
            yield HopPath(question_id, rank, self._store.ids(rows), hop_scores, score)


def flat(paths: Iterable[HopPath]) -> Iterator[Ranked]:
    """The passages of one question's paths, hop by hop, each at its first place."""
    best: dict[str, HopPath] = {}
    for path in paths:
        for passage_id in path.passage_ids:
            best.setdefault(passage_id, path)
    for rank, (passage_id, path) in enumerate(best.items(), start=1):
        yield Ranked(path.question_id, passage_id, rank, path.score)
