"""The stage `reader`: from a ranking of the training questions to a trained reader and its log."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

from eadpr import cache, files, model_folders
from eadpr import machine as machines
from eadpr.machine import Machine
from eadpr.model_folders import ModelFiles
from eadpr.passages import PassageStore
from eadpr.reading import extractive_learning, fid_learning, kinds, selection, training
from eadpr.reading.config import Reader
from eadpr.training import loop, stage
from eadpr.training.forward import Encoders
from eadpr.training.state import TrainingState

LEARNING = {"extractive": extractive_learning, "fid": fid_learning}


class Inputs(NamedTuple):
    """Folders; `init` is that of an arm's or a base's encoders, or of the annotator."""

    records: Path
    positives: Path
    ranking: Path
    init: Path


def train_reader(
    inputs: Inputs, out: Path, logs: Path, *, settings: Reader, given: ModelFiles, hardware: Machine
) -> int:
    """Write the reader to the folder `out` and the log to the folder `logs`; returns the optimiser steps.

    With 0 steps the reader is what it starts from. `given` are the files of the folder `settings.model`. What was
    killed goes on where it was last saved, with the same result. Raises ValueError where nothing can be learnt from.
    """
    if settings.model is not None:
        model_folders.check(settings.model, given)
    learning = LEARNING[settings.kind]
    store = PassageStore(inputs.records / "passages.parquet")
    reader = kinds.MODELS[settings.kind].start(inputs.init, settings).to(machines.device())
    loop.set_dropout(reader, hidden=settings.dropout, attention=settings.attention_dropout)
    ranking = inputs.ranking / "train.parquet"
    limits = {"depth": settings.depth, "half": settings.half}
    asked = list(selection.asked(inputs.records, inputs.positives, ranking, store, **limits))
    examples = learning.Examples(reader, asked, store)
    if not len(examples):
        raise ValueError(
            f"{ranking}: none of the {len(asked):,} training questions it ranks passages for can be learnt from: none"
            " has an answer, or no passage holds it within reader.tokens; take another ranking in `readers`"
        )
    return stage.train(
        TrainingState(Encoders(reader, reader), settings),  # of the same object it keeps one
        training.task(examples, partial(learning.terms, reader, hardware=hardware), settings),
        out,
        logs,
        key=lambda: _fingerprint(inputs, settings, given, hardware),
        save=lambda folder: kinds.save(folder, reader.eval()),
        counts=lambda: {"questions": len(examples), "questions_left_out": len(asked) - len(examples)},
    )


def _fingerprint(inputs: Inputs, settings: Reader, given: ModelFiles, hardware: Machine) -> str:
    read = [inputs.records / name for name in ("passages.parquet", "questions.parquet")]
    read += [inputs.positives / name for name in ("positives.parquet", "folds.parquet")]
    read.append(inputs.ranking / "train.parquet")
    made_with = [machines.libraries(), machines.device(), cache.code(__file__)]
    sections = [section.model_dump() for section in (settings, given, hardware)]
    hashes = [files.sha256(path) for path in read]
    return cache.fingerprint("reader", hashes, files.tree_sha256(inputs.init), made_with, sections)
