"""Dense rankings: questions are encoded, and their best passages looked up among the stored vectors."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from eadpr.runtime import machine
from eadpr.runtime.machine import Machine
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.search import exact, late
from eadpr.search.config import Retrieve
from eadpr.search.encode import embed
from eadpr.search.exact import Hits
from eadpr.search.pointing import embed_questions, match_sentences
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.rankings import SENTENCES, MatchedSentence, write_rankings
from eadpr.storage.records import Passage, Question, Ranked
from eadpr.training.config import AUTO, settings_of
from eadpr.training.encoder import load, load_pair

QUESTIONS = 65_536  # searched for at a time: one pass over the corpus; about 0.4 GB at 768 dimensions and depth 100
PART_QUESTIONS = 16_384  # by sentence or token, which read candidates anew; 1.6 GB at 32 tokens of 384 dimensions


def retrieve(
    records: Path, model: Path, vectors: Path, out: Path, *, settings: Retrieve, sets: Sets, hardware: Machine
) -> int:
    """Write train.parquet and evaluate.parquet (`Ranked`) to the folder `out` and return the number of questions; the
    sentences that evaluated questions match in their first passages to `SENTENCES` (`MatchedSentence`).

    Where sentences or tokens are the encoder's unit, the vectors propose `candidates` passages, which these rank.

    Vectors of questions are float32, of passages the stored float16; parts are of the machine's precision. A ranking is
    shorter than the depth only if the corpus is, if an approximate index has fewer hits, or by the question's own
    document, which is left out.
    """
    passages = records / "passages.parquet"
    passage_ids = tables.read(passages, Passage, columns=["id"])["id"].combine_chunks()
    searcher = DenseSearcher(passages, model, vectors, settings, hardware)

    def rank(questions: list[Question], part: str) -> tuple[pa.Table, pa.Table]:
        ids, texts = [q.id for q in questions], [q.question for q in questions]
        hits = searcher.search(texts, f"retrieve {part}")
        if part == "evaluate" and settings.sentences > 0:
            return make_table(ids, passage_ids, hits), searcher.match(hits, ids, texts)
        return make_table(ids, passage_ids, hits), tables.schema(MatchedSentence).empty_table()

    types, block = {".": Ranked, SENTENCES.parent: MatchedSentence}, PART_QUESTIONS if searcher.by_part else QUESTIONS
    return write_rankings(records, out, rank, types, sets=sets, block=block)


class DenseSearcher:
    """Searches passages, a passages.parquet, by the vectors of a model, and where sentences or tokens are its unit by
    these among the passages that the vectors propose.

    Raises ValueError for vectors of other passages or another model.
    """

    def __init__(self, passages: Path, model: Path, vectors: Path, settings: Retrieve, hardware: Machine) -> None:
        self._passages, self._model, self._settings, self._hardware = passages, model, settings, hardware
        self._vectors = Vectors(vectors, passages, model)
        self._encoder = load(model, "question", AUTO).to(machine.device())
        self.by_part = settings_of(model).unit != "passage"

    def search(self, questions: Sequence[str], label: str) -> Hits:
        """Return the best `depth` passages of each question."""
        settings, ids = self._settings, self._encoder.question_ids(questions)
        first = settings.model_copy(update={"depth": settings.candidates}) if self.by_part else settings
        questions_QD = embed(self._encoder, ids)
        hits = find(self._vectors, questions_QD, settings=first, threads=self._hardware.threads, label=label)
        return self._rank_by_parts(hits, ids, label) if self.by_part else hits

    def _rank_by_parts(self, hits: Hits, ids: late.Ids, label: str) -> Hits:
        """Return the best of the candidates of questions with the token `ids`, by their sentences or tokens."""
        encoders, store = load_pair(self._model).place(self._hardware), PassageStore(self._passages)
        encoder, label = encoders.passage, f"{label} by {encoders.passage.settings.unit}"

        def read_ids(rows: Sequence[int]) -> late.Ids:
            return encoder.passage_ids(store.titles(rows), store.texts(rows))

        with machine.autocast(self._hardware, inference=True):
            hits = late.rescore(hits, encoders, ids, read_ids, depth=self._settings.depth, label=label)
        if encoder.unread:
            left_out = f"{encoder.unread:,} sentences lie beyond encoder.passage_tokens and were left out"
            print(f"{label}: {left_out}", file=sys.stderr, flush=True)
        return hits

    def match(self, hits: Hits, question_ids: Sequence[str], questions: Sequence[str]) -> pa.Table:
        """Return a table of `MatchedSentence` for the first `sentences` hits."""
        hits = Hits(*(values[:, : self._settings.sentences] for values in hits))
        encoders = load_pair(self._model).place(self._hardware)
        with machine.autocast(self._hardware, inference=True):
            question_vectors = embed_questions(encoders.question, encoders.question.question_ids(questions))
            return match_sentences(hits, question_ids, question_vectors, PassageStore(self._passages), encoders.passage)


def find(vectors: Vectors, questions: np.ndarray, *, settings: Retrieve, threads: int, label: str) -> Hits:
    """Return the best `depth` passages of each question; scores are exact whichever index proposed the passages."""
    if settings.index == "exact":
        parts, devices = exact.split_questions(questions, settings.depth), machine.devices()
        with progress(label, len(parts) * vectors.rows, "passages") as advance:
            hits = [exact.search(vectors, part, settings.depth, devices=devices, advance=advance) for part in parts]
        return Hits(*map(np.concatenate, zip(*hits, strict=True)))
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
