"""Settings of the stages annotator, evidence and distractors."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field, field_validator

from eadpr.config import Section
from eadpr.training.schedule import Optimiser

Strategy = Literal["pseudo", "gold", "sentence", "window", "answer"]


class Recipe(Optimiser):
    """The T5 that the pipeline builds itself, and how it is trained: continuing passages first, then answering.

    AdamW's other settings are PyTorch's, unless params.yaml names them.
    """

    vocabulary: int = Field(ge=512)
    width: int = Field(ge=8)
    heads: int = Field(ge=2)
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
    model: str = Field(min_length=1)
    revision: str | None
    prompt: str
    lowercase: bool
    build: Recipe

    @field_validator("prompt")
    @classmethod
    def _fields(cls, prompt: str) -> str:
        if prompt.count("{question}") != 1 or prompt.count("{context}") != 1:
            raise ValueError("must hold {question} and {context}, each once")
        return prompt


class EvidenceSettings(Section):
    strategies: list[Strategy] = Field(min_length=1)
    segmenter: Literal["sentence", "clause"]
    window: int = Field(ge=0)
    input_tokens: int = Field(ge=16)

    @field_validator("strategies")
    @classmethod
    def _once(cls, strategies: list[Strategy]) -> list[Strategy]:
        if len(set(strategies)) < len(strategies):
            raise ValueError("names a strategy twice")
        return strategies


class Distractors(Section):
    may_hold_answer: dict[Strategy, bool]
    pivots: list[Strategy]

    @field_validator("may_hold_answer")
    @classmethod
    def _all(cls, allowed: dict[Strategy, bool]) -> dict[Strategy, bool]:
        missing = sorted(set(get_args(Strategy)) - set(allowed))
        if missing:
            raise ValueError(f"must say true or false for {', '.join(missing)} too")
        return allowed

    @field_validator("pivots")
    @classmethod
    def _several(cls, pivots: list[Strategy]) -> list[Strategy]:
        if len(pivots) == 1 or len(set(pivots)) < len(pivots):
            raise ValueError("must name two or more different strategies, the one that removes least first, or none")
        return pivots
