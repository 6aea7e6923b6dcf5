"""Settings of encode, query_side, retrieve and probe; no heavy imports."""

from typing import Annotated, Literal

from pydantic import Field

from eadpr.runtime.section import OrAuto, Section
from eadpr.supervision.config import Placebo, Strategy
from eadpr.training.optimiser import Optimiser


class Encode(Section):
    """Every setting decides bytes: the passages that share a batch change their last bits. `auto` suits the device."""

    shard_passages: int = Field(ge=1)
    window_passages: OrAuto
    token_budget: OrAuto


class QuerySide(Optimiser):
    """`sets` are the training question sets that are used here; None for all."""

    sets: list[str] | None = Field(min_length=1)
    epochs: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    top_k: int = Field(ge=1)
    dropout: float = Field(ge=0, lt=1)
    attention_dropout: float = Field(ge=0, lt=1)
    validation_questions: int = Field(ge=1)


class Faiss(Section):
    """`search` is a string of faiss.ParameterSpace."""

    search: str
    candidates: int = Field(ge=1)
    train_passages: int = Field(ge=1)
    seed: int = Field(ge=0)


class Retrieve(Section):
    """`index` is exact or a string of faiss.index_factory; `candidates` are ranked by token where that is the unit;
    the sentence that matches is kept of the first `sentences` passages of evaluated questions."""

    depth: int = Field(ge=1)
    candidates: int = Field(ge=1)
    sentences: int = Field(ge=0)
    index: str = Field(min_length=1)
    faiss: Faiss


class Fuse(Section):
    """`weights` are tried on validation questions if `by` is weighted; `k` is used if it is reciprocal."""

    by: Literal["weighted", "reciprocal"]
    weights: list[Annotated[float, Field(ge=0, le=1)]] = Field(min_length=1)
    k: int = Field(ge=0)


class Probe(Section):
    """`also` are further strategies, each measured on its own. `placebos` are compared with the positive and with the
    passage without the answer or the evidence of `strategy`. `annotated` leaves out pairs without gold evidence."""

    annotated: bool
    strategy: Strategy
    also: list[Strategy]
    placebos: list[Placebo]
