"""The stage `path_reader`: from the paths found for the training questions to a trained reader of paths and its log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eadpr import cache, files, model_folders
from eadpr import machine as machines
from eadpr.machine import Machine
from eadpr.model_folders import ModelFiles
from eadpr.reading_multihop import learning, model, paths
from eadpr.reading_multihop.config import PathLearning
from eadpr.reading_multihop.paths import Lesson, Taught
from eadpr.training import loop, stage
from eadpr.training.forward import Encoders
from eadpr.training.state import TrainingState


class Inputs(NamedTuple):
    """Folders; `paths` is that of the ranking to learn from, `init` that of an arm's or a base's encoders."""

    records: Path
    positives: Path
    paths: Path
    init: Path


def train_path_reader(
    given: Inputs, out: Path, logs: Path, *, settings: PathLearning, model_files: ModelFiles, hardware: Machine
) -> int:
    """Write the reader to the folder `out` and the log to the folder `logs`; returns the optimiser steps.

    With 0 steps the reader is what it starts from. `model_files` are those of the folder `settings.model`. What was
    killed goes on where it was last saved, with the same result. Raises ValueError where nothing can be learnt from.
    """
    if settings.model is not None:
        model_folders.check(settings.model, model_files)
    ranking = given.paths / "train.parquet"
    taught = paths.taught(given.records, given.positives, ranking, first=settings.paths)
    if not taught.lessons:
        raise ValueError(
            f"{ranking}: none of the {taught.asked:,} training questions it has paths for has an answer and supporting"
            " passages; train on a set of multi-hop questions (`sets.train`)"
        )
    reader = model.start(given.init, settings).to(machines.device())
    loop.set_dropout(reader, hidden=settings.dropout, attention=settings.attention_dropout)
    return stage.train(
        TrainingState(Encoders(reader, reader), settings),  # of the same object it keeps one
        learning.task(reader, taught.lessons, taught.passages, settings, hardware),
        out,
        logs,
        key=lambda: _fingerprint(given, settings, model_files, hardware),
        save=lambda folder: model.save(folder, reader.eval()),
        counts=lambda: _counts(taught),
    )


def _fingerprint(given: Inputs, settings: PathLearning, model_files: ModelFiles, hardware: Machine) -> str:
    read = [given.records / name for name in ("passages.parquet", "questions.parquet")]
    read += [given.positives / name for name in ("positives.parquet", "folds.parquet")]
    read.append(given.paths / "train.parquet")
    made_with = [machines.libraries(), machines.device(), cache.code(__file__)]
    sections = [section.model_dump() for section in (settings, model_files, hardware)]
    hashes = [files.sha256(path) for path in read]
    init = files.tree_sha256(given.init)
    return cache.fingerprint("path_reader", hashes, init, made_with, sections)


def _counts(taught: Taught) -> dict[str, object]:
    """Of training questions."""
    return {
        "questions": len(taught.lessons),
        "questions_left_out": taught.asked - len(taught.lessons),
        "without_other_paths": sum(not lesson.others for lesson in taught.lessons),
        "without_span": _without_span(taught.lessons),
    }


def _without_span(lessons: Sequence[Lesson]) -> int:
    """Questions, other than those for yes or no, whose answer neither supporting passage holds."""
    return sum(not lesson.kind and not any(lesson.places) for lesson in lessons)
