"""The stage `reader`: from a ranking of the training questions, or its paths, to a trained reader and its log.

A step averages the gradients of its questions, each taken on its own, since no question's passages concern another:
memory is that of a question for each thread, and of the gradients of one more.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr.readers import kinds, selection
from eadpr.readers.config import Reader
from eadpr.readers.lessons import FusionExamples, PassageExamples, PathExamples, extractive_terms, fusion_terms
from eadpr.runtime import machine as machines
from eadpr.runtime import model_folders, parallel
from eadpr.runtime.machine import Machine
from eadpr.runtime.model_folders import ModelFiles
from eadpr.storage.passages import PassageStore
from eadpr.training import loop
from eadpr.training import run as stage
from eadpr.training.batches import batch_indices
from eadpr.training.forward import Encoders
from eadpr.training.loop import Task
from eadpr.training.state import TrainingState

Examples = PassageExamples | PathExamples | FusionExamples


# What a reader learns from, one example per question and epoch, and the terms of an example's loss.
LESSONS = {
    "extractive": (PassageExamples, extractive_terms),
    "paths": (PathExamples, extractive_terms),
    "fid": (FusionExamples, fusion_terms),
}


class ReaderInputs(NamedTuple):
    """Folders; `init` is that of an arm's or a base's encoders, or of the annotator."""

    records: Path
    positives: Path
    ranking: Path
    init: Path


def train_reader(
    given: ReaderInputs, out: Path, logs: Path, *, settings: Reader, model_files: ModelFiles, hardware: Machine
) -> int:
    """Write the reader to the folder `out` and the log to the folder `logs`; returns the optimiser steps.

    With 0 steps the reader is what it starts from. `model_files` are those of the folder `settings.model`. What was
    killed goes on where it was last saved, with the same result. Raises ValueError where nothing can be learnt from.
    """
    if settings.model is not None:
        model_folders.check(settings.model, model_files)
        kinds.check_as_trained(Path(settings.model), settings)
    store = PassageStore(given.records / "passages.parquet")
    table = selection.ranked_table(given.ranking, "train", hops=settings.of_paths)
    limits = {"depth": settings.depth, "half": settings.half}
    asked = list(selection.asked(given.records, given.positives, table, store, **limits))
    make, terms = LESSONS[settings.kind]
    reader = kinds.MODELS[settings.kind].start(given.init, settings).to(machines.device())
    loop.set_dropout(reader, hidden=settings.dropout, attention=settings.attention_dropout)
    examples = make(reader, asked, store, given.positives)
    if not len(examples) and settings.steps != 0:
        raise ValueError(f"{table}: none of the {len(asked):,} training questions it {examples.why_none}")
    made_of = [given.records / "passages.parquet", given.records / "questions.parquet", table, given.init]
    made_of += [given.positives / "positives.parquet", given.positives / "folds.parquet"]
    counts = {"questions": len(examples), "questions_left_out": len(asked) - len(examples)} | examples.counts()
    return stage.train(
        TrainingState(Encoders(reader, reader), settings),  # of the same object it keeps one
        task(examples, partial(terms, reader, hardware=hardware), settings),
        out,
        logs,
        key=lambda: machines.key(__file__, made_of, settings, model_files, hardware),
        save=lambda folder: kinds.save(folder, reader.eval()),
        counts=lambda: counts,
    )


def task(examples: Examples, terms: Callable[[Any], dict[str, Tensor]], settings: Reader) -> Task:
    """`terms` of an example are scalars, of which `loss` is trained."""

    def lesson(step: int) -> list[Any]:
        once = np.ones(len(examples), np.int64)
        epoch, drawn = batch_indices(step, times=once, size=settings.batch_size, seed=settings.seed)
        return [examples(i, epoch) for i, _ in drawn]

    def backward(state: TrainingState, lesson: list[Any]) -> dict[str, float]:
        (reader,) = state.modules
        parameters = [p for p in reader.parameters() if p.requires_grad]
        values: list[dict[str, Tensor]] = [{}] * len(lesson)

        def of(i: int) -> Sequence[Tensor | None]:
            found = terms(lesson[i])
            values[i] = {name: value.detach() for name, value in found.items()}
            return torch.autograd.grad(found["loss"] / len(lesson), parameters, allow_unused=True)

        parallel.add_gradients(parameters, of, range(len(lesson)), together=not parallel.uses_dropout(reader))
        return {name: sum(one[name] for one in values).item() / len(lesson) for name in values[0]}

    return Task(settings.section, settings, steps_of(settings, len(examples)), lesson, backward)


def steps_of(settings: Reader, questions: int) -> int:
    """`steps`, or as many as `epochs` passes over the questions give; what fills no batch is left out."""
    if settings.steps is not None:
        return settings.steps
    return settings.epochs * (questions // min(settings.batch_size, questions))
