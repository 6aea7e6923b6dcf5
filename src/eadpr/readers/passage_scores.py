"""The stage `score_passages`: how an extractive reader judges the ranked passages of the training questions, for the
stage `denoise`.

A reader learns to select a passage by a softmax over a question's passages. What is added to all their logits changes
nothing, so that the sigmoid of one says nothing; a passage's score is its part in a softmax over itself and the
question's best positive. This is how likely the reader selects it of the two: 0.5 where it is as good as the positive.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from eadpr.readers import kinds, selection, shards
from eadpr.readers.denoise import PassageScore
from eadpr.readers.extractive import ExtractiveReader, in_passes
from eadpr.runtime import cache, files
from eadpr.runtime import machine as machines
from eadpr.runtime.machine import Machine
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_questions
from eadpr.storage.records import Fold, Positive, Question

Judge = Callable[[tuple[str, list[list[str]]]], Iterator[PassageScore]]  # of a question id and its ranking


class ScoringInputs(NamedTuple):
    """Folders; `readers` score the questions of half 0 and those of half 1 (`Fold`)."""

    records: Path
    positives: Path
    ranking: Path
    readers: tuple[Path, Path]


def score_passages(inputs: ScoringInputs, out: Path, *, hardware: Machine) -> int:
    """Write a score of every passage in train.parquet of the ranking, for the questions of the folds train and
    validation; returns the number of scores.

    Finished shards stay in the cache until `out` is written. Raises ValueError for a reader that is not extractive.
    """
    for reader in inputs.readers:
        if (kind := kinds.settings_of(reader).kind) != "extractive":
            raise ValueError(f"{reader} is a reader of kind {kind}, which selects no passage; give an extractive one")
    records, positives, table = inputs.records, inputs.positives, inputs.ranking / "train.parquet"
    made_of = [records / "passages.parquet", records / "questions.parquet", positives / "positives.parquet"]
    made_of += [positives / "folds.parquet", table, *inputs.readers]
    folds = tables.rows(positives / "folds.parquet", Fold)
    halves = {fold.question_id: fold.half for fold in folds if fold.role != "annotator"}
    judged = _judge(inputs, halves, hardware)
    with cache.workspace("passage_scores", machines.key(__file__, made_of, hardware)) as folder:
        asked = (one for one in selection.ranked(table) if one[0] in halves)
        shards.write(out, PassageScore, asked, judged, folder=folder, label="score_passages", total=len(halves))
        files.discard(folder)
    return tables.count(out, PassageScore)


def _judge(inputs: ScoringInputs, halves: Mapping[str, int], hardware: Machine) -> Judge:
    """Scores a question's passages, by the reader of its half."""
    questions = {q.id: q for q in read_questions(inputs.records / "questions.parquet", halves)}
    given = tables.read(inputs.positives / "positives.parquet", Positive, ["question_id", "passage_id"]).to_pandas()
    positives = given.groupby("question_id")["passage_id"].agg(list)
    store = PassageStore(inputs.records / "passages.parquet")
    loaded = {path: kinds.load(path).to(machines.device()) for path in dict.fromkeys(inputs.readers)}
    scorers = {path: scorer(reader, store, hardware) for path, reader in loaded.items()}

    def judged(ranked: tuple[str, list[list[str]]]) -> Iterator[PassageScore]:
        question_id, paths = ranked
        ids = [passage_id for (passage_id,) in paths]
        selection.check_known(question_id, questions, inputs.ranking, inputs.records)
        own = positives[question_id]
        read = [*ids, *(passage_id for passage_id in own if passage_id not in ids)]
        score = scorers[inputs.readers[halves[question_id]]]
        logits = score(questions[question_id], store.rows(read).tolist())
        best = max(logit for passage_id, logit in zip(read, logits.tolist(), strict=True) if passage_id in own)
        for passage_id, of_passage in zip(ids, compared(logits[: len(ids)], best).tolist(), strict=True):
            yield PassageScore(question_id, passage_id, of_passage)

    return judged


def compared(logits_P: np.ndarray, best: float) -> np.ndarray:
    """(P,): e^l / (e^l + e^best) of each logit l."""
    return np.exp(-np.logaddexp(0.0, np.float64(best) - logits_P))


def scorer(
    reader: ExtractiveReader, store: PassageStore, hardware: Machine
) -> Callable[[Question, Sequence[int]], np.ndarray]:
    """The logits (P,), float32, by which a reader selects among rows of passages."""
    passages = reader.passages_of(store)

    @torch.inference_mode()
    def logits(question: Question, rows: Sequence[int]) -> np.ndarray:
        inputs = reader.inputs(question.question, [(row,) for row in rows], passages)
        found_P = np.empty(len(rows), np.float32)
        for places, of_part, _ in in_passes(reader, inputs, hardware):
            found_P[places] = of_part.paths.cpu().numpy()
        return found_P

    return logits
