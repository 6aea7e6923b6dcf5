"""Dense rankings: questions are encoded, and their best passages looked up among the stored vectors."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from eadpr.runtime import machine
from eadpr.runtime.machine import Machine
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.search import exact
from eadpr.search.config import Retrieve
from eadpr.search.encode import embed
from eadpr.search.exact import Hits
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.rankings import write_rankings
from eadpr.storage.records import Passage, Question, Ranked
from eadpr.training.encoder import load

QUESTIONS = 65_536  # searched for at a time: one pass over the corpus; about 0.4 GB at 768 dimensions and depth 100


def retrieve(
    records: Path, model: Path, vectors: Path, out: Path, *, settings: Retrieve, sets: Sets, hardware: Machine
) -> int:
    """Write train.parquet and evaluate.parquet (`Ranked`) to the folder `out` and return the number of questions.

    Questions are encoded in float32, passages are the stored float16 vectors. A ranking is shorter than the depth only
    if the corpus is, or if an approximate index has fewer hits.
    """
    passages = records / "passages.parquet"
    passage_ids = tables.read(passages, Passage, columns=["id"])["id"].combine_chunks()
    stored = Vectors(vectors, passages, model)
    encoder = load(model, "question").to(machine.device())

    def rank(questions: list[Question], part: str) -> tuple[pa.Table]:
        questions_QD = embed(encoder, encoder.question_ids([q.question for q in questions]), device=machine.device())
        hits = find(stored, questions_QD, settings=settings, threads=hardware.threads, label=f"retrieve {part}")
        return (make_table([q.id for q in questions], passage_ids, hits),)

    return write_rankings(records, out, rank, {".": Ranked}, sets=sets, block=QUESTIONS)


def find(vectors: Vectors, questions: np.ndarray, *, settings: Retrieve, threads: int, label: str) -> Hits:
    """Return the best `depth` passages of each question; scores are exact whichever index proposed the passages."""
    if settings.index == "exact":
        with progress(label, vectors.rows, "passages") as advance:
            return exact.search(vectors, questions, settings.depth, devices=machine.devices(), advance=advance)
    from eadpr.search import faiss_index

    size = max(settings.faiss.candidates, settings.depth + exact.SPARE)
    rows = faiss_index.find_candidates(vectors, questions, size, settings=settings, threads=threads)
    return exact.rescore(vectors, questions, rows, settings.depth, device=machine.devices()[0])


def make_table(question_ids: Sequence[str], passage_ids: pa.StringArray, hits: Hits) -> pa.Table:
    """Return hits as a table of `Ranked`; places without a passage are left out."""
    question, place = np.nonzero(hits.rows >= 0)
    columns = [
        pa.array(question_ids, pa.string()).take(pa.array(question)),
        passage_ids.take(pa.array(hits.rows[question, place])),
        pa.array(place + 1, pa.int32()),
        pa.array(hits.scores[question, place], pa.float32()),
    ]
    return pa.table(columns, schema=tables.schema(Ranked))
