"""Settings of the stage near_duplicates; no heavy imports."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from eadpr.config import Section
from eadpr.supervision.config import FillerKind, Strategy

# By rule: `kinds` says what each is. Of these the evidence is gone, so that none should be ranked before a positive.
Goal = Literal["removed", "replaced", "reordered"]
Generator = Literal[Goal, "swapped", "seq2seq", "endpoint", "given"]
GOALS: tuple[Goal, ...] = get_args(Goal)
PROBE: Generator = "swapped"
WITH_SETTINGS: tuple[Generator, ...] = ("replaced", "seq2seq", "endpoint", "given")
FIELDS = ("question", "title", "text")  # of a prompt
_FIELD = re.compile(r"\{(\w+)\}")


def filled(form: str, **values: str) -> str:
    """`form` with each {name} replaced by its value; other braces stay."""
    return _FIELD.sub(lambda match: values.get(match[1], match[0]), form)


def _prompt(form: str) -> str:
    unknown = sorted(set(_FIELD.findall(form)) - set(FIELDS))
    if "text" not in _FIELD.findall(form) or unknown:
        raise ValueError("must hold {text}, and no other fields than {question} and {title}")
    return form


Prompt = Annotated[str, AfterValidator(_prompt)]


class Replaced(Section):
    fillers: FillerKind


class Seq2Seq(Section):
    model: str = Field(min_length=1)
    revision: str | None
    prompt: Prompt
    input_tokens: int = Field(ge=8)
    output_tokens: int = Field(ge=1)
    temperature: float = Field(gt=0)
    top_p: float = Field(gt=0, le=1)


class Endpoint(Section):
    """`key_variable` names the environment variable of the key, never the key; None sends none."""

    url: str = Field(pattern=r"^https?://[^@\s?#]+$")  # no user:password@, which would be written to config files
    model: str = Field(min_length=1)
    key_variable: str | None = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    prompt: Prompt
    temperature: float = Field(ge=0)
    top_p: float = Field(gt=0, le=1)
    max_tokens: int = Field(ge=1)


class Given(Section):
    types: list[str] = Field(min_length=1)


class NearDuplicates(Section):
    """A generator's own section may be None where another one is at work."""

    per_question: int = Field(ge=1)
    candidates: int = Field(ge=1)
    strategy: Strategy
    seed: int = Field(ge=0)
    replaced: Replaced | None
    seq2seq: Seq2Seq | None
    endpoint: Endpoint | None
    given: Given | None

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.candidates < self.per_question:
            raise ValueError(f"candidates ({self.candidates}) must be at least per_question ({self.per_question})")
        return self


class Generation(NearDuplicates):
    """What the stage is given; the stage `configs` puts in the generator and leaves out the sections of the others."""

    generator: Generator
