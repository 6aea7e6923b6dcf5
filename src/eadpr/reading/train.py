"""The stage `reader`: from a ranking of the training questions, or its paths, to a trained reader and its log."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

from eadpr import cache, files, model_folders
from eadpr import machine as machines
from eadpr.machine import Machine
from eadpr.model_folders import ModelFiles
from eadpr.passages import PassageStore
from eadpr.reading import kinds, learning, selection
from eadpr.reading.config import Reader
from eadpr.training import loop, stage
from eadpr.training.forward import Encoders
from eadpr.training.state import TrainingState


class ReaderInputs(NamedTuple):
    """Folders; `init` is that of an arm's or a base's encoders, or of the annotator."""

    records: Path
    positives: Path
    ranking: Path
    init: Path


def train_reader(
    given: ReaderInputs,
    out: Path,
    logs: Path,
    *,
    settings: Reader,
    model_files: ModelFiles,
    hardware: Machine,
) -> int:
    """Write the reader to the folder `out` and the log to the folder `logs`; returns the optimiser steps.

    With 0 steps the reader is what it starts from. `model_files` are those of the folder `settings.model`. What was
    killed goes on where it was last saved, with the same result. Raises ValueError where nothing can be learnt from.
    """
    if settings.model is not None:
        model_folders.check(settings.model, model_files)
    store = PassageStore(given.records / "passages.parquet")
    table = _table(given, settings)
    limits = {"depth": settings.depth, "half": settings.half}
    asked = list(selection.asked(given.records, given.positives, table, store, **limits))
    reader = kinds.MODELS[settings.kind].start(given.init, settings).to(machines.device())
    loop.set_dropout(reader, hidden=settings.dropout, attention=settings.attention_dropout)
    make, terms = learning.LEARNING[settings.kind]
    examples = make(reader, asked, store, given.positives)
    if not len(examples):
        raise ValueError(f"{table}: none of the {len(asked):,} training questions it {examples.why_none}")
    counts = {"questions": len(examples), "questions_left_out": len(asked) - len(examples)} | examples.counts()
    return stage.train(
        TrainingState(Encoders(reader, reader), settings),  # of the same object it keeps one
        learning.task(examples, partial(terms, reader, hardware=hardware), settings),
        out,
        logs,
        key=lambda: _fingerprint(given, settings, model_files, hardware),
        save=lambda folder: kinds.save(folder, reader.eval()),
        counts=lambda: counts,
    )


def _table(given: ReaderInputs, settings: Reader) -> Path:
    return selection.ranked_table(given.ranking, "train", hops=settings.of_paths)


def _fingerprint(given: ReaderInputs, settings: Reader, model_files: ModelFiles, hardware: Machine) -> str:
    read = [given.records / name for name in ("passages.parquet", "questions.parquet")]
    read += [given.positives / name for name in ("positives.parquet", "folds.parquet")]
    hashes = [files.sha256(path) for path in (*read, _table(given, settings))]
    made_with = [machines.libraries(), machines.device(), cache.code(__file__)]
    sections = [section.model_dump() for section in (settings, model_files, hardware)]
    init = files.tree_sha256(given.init)
    return cache.fingerprint(hashes, init, made_with, sections)
