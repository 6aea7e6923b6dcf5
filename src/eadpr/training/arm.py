"""The stage `train`: from the files of an arm to its trained encoders and its log."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from eadpr import cache, files, parallel, passages, text
from eadpr import machine as machines
from eadpr.machine import Machine
from eadpr.passages import PassageStore
from eadpr.training import (
    batches,
    encoder,
    example_set,
    forward,
    log,
    loop,
    losses,
    processes,
    replay,
    schedule,
    state,
    validation,
)
from eadpr.training.batches import Batcher
from eadpr.training.checkpoint import Checkpoints
from eadpr.training.config import EncoderSettings, Loss, Train
from eadpr.training.encoder import load_pair, save
from eadpr.training.example_set import ExampleSet, PassageInputs, read_examples
from eadpr.training.forward import Encoders
from eadpr.training.loop import Task
from eadpr.training.state import TrainingState
from eadpr.training.validation import Validator

CODE = (batches, encoder, example_set, forward, loop, losses, processes, replay, schedule, state, validation)
CODE += (machines, parallel, passages, text)
AVERAGED = 100  # last steps whose mean stands in metrics.json


class Inputs(NamedTuple):
    records: Path
    examples: Path
    init: Path


class Settings(NamedTuple):
    loss: Loss
    train: Train
    encoder: EncoderSettings
    machine: Machine


def train_arm(inputs: Inputs, out: Path, logs: Path, settings: Settings) -> int:
    """Write the encoders to the folder `out` and the log to the folder `logs`; returns the optimiser steps.

    With 0 steps the encoders are those of `init`. A training that was killed goes on where it was last saved, with the
    same result. Of several processes (`eadpr.training.processes`) the first writes. Raises ValueError for examples that
    cannot be trained on, RuntimeError where a loss is not finite.
    """
    store = PassageStore(inputs.records / "passages.parquet")
    learning, held_out = (
        read_examples(
            inputs.examples,
            inputs.records,
            store,
            role,
            distractors=settings.loss.needs_distractors,
            upsample=settings.train.upsample,
        )
        for role in ("train", "validation")
    )
    _check(learning, held_out, inputs.examples, settings)
    encoders = Encoders(*load_pair(inputs.init, settings.encoder))
    for module in dict.fromkeys(encoders):
        loop.set_dropout(module, hidden=settings.train.dropout, attention=settings.train.attention_dropout)
        module.to(machines.device())
    if settings.train.freeze != "none":
        getattr(encoders, settings.train.freeze).requires_grad_(requires_grad=False)
    task = _task(learning, held_out, store, encoders, settings)
    run = TrainingState(encoders, settings.train)
    kept = cache.workspace("train", _fingerprint(inputs, settings)) if processes.first() else nullcontext()
    with kept as folder:
        loop.run(run, task, Checkpoints(folder))
        if not processes.first():
            return task.steps
        if settings.train.keep == "best":
            run.use_best()
        with files.new_folder(out) as temporary:
            save(temporary, *encoders)
        log.write(logs, {"train/loss": []} | run.series, _final(run, task, learning))
        files.discard(folder)
    return task.steps


def _task(
    learning: ExampleSet, held_out: ExampleSet, store: PassageStore, encoders: Encoders, settings: Settings
) -> Task:
    train, loss = settings.train, settings.loss
    batchers, inputs = [], []
    for examples, learnt in ((learning, True), (held_out, False)):
        shuffle_passages = train.seed if learnt and train.shuffle_passages else None
        inputs.append(PassageInputs(examples, store, encoders.passage, shuffle_seed=shuffle_passages))
        batchers.append(
            Batcher(
                examples,
                inputs[-1],
                encoders.question,
                hard_negatives=train.hard_negatives,
                mask_false_negatives=loss.masks_false_negatives,
                shuffle_seed=train.seed if learnt and train.shuffle_questions else None,
            )
        )
    validate = Validator(batchers[1], inputs[1], train, settings.machine) if _validates(held_out, train) else None
    steps = schedule.total_steps(train, int(learning.times.sum()))
    return Task(batchers[0], validate, loss, train, settings.machine, steps)


def _validates(held_out: ExampleSet, train: Train) -> bool:
    return bool(held_out.questions) and train.validation_questions > 0


def _check(learning: ExampleSet, held_out: ExampleSet, folder: Path, settings: Settings) -> None:
    loss, train = settings.loss, settings.train
    if not learning.questions:
        raise ValueError(f"{folder} holds no training examples{_left_out(train)}; see its report.json")
    if loss.needs_distractors and not any(learning.distractors):
        raise ValueError(
            f"{folder} holds no distractors, but the loss needs them (form {loss.form}, lambda {loss.lambda_},"
            f" tau1 {loss.tau1}, tau2 {loss.tau2}); set examples.strategy, or set lambda, tau1 and tau2 to 0,"
            f" or leave the arm out of `active` (-S '~active.{folder.name}')"
        )
    if min(train.batch_size, len(learning.questions)) == 1 and not train.hard_negatives:
        raise ValueError("a batch of one question without hard negatives teaches nothing; raise train.batch_size")
    if train.keep == "best" and not _validates(held_out, train):
        raise ValueError(
            "train.keep: best needs validation questions; raise positives.validation and train.validation_questions"
        )


def _left_out(train: Train) -> str:
    without = [name for name, times in train.upsample.items() if not times]
    return f" besides those of {', '.join(without)}, which train.upsample leaves out" if without else ""


def _fingerprint(inputs: Inputs, settings: Settings) -> str:
    read = ["passages.parquet", "questions.parquet", *["question_sets.parquet"] * bool(settings.train.upsample)]
    records = [files.sha256(inputs.records / name) for name in read]
    folders = [files.tree_sha256(folder) for folder in (inputs.examples, inputs.init)]
    sections = [section.model_dump() for section in settings]
    made_with = [machines.libraries(), machines.device(), processes.count()]
    return cache.fingerprint("train", records, folders, made_with, sections, cache.code(*CODE))


def _final(run: TrainingState, task: Task, learning: ExampleSet) -> dict[str, object]:
    """Counts over the training questions, means over the last steps, the last validation."""
    counts = {
        "questions": len(learning.questions),
        "without_negatives": sum(not len(rows) for rows in learning.negatives),
    }
    if task.train.upsample:
        counts["questions_per_epoch"] = int(learning.times.sum())
    if task.loss.needs_distractors:
        counts["without_distractor"] = sum(not texts for texts in learning.distractors)
        counts["truncated"] = task.batcher.truncated_pairs()
    means, last = {}, {}
    for series, rows in run.series.items():
        kind, _, name = series.partition("/")
        if kind == "validation":
            last[name] = rows[-1][1]
        elif name not in counts:
            means[name] = log.tail_mean(rows, AVERAGED)
    final = {
        "steps": task.steps,
        **counts,
        f"last_{AVERAGED}_steps": log.rounded(means),
        "validation": log.rounded(last),
    }
    if task.train.keep == "best":
        final |= {"kept_step": run.best_step}
    return final
