"""Settings of the stage near_duplicates; no heavy imports."""

from typing import Literal, Self, get_args

from pydantic import Field, model_validator

from eadpr.runtime.section import Section
from eadpr.supervision.config import FillerKind, Strategy, WriterKind

# By rule: `kinds` says what each is. Of these the evidence is gone, so that none should be ranked before a positive.
Goal = Literal["removed", "replaced", "reordered"]
Generator = Literal[Goal, "swapped", WriterKind]
GOALS: tuple[Goal, ...] = get_args(Goal)
PROBE: Generator = "swapped"


class Replaced(Section):
    fillers: FillerKind


class NearDuplicates(Section):
    per_question: int = Field(ge=1)
    candidates: int = Field(ge=1)
    strategy: Strategy
    seed: int = Field(ge=0)
    replaced: Replaced

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.candidates < self.per_question:
            raise ValueError(f"candidates ({self.candidates}) must be at least per_question ({self.per_question})")
        return self


class Generation(NearDuplicates):
    """What the stage is given: the stage `configs` puts in the generator, and leaves out the settings of another."""

    generator: Generator
    replaced: Replaced | None
