"""The stage `train`: from the files of an arm to its trained encoders and its log."""

from pathlib import Path
from typing import NamedTuple

from eadpr.runtime import machine as machines
from eadpr.runtime.machine import Machine
from eadpr.storage.passages import PassageStore
from eadpr.training import contrastive, loop, processes
from eadpr.training import run as stage
from eadpr.training.batches import Batcher
from eadpr.training.config import EncoderSettings, Loss, Train
from eadpr.training.encoder import load_pair, save
from eadpr.training.example_set import ExampleSet, PassageInputs, read_examples
from eadpr.training.forward import Encoders
from eadpr.training.state import TrainingState


class ArmInputs(NamedTuple):
    records: Path
    examples: Path
    init: Path


class ArmSettings(NamedTuple):
    loss: Loss
    train: Train
    encoder: EncoderSettings
    machine: Machine


def train_arm(inputs: ArmInputs, out: Path, logs: Path, settings: ArmSettings) -> int:
    """Write the encoders to the folder `out` and the log to the folder `logs`; returns the optimiser steps.

    With 0 steps the encoders are those of `init`. A training that was killed goes on where it was last saved, with the
    same result. Of several processes (`eadpr.training.processes`) the first writes. Raises ValueError for examples that
    cannot be trained on, and where a loss is not finite.
    """
    train = settings.train
    store = PassageStore(inputs.records / "passages.parquet")
    learning, held_out = (examples_of(inputs, role, store, settings) for role in ("train", "validation"))
    _check(learning, held_out, inputs.examples, settings)
    encoders = prepared(Encoders(*load_pair(inputs.init, settings.encoder)), train)
    batcher = _batcher(learning, store, encoders, settings, shuffle=True)
    validated = _batcher(held_out, store, encoders, settings, shuffle=False)
    steps = train.total_steps(len(learning.times), int(learning.times.sum()))
    return stage.train(
        TrainingState(encoders, train),
        contrastive.task(batcher, validated, settings, steps),
        out,
        logs,
        key=lambda: fingerprint(inputs, settings, __file__),
        save=lambda folder: save(folder, *encoders),
        counts=lambda: _counts(batcher, settings),
    )


def examples_of(
    inputs: ArmInputs, role: str, store: PassageStore, settings: contrastive.ContrastiveSettings
) -> ExampleSet:
    return read_examples(
        inputs.examples,
        inputs.records,
        store,
        role,
        distractors=settings.loss.needs_distractors,
        placebos=settings.loss.needs_placebos,
        upsample=settings.train.upsample,
    )


def prepared(encoders: Encoders, train: Train) -> Encoders:
    """Put the encoders on the device and set the dropout of the training; an encoder that is to stay frozen gets no
    gradients. Changes them in place and returns them."""
    for module in dict.fromkeys(encoders):
        loop.set_dropout(module, hidden=train.dropout, attention=train.attention_dropout)
        module.to(machines.device())
    if train.freeze != "none":
        getattr(encoders, train.freeze).requires_grad_(requires_grad=False)
    return encoders


def fingerprint(inputs: ArmInputs, settings: NamedTuple, module: str) -> str:
    """A fingerprint of all that decides the bytes of a training; `settings` are sections, `module` is the file whose
    code trains."""
    read = ["passages.parquet", "questions.parquet", *["question_sets.parquet"] * bool(settings.train.upsample)]
    files = [*(inputs.records / name for name in read), inputs.examples, inputs.init]
    return machines.key(module, files, *settings, processes.count())


def distractor_counts(batcher: Batcher, loss: Loss) -> dict[str, object]:
    """Examples without a distractor, and with one whose evidence lies beyond the cut; those without a placebo."""
    counts: dict[str, object] = {}
    if loss.needs_distractors:
        without = sum(not texts for texts in batcher.examples.distractors)
        counts |= {"without_distractor": without, "truncated": batcher.truncated_pairs()}
    if loss.needs_placebos:
        counts["without_placebo"] = sum(text is None for text in batcher.examples.placebos)
    return counts


def check_placebos(examples: ExampleSet, folder: Path, loss: Loss) -> None:
    """Raises ValueError where the loss needs placebos and no example has one."""
    if loss.needs_placebos and not any(examples.placebos):
        raise ValueError(
            f"{folder} holds no placebos, but the loss needs them (balance {loss.balance}, placebo {loss.placebo}); see"
            " placebo in the report.json of distractors, or set balance to none and placebo to 0"
        )


def _batcher(
    examples: ExampleSet, store: PassageStore, encoders: Encoders, settings: ArmSettings, *, shuffle: bool
) -> Batcher:
    """With `shuffle` the words of the texts are shuffled where the settings ask for it."""
    train = settings.train
    seed = train.seed if shuffle else None
    return Batcher(
        examples,
        PassageInputs(examples, store, encoders.passage, shuffle_seed=seed if train.shuffle_passages else None),
        encoders.question,
        hard_negatives=train.hard_negatives,
        mask_false_negatives=settings.loss.masks_false_negatives,
        shuffle_seed=seed if train.shuffle_questions else None,
        balance=settings.loss.balances,
    )


def _counts(batcher: Batcher, settings: ArmSettings) -> dict[str, object]:
    """What is counted of the training questions, for the log."""
    examples = batcher.examples
    counts = {
        "questions": len(examples.questions),
        "without_negatives": sum(not len(rows) for rows in examples.negatives),
    }
    if settings.train.upsample:
        counts["questions_per_epoch"] = int(examples.times.sum())
    return counts | distractor_counts(batcher, settings.loss)


def _check(learning: ExampleSet, held_out: ExampleSet, folder: Path, settings: ArmSettings) -> None:
    loss, train = settings.loss, settings.train
    if not learning.questions:
        raise ValueError(f"{folder} holds no training examples{_left_out(train)}; see its report.json")
    if loss.needs_distractors and not any(learning.distractors):
        raise ValueError(
            f"{folder} holds no distractors, but the loss needs them (form {loss.form}, lambda {loss.lambda_},"
            f" tau1 {loss.tau1}, tau2 {loss.tau2}); set examples.strategy, or set lambda, tau1 and tau2 to 0,"
            f" or leave the arm out of `active` (-S '~active.{folder.name}')"
        )
    check_placebos(learning, folder, loss)
    if min(train.batch_size, len(learning.questions)) == 1 and not train.hard_negatives:
        raise ValueError("a batch of one question without hard negatives teaches nothing; raise train.batch_size")
    if train.keep == "best" and not (held_out.questions and train.validation_questions):
        raise ValueError(
            "train.keep: best needs train.validation_questions, and positives.validation above 0 or sets.validation"
        )


def _left_out(train: Train) -> str:
    without = [name for name, times in train.upsample.items() if not times]
    return f" besides those of {', '.join(without)}, which train.upsample leaves out" if without else ""
