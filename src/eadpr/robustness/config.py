"""Settings of the stages `near_duplicates` and `robustness`; no heavy imports."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from eadpr.runtime.section import Section
from eadpr.supervision.config import Strategy

# The first three are by rule (`rules`).
Generator = Literal["removed", "replaced", "reordered", "endpoint", "given"]
CANDIDATES = 40  # texts asked for a question, at most


class NearDuplicates(Section):
    per_question: int = Field(ge=1, le=CANDIDATES)
    strategy: Strategy
    seed: int = Field(ge=0)


class Generation(NearDuplicates):
    """The stage's settings: `configs` adds the generator."""

    generator: Generator


class Robustness(Section):
    """How many near-duplicates per question join the corpus, one measurement each; 0 is what they are compared with."""

    counts: Annotated[list[Annotated[int, Field(ge=0)]], AfterValidator(lambda counts: sorted({0, *counts}))]
