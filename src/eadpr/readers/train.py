"""The stage `reader`: train a reader on a ranking of the training questions, or its paths.

A step averages the gradients of its questions, each computed separately, since no loss compares passages of different
questions. So memory holds one question per thread, and one more set of gradients.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eadpr.readers import kinds, lessons, selection
from eadpr.readers.config import Reader
from eadpr.runtime import machine, model_folders, parallel
from eadpr.runtime.machine import Machine
from eadpr.runtime.model_folders import ModelFiles
from eadpr.storage.passages import PassageStore
from eadpr.training import loop
from eadpr.training.batches import epochs
from eadpr.training.forward import Encoders
from eadpr.training.state import TrainingState

Examples = lessons.ExtractiveExamples | lessons.FusionExamples

# The examples of each kind, one per question and epoch, and the terms of an example's loss.
LESSONS = {
    "extractive": (lessons.passage_examples, lessons.extractive_terms),
    "paths": (lessons.path_examples, lessons.extractive_terms),
    "fid": (lessons.FusionExamples, lessons.fusion_terms),
}


def train_reader(
    settings: Reader, model_files: ModelFiles, hardware: Machine, *, records: Path, positives: Path, ranking: Path,
    init: Path, out: Path, log: Path,
) -> int:  # fmt: skip
    """Write the reader to the folder `out` and the log to the folder `log`; return the optimiser steps.

    `model_files` are the files of the folder `settings.model`; the folder `init` has an arm's or a base's encoders, or
    the annotator. A killed training resumes, with the same result. Raises ValueError without any example.
    """
    if settings.model is not None:
        model_folders.check(settings.model, model_files)
    store = PassageStore(records / "passages.parquet")
    table = selection.ranking_table(ranking, "train", hops=settings.of_paths)
    ranked = list(selection.read_training_questions(records, positives, table, store, depth=settings.depth))
    make, terms = LESSONS[settings.kind]
    reader = kinds.MODELS[settings.kind].start(init, settings).to(machine.device())
    loop.set_dropout(reader, hidden=settings.dropout, attention=settings.attention_dropout)
    examples = make(reader, ranked, store, positives)
    if not len(examples):
        none = f"none of the {len(ranked):,} training questions it ranks can be learnt from"
        lacks = f"none has an answer within {settings.section}.tokens of a ranked passage, or for `paths` hops"
        raise ValueError(f"{table}: {none}: {lacks}; take another ranking or set")
    sources = [records / "passages.parquet", records / "questions.parquet", table, init]
    sources += [positives / "positives.parquet", positives / "folds.parquet"]
    counts = {"questions": len(examples), "questions_left_out": len(ranked) - len(examples)}
    return loop.train(
        TrainingState(Encoders(reader, reader), settings),  # one model: the state keeps equal modules once
        task(examples, partial(terms, reader, hardware=hardware), settings),
        out,
        log,
        key=lambda: machine.key(__file__, sources, settings, model_files, hardware),
        save=lambda folder: kinds.save(folder, reader.eval()),
        counts=lambda: counts,
    )


def task(examples: Examples, terms: Callable[[Any], dict[str, Tensor]], settings: Reader) -> loop.Task:
    """Return the training task; `terms` gives scalars of an example, and their `loss` is minimised."""
    schedule = epochs(np.ones(len(examples), np.int64), size=settings.batch_size, seed=settings.seed)

    def lesson(step: int) -> list[Any]:
        epoch, batch = schedule(step)
        return [examples(i, epoch) for i, _ in batch]

    def backward(state: TrainingState, lesson: list[Any]) -> dict[str, float]:
        (reader,) = state.modules
        parameters = [p for p in reader.parameters() if p.requires_grad]
        values: list[dict[str, Tensor]] = [{}] * len(lesson)

        def gradients(i: int) -> Sequence[Tensor | None]:
            losses = terms(lesson[i])
            values[i] = {name: value.detach() for name, value in losses.items()}
            return torch.autograd.grad(losses["loss"] / len(lesson), parameters, allow_unused=True)

        parallel.add_gradients(parameters, gradients, range(len(lesson)), together=not parallel.uses_dropout(reader))
        return {name: sum(losses[name] for losses in values).item() / len(lesson) for name in values[0]}

    full_batches = len(examples) // min(settings.batch_size, len(examples))
    steps = settings.epochs * full_batches if settings.steps is None else settings.steps
    return loop.Task(settings.section, settings, steps, lesson, backward)
