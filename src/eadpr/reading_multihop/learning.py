"""How the reader of paths learns: batches of questions, each with its right path and others, and one loss of four.

All randomness of a step (questions, other paths, dropout) is a function of seed and step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr import machine as machines
from eadpr.machine import Machine
from eadpr.reading_multihop.config import PathTraining
from eadpr.reading_multihop.inputs import Batch, PathInput, collate, path_input, token_spans
from eadpr.reading_multihop.losses import kind_loss, path_loss, span_loss, support_loss
from eadpr.reading_multihop.model import PathReader, Scores
from eadpr.reading_multihop.paths import Lesson
from eadpr.reading_multihop.records import sentences_of
from eadpr.records import Passage
from eadpr.training.loop import Task
from eadpr.training.state import TrainingState


class Asked(NamedTuple):
    """A batch of paths and what is right of it; the gold path of each question is its first.

    `owner_N` is the question of each path; `support_GS` and `there_GS` are of gold paths: which sentences support, and
    which have a token.
    """

    batch: Batch
    owner_N: Tensor
    kinds_G: Tensor
    spans: list[list[tuple[int, int]]]
    support_GS: Tensor
    there_GS: Tensor


class Losses(NamedTuple):
    loss: Tensor
    path: Tensor
    kind: Tensor
    span: Tensor
    support: Tensor


def steps_of(settings: PathTraining, lessons: int) -> int:
    """`steps`, or as many as `epochs` passes over the lessons give; what fills no batch is left out."""
    if settings.steps is not None:
        return settings.steps
    return settings.epochs * max(1, lessons // settings.batch_size)


def drawn(lessons: int, step: int, *, size: int, seed: int) -> list[int]:
    """The lessons of a step: epochs in a new order each, what fills no batch is left out; all where they fill none."""
    per_epoch = max(1, lessons // size)
    epoch, place = divmod(step, per_epoch)
    order = np.random.default_rng([seed, epoch]).permutation(lessons)
    return order[place * size : (place + 1) * size].tolist()


def asked(
    reader: PathReader,
    lessons: Sequence[Lesson],
    passages: Mapping[str, Passage],
    rng: np.random.Generator,
    negatives: int,
) -> Asked:
    """Each question's gold path, in either order where hops have none, and up to `negatives` others, drawn without
    repeats."""
    inputs: list[PathInput] = []
    gold: list[PathInput] = []
    owners, spans, support = [], [], []
    for owner, lesson in enumerate(lessons):
        order = np.arange(len(lesson.gold))
        if lesson.either:
            order = rng.permutation(order)
        picked = rng.permutation(len(lesson.others))[:negatives].tolist()
        paths = [[lesson.gold[i] for i in order], *(lesson.others[i] for i in picked)]
        own = [_input(reader, lesson.question, [passages[i] for i in path]) for path in paths]
        inputs += own
        owners += [owner] * len(own)
        gold.append(own[0])
        spans.append([] if lesson.kind else token_spans(own[0], [lesson.places[i] for i in order]))
        support.append({(order.tolist().index(place), sentence) for place, sentence in lesson.support})
    batch = collate(inputs, reader.tokenizer.pad_token_id)
    support_GS, there_GS = torch.zeros(2, len(gold), batch.sentences, dtype=torch.bool)
    for g, one in enumerate(gold):
        for s, place in enumerate(one.sentences):
            there_GS[g, s] = bool((one.sentence_T == s).any())
            support_GS[g, s] = place in support[g]
    kinds = torch.tensor([lesson.kind for lesson in lessons])
    return Asked(batch, torch.tensor(owners), kinds, spans, support_GS, there_GS)


def _input(reader: PathReader, question: str, path: Sequence[Passage]) -> PathInput:
    return path_input(reader.tokenizer, question, path, [sentences_of(p) for p in path], reader.settings)


def objective(scores: Scores, right: Asked, support: float) -> Losses:
    """path + kind + span + `support` times the loss of sentences; all but the first are of gold paths."""
    owner_N = right.owner_N.to(scores.path_N.device)
    kinds_G = right.kinds_G.to(scores.path_N.device)
    questions = len(kinds_G)
    gold_N = torch.ones_like(owner_N, dtype=torch.bool)
    gold_N[1:] = owner_N[1:] != owner_N[:-1]
    there_QN = owner_N.unsqueeze(0) == torch.arange(questions, device=owner_N.device).unsqueeze(1)
    path = path_loss(scores.path_N.expand(questions, -1), there_QN & gold_N, there_QN)
    kind = kind_loss(scores.kind_NK[gold_N], kinds_G)
    readable = right.batch.readable_NT.to(owner_N.device)[gold_N]
    span = span_loss(scores.start_NT[gold_N], scores.end_NT[gold_N], readable, right.spans)
    sentence = support_loss(
        scores.sentence_NS[gold_N], right.support_GS.to(owner_N.device), right.there_GS.to(owner_N.device)
    )
    return Losses(path + kind + span + support * sentence, path, kind, span, sentence)


def task(
    reader: PathReader,
    lessons: Sequence[Lesson],
    passages: Mapping[str, Passage],
    settings: PathTraining,
    hardware: Machine,
) -> Task:
    """`lessons` is not empty."""

    def lesson(step: int) -> Asked:
        chosen = drawn(len(lessons), step, size=settings.batch_size, seed=settings.seed)
        rng = np.random.default_rng([settings.seed, 1, step])
        return asked(reader, [lessons[i] for i in chosen], passages, rng, settings.negatives)

    def backward(_: TrainingState, right: Asked) -> dict[str, float]:
        with machines.autocast(hardware):
            scores = reader(right.batch.to(machines.device()))
        losses = objective(Scores(*(part.float() for part in scores)), right, settings.support)
        losses.loss.backward()
        return {name: value.item() for name, value in losses._asdict().items()}

    return Task("path_reader", settings, steps_of(settings, len(lessons)), lesson, backward)
