"""Settings of the stages annotator, evidence and distractors."""

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from eadpr.runtime.section import DividesWidth, Once, Section
from eadpr.training.optimiser import Optimiser

Strategy = Literal["pseudo", "gold", "sentence", "window", "answer"]
Placebo = Literal["placebo", "placebo_second", "placebo_words", "placebo_inside"]
PLACEBOS = get_args(Placebo)
Form = Literal["cut", "filled"]


class Recipe(Optimiser):
    """The T5 that the pipeline builds itself, and how it is trained: continuing passages first, then answering."""

    vocabulary: int = Field(ge=512)
    width: int = Field(ge=8)
    heads: Annotated[int, Field(ge=2), DividesWidth]
    layers: int = Field(ge=1)
    feed_forward: int = Field(ge=8)
    dropout: float = Field(ge=0, lt=1)
    continuation_steps: int = Field(ge=0)
    passage_tokens: int = Field(ge=16)
    snippet_tokens: int = Field(ge=3)
    continuation_tokens: int = Field(ge=1)
    answering_steps: int = Field(ge=0)
    input_tokens: int = Field(ge=16)
    batch: int = Field(ge=1)
    adam_beta1: float = Field(default=0.9, ge=0, lt=1)
    adam_beta2: float = Field(default=0.999, ge=0, lt=1)
    adam_eps: float = Field(default=1e-8, gt=0)


class Annotator(Section):
    """`by` says which span `relevance` chooses: `removal` that without which the passage is least relevant, `match`
    that which is itself most relevant."""

    kind: Literal["answer", "relevance", "endpoint"]
    by: Literal["removal", "match"]
    model: str = Field(min_length=1)
    revision: str | None
    prompt: str
    lowercase: bool
    build: Recipe

    @field_validator("prompt")
    @classmethod
    def _check_fields(cls, prompt: str) -> str:
        if prompt.count("{question}") != 1 or prompt.count("{context}") != 1:
            raise ValueError("must hold {question} and {context}, each once")
        return prompt


class EvidenceSettings(Section):
    """`placebo_of` is the strategy that placebos are compared with; they do not touch its evidence."""

    positive: Literal["first", "each"]
    strategies: Annotated[list[Strategy | Placebo], Field(min_length=1), Once]
    placebo_of: Strategy
    window: int = Field(ge=0)
    input_tokens: int = Field(ge=16)

    @model_validator(mode="after")
    def _check_placebo_of(self) -> Self:
        placebos = [strategy for strategy in self.strategies if strategy in PLACEBOS]
        if placebos and self.placebo_of not in self.strategies:
            raise ValueError(
                f"placebo_of: {self.placebo_of!r} is not in strategies, but the placebos there ({', '.join(placebos)})"
                " need its evidence; name one of strategies, or take the placebos out"
            )
        return self


class Distractors(Section):
    """Each strategy's evidence is taken out in each of the `forms`; `seed` draws fillers."""

    forms: Annotated[list[Form], Once]
    seed: int = Field(ge=0)

    @field_validator("forms")
    @classmethod
    def _require_cut(cls, forms: list[Form]) -> list[Form]:
        if "cut" not in forms:
            raise ValueError("must hold cut, which answer awareness is measured with")
        return forms
