"""The stage `path_reader`: from the paths found for the training questions to a trained reader of paths and its log."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eadpr import cache, files, model_folders, text
from eadpr import machine as machines
from eadpr.machine import Machine
from eadpr.model_folders import ModelFiles
from eadpr.reading_multihop import inputs, learning, losses, model, paths, records
from eadpr.reading_multihop.config import PathLearning
from eadpr.reading_multihop.paths import Lesson, Taught
from eadpr.supervision import spans
from eadpr.training import encoder, log, loop, schedule, state
from eadpr.training.checkpoint import Checkpoints
from eadpr.training.log import Series

CODE = (encoder, inputs, learning, loop, losses, machines, model, paths, records, schedule, spans, state, text)
CODE += (sys.modules[__name__],)
AVERAGED = 100  # last steps whose mean stands in metrics.json


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
    with cache.workspace("path_reader", _fingerprint(given, settings, model_files, hardware)) as folder:
        series = learning.train(reader, taught.lessons, taught.passages, settings, hardware, Checkpoints(folder))
        with files.new_folder(out) as temporary:
            model.save(temporary, reader)
        steps = learning.steps_of(settings, len(taught.lessons))
        log.write(logs, {"train/total": []} | series, _final(series, steps, taught))
        files.discard(folder)
    return steps


def _fingerprint(given: Inputs, settings: PathLearning, model_files: ModelFiles, hardware: Machine) -> str:
    read = [given.records / name for name in ("passages.parquet", "questions.parquet")]
    read += [given.positives / name for name in ("positives.parquet", "folds.parquet")]
    read.append(given.paths / "train.parquet")
    made_with = [machines.libraries(), machines.device()]
    sections = [section.model_dump() for section in (settings, model_files, hardware)]
    hashes = [files.sha256(path) for path in read]
    init = files.tree_sha256(given.init)
    return cache.fingerprint("path_reader", hashes, init, made_with, sections, cache.code(*CODE))


def _final(series: Series, steps: int, taught: Taught) -> dict[str, object]:
    """Counts of training questions, means over the last steps."""
    means = {name.partition("/")[2]: log.tail_mean(rows, AVERAGED) for name, rows in series.items()}
    return {
        "steps": steps,
        "questions": len(taught.lessons),
        "questions_left_out": taught.asked - len(taught.lessons),
        "without_other_paths": sum(not lesson.others for lesson in taught.lessons),
        "without_span": _without_span(taught.lessons),
        f"last_{AVERAGED}_steps": log.rounded(means),
    }


def _without_span(lessons: Sequence[Lesson]) -> int:
    """Questions, other than those for yes or no, whose answer neither supporting passage holds."""
    return sum(not lesson.kind and not any(lesson.places) for lesson in lessons)
