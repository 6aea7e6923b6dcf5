"""Settings of the reader of paths; no heavy imports."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from eadpr.config import Section
from eadpr.training.schedule import Optimiser


class PathReading(Section):
    """Written as `reader.json` beside the model, so that whoever loads it cuts as in training."""

    question_tokens: int = Field(ge=4)
    input_tokens: int = Field(ge=16)
    answer_tokens: int = Field(ge=1)

    @model_validator(mode="after")
    def _room(self) -> PathReading:
        if self.question_tokens + 8 > self.input_tokens:
            raise ValueError(
                f"question_tokens ({self.question_tokens}) leaves no room for passages in input_tokens"
                f" ({self.input_tokens}); raise the latter by what a path needs"
            )
        return self


class PathTraining(Optimiser):
    """`negatives` are other paths per question; `support` weighs the loss of the supporting sentences."""

    epochs: int = Field(ge=1)
    steps: int | None = Field(ge=0)
    batch_size: int = Field(ge=1)
    negatives: int = Field(ge=1)
    support: float = Field(ge=0)


class PathLearning(PathReading, PathTraining):
    """The section `path_reader`. `model` None: what the reader's `init` names; `paths`: the first of a question's that
    others than the right one are drawn from."""

    model: Annotated[str, Field(min_length=1)] | None
    revision: str | None
    paths: int = Field(ge=1)
    dropout: float = Field(ge=0, lt=1)
    attention_dropout: float = Field(ge=0, lt=1)

    @property
    def reading(self) -> PathReading:
        return PathReading(**{name: getattr(self, name) for name in PathReading.model_fields})


class ReadPaths(Section):
    """`paths`: the first of a question's that are read."""

    paths: int = Field(ge=1)
