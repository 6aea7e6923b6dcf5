"""The stage `score_passages`: how an extractive reader judges the ranked passages of the training questions, for the
stage `denoise`.

A reader learns to select a passage by a softmax over a question's passages. What is added to all their logits changes
nothing, so that the sigmoid of one says nothing; a passage's score is its part in a softmax over itself and the
question's best positive. This is how likely the reader selects it of the two: 0.5 where it is as good as the positive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from eadpr import cache, files, tables
from eadpr import machine as machines
from eadpr.machine import Machine
from eadpr.passages import PassageStore
from eadpr.questions import selected
from eadpr.reading import kinds, selection, shards
from eadpr.reading.extractive import ExtractiveReader, in_passes
from eadpr.records import Fold, Positive, Question
from eadpr.supervision.denoise import PassageScore


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
    judge = _Judge(inputs, hardware)
    made_of = [inputs.records / name for name in ("passages.parquet", "questions.parquet")]
    made_of += [inputs.positives / name for name in ("positives.parquet", "folds.parquet")]
    made_of += [inputs.ranking / "train.parquet", *inputs.readers]
    with cache.workspace("passage_scores", machines.key(__file__, made_of, hardware)) as folder:
        asked = (one for one in selection.ranked(inputs.ranking / "train.parquet") if one[0] in judge.halves)
        total = len(judge.halves)
        shards.write(out, PassageScore, asked, judge, folder=folder, label="score_passages", total=total)
        files.discard(folder)
    return tables.count(out, PassageScore)


def compared(logits_P: np.ndarray, best: float) -> np.ndarray:
    """(P,): e^l / (e^l + e^best) of each logit l."""
    return np.exp(-np.logaddexp(0.0, np.float64(best) - logits_P))


class Scorer:
    """The logits by which a reader selects among passages of a store."""

    def __init__(self, reader: ExtractiveReader, store: PassageStore, hardware: Machine) -> None:
        self._reader = reader
        self._passages = reader.passages_of(store)
        self._hardware = hardware

    @torch.inference_mode()
    def __call__(self, question: Question, rows: Sequence[int]) -> np.ndarray:
        """(P,), float32, of rows of passages."""
        inputs = self._reader.inputs(question.question, [(row,) for row in rows], self._passages)
        found_P = np.empty(len(rows), np.float32)
        for places, of_part, _ in in_passes(self._reader, inputs, self._hardware):
            found_P[places] = of_part.paths.cpu().numpy()
        return found_P


class _Judge:
    """The scores of a question's passages, by the reader of its half (`halves`)."""

    def __init__(self, inputs: ScoringInputs, hardware: Machine) -> None:
        folds = tables.rows(inputs.positives / "folds.parquet", Fold)
        self.halves = {fold.question_id: fold.half for fold in folds if fold.role != "annotator"}
        self._inputs = inputs
        self._questions = {q.id: q for q in selected(inputs.records / "questions.parquet", self.halves)}
        self._positives: dict[str, list[str]] = {}
        for row in tables.rows(inputs.positives / "positives.parquet", Positive):
            if row.question_id in self.halves:
                self._positives.setdefault(row.question_id, []).append(row.passage_id)
        self._store = PassageStore(inputs.records / "passages.parquet")
        loaded = {
            folder: Scorer(kinds.load(folder).to(machines.device()), self._store, hardware)
            for folder in dict.fromkeys(inputs.readers)
        }
        self._scorers = [loaded[folder] for folder in inputs.readers]

    def __call__(self, ranked: tuple[str, list[list[str]]]) -> Iterator[PassageScore]:
        question_id, paths = ranked
        ids = [passage_id for (passage_id,) in paths]
        selection.check_known([question_id], self._questions, self._inputs.ranking, self._inputs.records)
        own = self._positives[question_id]
        read = [*ids, *(passage_id for passage_id in own if passage_id not in ids)]
        score = self._scorers[self.halves[question_id]]
        logits = score(self._questions[question_id], self._store.rows(read).tolist())
        best = max(logit for passage_id, logit in zip(read, logits.tolist(), strict=True) if passage_id in own)
        for passage_id, of_passage in zip(ids, compared(logits[: len(ids)], best).tolist(), strict=True):
            yield PassageScore(question_id, passage_id, of_passage)
