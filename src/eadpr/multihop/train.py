"""The stage `train_multihop`: from the examples of an arm to the encoders of two-hop retrieval (MDR).

Loop, losses and checkpoints are those of `eadpr.training`; batches and validation are of two hops. MDR's memory bank is
an option, since EADPR goes without it (001, Appendix C); MDR's linear layer and norm on top of CLS are left out.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from eadpr import cache, files, parallel, passages, text
from eadpr import machine as machines
from eadpr.machine import Machine
from eadpr.multihop import hop_batches, hop_examples, hop_validation, memory, queries
from eadpr.multihop.config import TwoHop
from eadpr.multihop.hop_batches import HopBatcher
from eadpr.multihop.hop_examples import HopExamples, side_by_side
from eadpr.multihop.hop_validation import HopValidator
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
from eadpr.training.checkpoint import Checkpoints
from eadpr.training.config import EncoderSettings, Loss, Train
from eadpr.training.encoder import load_pair, save
from eadpr.training.example_set import PassageInputs, read_examples
from eadpr.training.forward import Encoders
from eadpr.training.loop import Task
from eadpr.training.state import TrainingState

CODE = (batches, encoder, example_set, forward, loop, losses, processes, replay, schedule, state, validation)
CODE += (machines, parallel, passages, text)
CODE += (hop_batches, hop_examples, hop_validation, memory, queries, sys.modules[__name__])
AVERAGED = 100  # last steps whose mean stands in metrics.json


class Inputs(NamedTuple):
    """`examples`: one example for each supporting passage."""

    records: Path
    examples: Path
    init: Path


class Settings(NamedTuple):
    loss: Loss
    train: Train
    encoder: EncoderSettings
    two_hop: TwoHop
    machine: Machine


def train_multihop(inputs: Inputs, out: Path, logs: Path, settings: Settings) -> int:
    """Write the encoders to the folder `out` and the log to the folder `logs`; returns the optimiser steps.

    `batch_size` counts questions, `hard_negatives` those of either hop. A training that was killed goes on where it was
    last saved, with the same result. Of several processes the first writes. Raises ValueError for examples that cannot
    be trained on, RuntimeError where a loss is not finite.
    """
    store = PassageStore(inputs.records / "passages.parquet")
    learning, held_out = (_hops(inputs, role, store, settings) for role in ("train", "validation"))
    _check(learning, held_out, inputs.examples, settings)
    encoders = _encoders(inputs.init, settings)
    task = _task(learning, held_out, store, encoders, settings)
    run = TrainingState(encoders, settings.train)
    kept = cache.workspace("train_multihop", _fingerprint(inputs, settings)) if processes.first() else nullcontext()
    with kept as folder:
        if (bank := settings.two_hop.memory).size:
            memory.run(run, task, Checkpoints(folder), bank)
        else:
            loop.run(run, task, Checkpoints(folder))
        if not processes.first():
            return task.steps
        if settings.train.keep == "best":
            run.use_best()
        with files.new_folder(out) as temporary:
            save(temporary, *encoders)
            queries.write_query_tokens(temporary, settings.two_hop.query_tokens)
        log.write(logs, {"train/loss": []} | run.series, _final(run, task, learning))
        files.discard(folder)
    return task.steps


def _encoders(init: Path, settings: Settings) -> Encoders:
    """With a memory bank passages get an encoder of their own, at first the same."""
    shape, train = settings.encoder.model_copy(update={"shared": settings.two_hop.shared}), settings.train
    encoders = Encoders(*load_pair(init, shape))
    if settings.two_hop.memory.size:
        encoders = Encoders(*load_pair(init, shape.model_copy(update={"shared": False})))
        encoders.passage.requires_grad_(requires_grad=False)
    for module in dict.fromkeys(encoders):
        loop.set_dropout(module, hidden=train.dropout, attention=train.attention_dropout)
        module.to(machines.device())
    if train.freeze != "none":
        getattr(encoders, train.freeze).requires_grad_(requires_grad=False)
    return encoders


def _hops(inputs: Inputs, role: str, store: PassageStore, settings: Settings) -> HopExamples:
    found = read_examples(
        inputs.examples,
        inputs.records,
        store,
        role,
        distractors=settings.loss.needs_distractors,
        upsample=settings.train.upsample,
    )
    return side_by_side(found, inputs.records, store)


def _check(learning: HopExamples, held_out: HopExamples, folder: Path, settings: Settings) -> None:
    examples, train = learning.examples, settings.train
    if not examples.questions:
        raise ValueError(
            f"{folder} holds no training question with an example for each of its two hops ({learning.left_out} without"
            " are left out); set examples.positive: each, and train on questions with hops"
        )
    if settings.loss.needs_distractors and not any(examples.distractors):
        raise ValueError(f"{folder} holds no distractors of the hops, but the loss needs them; set examples.strategy")
    if train.keep == "best" and not _validates(held_out, train):
        raise ValueError(
            "train.keep: best needs validation questions with two hops; raise positives.validation and"
            " train.validation_questions"
        )


def _validates(held_out: HopExamples, train: Train) -> bool:
    return bool(held_out.examples.questions) and train.validation_questions > 0


def _task(
    learning: HopExamples, held_out: HopExamples, store: PassageStore, encoders: Encoders, settings: Settings
) -> Task:
    train, loss = settings.train, settings.loss
    inputs = [PassageInputs(hops.examples, store, encoders.passage) for hops in (learning, held_out)]
    batchers = [
        HopBatcher(
            hops,
            texts,
            store,
            encoders.question,
            query_tokens=settings.two_hop.query_tokens,
            hard_negatives=train.hard_negatives,
            mask_false_negatives=loss.masks_false_negatives,
        )
        for hops, texts in zip((learning, held_out), inputs, strict=True)
    ]
    validate = HopValidator(batchers[1], inputs[1], train, settings.machine) if _validates(held_out, train) else None
    steps = schedule.total_steps(train, int(learning.examples.times[::2].sum()))
    return Task(batchers[0], validate, loss, train, settings.machine, steps)


def _fingerprint(inputs: Inputs, settings: Settings) -> str:
    read = ["passages.parquet", "questions.parquet", *["question_sets.parquet"] * bool(settings.train.upsample)]
    records = [files.sha256(inputs.records / name) for name in read]
    folders = [files.tree_sha256(folder) for folder in (inputs.examples, inputs.init)]
    sections = [section.model_dump() for section in settings]
    made_with = [machines.libraries(), machines.device(), processes.count()]
    return cache.fingerprint(records, folders, made_with, sections, cache.code(*CODE))


def _final(run: TrainingState, task: Task, learning: HopExamples) -> dict[str, object]:
    """Counts of questions, and of hops without a distractor or with one whose evidence lies beyond the cut; means over
    the last steps; the last validation."""
    examples = learning.examples
    counts = {"questions": len(learning.either), "left_out": learning.left_out}
    counts["without_negatives"] = sum(not len(rows) for rows in examples.negatives[::2])
    if task.loss.needs_distractors:
        counts["without_distractor"] = sum(not texts for texts in examples.distractors)
        counts["truncated"] = task.batcher.truncated_pairs()
    means, last = {}, {}
    for series, rows in run.series.items():
        kind, _, name = series.partition("/")
        if kind == "validation":
            last[name] = rows[-1][1]
        elif name not in counts:
            means[name] = log.tail_mean(rows, AVERAGED)
    final = {"steps": task.steps, **counts}
    final |= {f"last_{AVERAGED}_steps": log.rounded(means), "validation": log.rounded(last)}
    return final | ({"kept_step": run.best_step} if task.train.keep == "best" else {})
