"""The stage `score_passages`: an extractive reader's scores of the training questions' ranked passages, for `denoise`.

A reader learns to select a passage by a softmax over a question's passages. A constant added to all logits changes
nothing there, so the sigmoid of a single logit means nothing. A passage's score is its probability in a softmax over
itself and the question's best positive: 0.5 if it is as good as the positive.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from eadpr.readers import kinds, selection, shards
from eadpr.readers.denoise import PassageScore
from eadpr.readers.extractive import ExtractiveReader, score_in_passes
from eadpr.runtime import cache, files
from eadpr.runtime import machine as machines
from eadpr.runtime.machine import Machine
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_questions
from eadpr.storage.records import Fold, Positive, Question

ScoreQuestion = Callable[[tuple[str, list[list[str]]]], Iterator[PassageScore]]  # takes a question id and its ranking


class ScoringInputs(NamedTuple):
    """Folders; `readers` score the questions of half 0 and of half 1 (`Fold`)."""

    records: Path
    positives: Path
    ranking: Path
    readers: tuple[Path, Path]


def score_passages(inputs: ScoringInputs, out: Path, *, hardware: Machine) -> int:
    """Write a score of every passage in train.parquet of the ranking, for the folds train and validation.

    Finished shards stay in the cache until `out` is written. Return the number of scores.
    """
    records, positives, table = inputs.records, inputs.positives, inputs.ranking / "train.parquet"
    sources = [records / "passages.parquet", records / "questions.parquet", positives / "positives.parquet"]
    sources += [positives / "folds.parquet", table, *inputs.readers]
    folds = tables.rows(positives / "folds.parquet", Fold)
    halves = {fold.question_id: fold.half for fold in folds if fold.role != "annotator"}
    score = _question_scorer(inputs, halves, hardware)
    with cache.workspace("passage_scores", machines.key(__file__, sources, hardware)) as folder:
        rankings = (ranking for ranking in selection.read_ranked_paths(table) if ranking[0] in halves)
        options = {"folder": folder, "label": "score_passages", "total": len(halves)}
        shards.write_in_shards(out, PassageScore, rankings, score, **options)
        files.discard(folder)
    return tables.count(out, PassageScore)


def _question_scorer(inputs: ScoringInputs, halves: Mapping[str, int], hardware: Machine) -> ScoreQuestion:
    """Return a function that scores a question's passages with the reader of its half."""
    questions = {q.id: q for q in read_questions(inputs.records / "questions.parquet", halves)}
    rows = tables.read(inputs.positives / "positives.parquet", Positive, ["question_id", "passage_id"]).to_pandas()
    positives_by_question = rows.groupby("question_id")["passage_id"].agg(list)
    store = PassageStore(inputs.records / "passages.parquet")
    readers = {path: kinds.load(path).to(machines.device()) for path in dict.fromkeys(inputs.readers)}
    scorers = {path: make_scorer(reader, store, hardware) for path, reader in readers.items()}

    def score(ranking: tuple[str, list[list[str]]]) -> Iterator[PassageScore]:
        question_id, paths = ranking
        ids = [passage_id for (passage_id,) in paths]
        positives = positives_by_question[question_id]
        to_read = [*ids, *(passage_id for passage_id in positives if passage_id not in ids)]
        compute_logits = scorers[inputs.readers[halves[question_id]]]
        logits = compute_logits(questions[question_id], store.rows(to_read).tolist())
        best = max(logit for passage_id, logit in zip(to_read, logits.tolist(), strict=True) if passage_id in positives)
        for passage_id, value in zip(ids, relative_scores(logits[: len(ids)], best).tolist(), strict=True):
            yield PassageScore(question_id, passage_id, value)

    return score


def relative_scores(logits_P: np.ndarray, best: float) -> np.ndarray:
    """Return e^l / (e^l + e^best), shape (P,), of each logit l."""
    return np.exp(-np.logaddexp(0.0, np.float64(best) - logits_P))


def make_scorer(
    reader: ExtractiveReader, store: PassageStore, hardware: Machine
) -> Callable[[Question, Sequence[int]], np.ndarray]:
    """Return a function that gives the reader's logits (P,), float32, of selecting each of some rows of passages."""
    passages = reader.load_passages(store)

    @torch.inference_mode()
    def compute_logits(question: Question, rows: Sequence[int]) -> np.ndarray:
        inputs = reader.inputs(question.question, [(row,) for row in rows], passages)
        logits_P = np.empty(len(rows), np.float32)
        for places, batch, _ in score_in_passes(reader, inputs, hardware):
            logits_P[places] = batch.paths.cpu().numpy()
        return logits_P

    return compute_logits
