"""What a reader, of any kind, learns from.

A step averages the gradients of its questions, each taken on its own, since no question's passages concern another:
memory is that of a question for each thread, and of the gradients of one more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from eadpr import parallel
from eadpr.reading.config import Reader
from eadpr.training.batches import batch_indices
from eadpr.training.loop import Task
from eadpr.training.state import TrainingState


class Examples(Protocol):
    """One per question and epoch."""

    def __len__(self) -> int: ...

    def __call__(self, i: int, epoch: int) -> Any: ...


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

        parallel.add_gradients(parameters, of, range(len(lesson)), together=not parallel.draws(reader))
        return {name: sum(one[name] for one in values).item() / len(lesson) for name in values[0]}

    return Task("reader", settings, steps_of(settings, len(examples)), lesson, backward)


def steps_of(settings: Reader, questions: int) -> int:
    """`steps`, or as many as `epochs` passes over the questions give; what fills no batch is left out."""
    if settings.steps is not None:
        return settings.steps
    return settings.epochs * (questions // min(settings.batch_size, questions))
