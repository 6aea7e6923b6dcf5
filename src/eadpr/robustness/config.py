"""Settings and the table of near-duplicates; no heavy imports."""

from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from eadpr.runtime.section import Section
from eadpr.supervision.config import Strategy

# The first three are by rule (`rules`).
Generator = Literal["removed", "replaced", "reordered", "endpoint", "given"]
CANDIDATES = 40  # texts asked for a question, at most


class NearDuplicate(NamedTuple):
    """A passage much like the positive `passage_id` that holds no answer to the question.

    `number` counts from 0 within the question; a corpus with n near-duplicates per question takes the numbers below n.
    """

    question_id: str
    passage_id: str
    number: int
    generator: str
    title: str
    text: str


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


class Measurement(Robustness):
    """The stage's settings: `configs` adds `retrieve.candidates` where sentences or tokens are the unit of an arm."""

    candidates: int | None = Field(default=None, ge=1)
