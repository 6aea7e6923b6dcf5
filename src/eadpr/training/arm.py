"""The stage `train`: from the files of an arm to its trained encoders and its log."""

from pathlib import Path
from typing import NamedTuple

import torch

from eadpr.runtime import machine as machines
from eadpr.runtime.section import Section
from eadpr.storage.passages import PassageStore
from eadpr.training import contrastive, loop, processes
from eadpr.training.batches import Batcher
from eadpr.training.config import Loss
from eadpr.training.contrastive import ArmSettings
from eadpr.training.encoder import Encoders, load_pair, save
from eadpr.training.example_set import ExampleSet, read_examples
from eadpr.training.state import TrainingState


class ArmInputs(NamedTuple):
    records: Path
    examples: Path
    init: Path


def train_arm(
    inputs: ArmInputs, out: Path, logs: Path, settings: ArmSettings, report: loop.Report | None = None
) -> int:
    """Write the encoders to the folder `out` and the log to the folder `logs`; return the number of optimiser steps.

    With 0 steps the encoders are those of `init`. A training that was killed resumes from its last checkpoint, with the
    same result. Of several processes (`eadpr.training.processes`) the first writes. Raises ValueError for examples that
    cannot be trained on, and where a loss is not finite.
    """
    train = settings.train
    store = PassageStore(inputs.records / "passages.parquet")
    training, validation = (
        read_examples(inputs.examples, inputs.records, store, role, settings.loss, train.upsample)
        for role in ("train", "validation")
    )
    if not training.questions:
        raise ValueError(
            f"{inputs.examples} holds no training examples (train.upsample {train.upsample}); see its report.json"
        )
    check_examples(training, inputs.examples, settings.loss)
    alone = min(train.batch_size, len(training.questions)) == 1
    if alone and not train.hard_negatives and not settings.loss.needs_distractors:
        raise ValueError(
            "one question without hard negatives teaches nothing; raise train.batch_size, or add questions"
        )
    encoders = prepare_encoders(load_pair(inputs.init, settings.encoder), settings)
    batcher = Batcher(training, store, encoders, settings.loss, train, shuffle=True)
    validation_batcher = Batcher(validation, store, encoders, settings.loss, train)
    steps = train.total_steps(len(training.times), int(training.times.sum()))
    counts: dict[str, object] = {"questions": len(training.questions)}
    counts["without_negatives"] = sum(not len(rows) for rows in training.negatives)
    if train.upsample:
        counts["questions_per_epoch"] = int(training.times.sum())
    return loop.train(
        TrainingState(encoders, train),
        contrastive.task(batcher, validation_batcher, settings, steps)._replace(report=report),
        out,
        logs,
        key=lambda: fingerprint(inputs, settings, __file__),
        save=lambda folder: save(folder, *encoders),
        counts=lambda: counts | batcher.count_all() | contrastive.count_validation(validation_batcher, train),
    )


def prepare_encoders(encoders: Encoders, settings: ArmSettings) -> Encoders:
    """Set dropout and the scale of scores, freeze what does not learn and put the encoders on the device, in place;
    return them. Frozen parts drop nothing out."""
    loss, train = settings.loss, settings.train
    for module in dict.fromkeys(encoders):
        loop.set_dropout(module, hidden=0.0, attention=0.0)
        for part in [module] if train.layers is None else freeze_lower(module.model, train.layers):
            loop.set_dropout(part, hidden=train.dropout, attention=train.attention_dropout)
        if loss.scale != "auto":
            module.settings = module.settings.model_copy(update={"scale": loss.scale})
    if train.freeze != "none":
        getattr(encoders, train.freeze).requires_grad_(requires_grad=False)
    return encoders.to(machines.device())


def freeze_lower(model: torch.nn.Module, count: int) -> list[torch.nn.Module]:
    """Freeze all of a model but its last `count` layers, and return these; no gradient is computed below them."""
    total = model.config.num_hidden_layers
    lists = [part for part in model.modules() if isinstance(part, torch.nn.ModuleList) and len(part) == total]
    if len(lists) != 1:
        raise ValueError(f"train.layers: the {total} layers of a {model.config.model_type} are not one list; set null")
    if count > total:
        raise ValueError(f"train.layers is {count}, but the encoder has {total} layers; lower it, or set null for all")
    model.requires_grad_(requires_grad=False)
    lists[0][-count:].requires_grad_(requires_grad=True)
    return list(lists[0][-count:])


def fingerprint(inputs: ArmInputs, settings: ArmSettings, module: str, *more: Section) -> str:
    """Hash all that decides the bytes of a training by a module (its `__file__`)."""
    paths = [inputs.records / "passages.parquet", inputs.records / "questions.parquet"]
    if settings.train.upsample:
        paths.append(inputs.records / "question_sets.parquet")
    return machines.key(module, [*paths, inputs.examples, inputs.init], *settings, *more, processes.count())


def check_examples(examples: ExampleSet, folder: Path, loss: Loss) -> None:
    """Raise ValueError where the loss needs distractors or placebos and no example has one."""
    for name, needs, texts in (
        ("distractors", loss.needs_distractors, examples.distractors),
        ("placebos", loss.needs_placebos, examples.placebos),
        ("spans of evidence", loss.rest, examples.evidence),
    ):
        if needs and not any(texts):
            raise ValueError(
                f"{folder} holds no {name}, but the loss needs them; change the loss, or examples.strategy"
            )
