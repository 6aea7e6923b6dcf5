"""Settings of readers; no heavy imports."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, RootModel, model_validator

from eadpr.config import Section
from eadpr.training.schedule import Optimiser

Kind = Literal["extractive", "fid"]
GOLD = "gold"  # the ranking that holds the positives which the source gave


class NegativesPerQuestion(Section):
    """How many of a question's passages without an answer are kept: so many per positive, within bounds."""

    per_positive: int = Field(ge=0)
    least: int = Field(ge=0)
    most: int = Field(ge=0)

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"least ({self.least}) must not exceed most ({self.most})")
        return self

    def count(self, positives: int) -> int:
        return min(max(self.per_positive * positives, self.least), self.most)


class Taught(Optimiser):
    """What every kind of reader has. `model` None: what the reader's `init` names."""

    model: Annotated[str, Field(min_length=1)] | None
    revision: str | None
    question_tokens: int = Field(ge=4)
    epochs: int = Field(ge=1)
    steps: int | None = Field(ge=0)
    batch_size: int = Field(ge=1)
    dropout: float = Field(ge=0, lt=1)
    attention_dropout: float = Field(ge=0, lt=1)


class Reader(Taught):
    """A reader of passages. `tokens` is the longest input: question, title and text. `half`: of the training questions,
    the one learnt from (`Fold`)."""

    section: ClassVar[str] = "reader"
    tokens_key: ClassVar[str] = "tokens"
    kind: Kind
    tokens: int = Field(ge=16)
    lowercase: bool
    depth: int = Field(ge=1)
    half: Literal[0, 1] | None
    passages: int = Field(ge=1)
    positives: int = Field(ge=1)
    negatives: NegativesPerQuestion
    answers: int = Field(ge=1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if 2 * self.question_tokens + 3 >= self.tokens:
            raise ValueError(
                f"tokens ({self.tokens}) must leave room for a text after a question and a title of question_tokens"
                f" ({self.question_tokens}) each"
            )
        if self.kind == "fid" and self.passages > self.depth:
            raise ValueError(f"passages ({self.passages}) must not exceed depth ({self.depth})")
        if self.kind == "extractive" and self.passages < 2:
            raise ValueError("passages: an extractive reader chooses among passages, so it needs 2 or more")
        return self

    @property
    def title_tokens(self) -> int:
        return self.question_tokens


class PathLearning(Taught):
    """The section `path_reader`: a reader of paths, an extractive one that also tells the kind of answer and the
    supporting sentences. `paths`: the first of a question's that others than the right one are drawn from; `negatives`
    are these others, per question and step; `support` weighs the loss of the supporting sentences."""

    section: ClassVar[str] = "path_reader"
    tokens_key: ClassVar[str] = "input_tokens"
    half: ClassVar[None] = None
    answers: ClassVar[None] = None
    kind: Literal["paths"] = "paths"
    input_tokens: int = Field(ge=16)
    answer_tokens: int = Field(ge=1)
    paths: int = Field(ge=1)
    negatives: int = Field(ge=1)
    support: float = Field(ge=0)

    @model_validator(mode="after")
    def _room(self) -> Self:
        if self.question_tokens + 8 > self.input_tokens:
            raise ValueError(
                f"question_tokens ({self.question_tokens}) leaves no room for passages in input_tokens"
                f" ({self.input_tokens}); raise the latter by what a path needs"
            )
        return self

    @property
    def tokens(self) -> int:
        return self.input_tokens

    @property
    def title_tokens(self) -> int:
        """As long as the input: titles are cut with the texts behind them."""
        return self.input_tokens

    @property
    def depth(self) -> int:
        return self.paths

    @property
    def passages(self) -> int:
        """Paths per question and step."""
        return 1 + self.negatives


AnyReader = Annotated[Reader | PathLearning, Field(discriminator="kind")]


class Reads(RootModel[AnyReader]):
    """The settings of a reader of any kind, as `reader.json` beside its model holds them."""


class Read(Section):
    """`top_k`: each is read from so many passages of a ranking, in rising order. `paths`: how many paths a reader of
    these reads. `questions`: of each question set at most so many are read, None: all; `seed` draws them."""

    top_k: list[Annotated[int, Field(ge=1)]] = Field(min_length=1)
    paths: int = Field(ge=1)
    questions: int | None = Field(ge=1)
    seed: int = Field(ge=0)
    answer_tokens: int = Field(ge=1)
    output_tokens: int = Field(ge=1)

    @model_validator(mode="after")
    def _sorted(self) -> Self:
        if self.top_k != sorted(set(self.top_k)):
            raise ValueError(f"top_k must rise without repeats, found {self.top_k}")
        return self

    @property
    def metrics(self) -> list[str]:
        """Names of what is measured: `em_5`, `f1_5` and so on."""
        return [f"{kind}_{k}" for kind in ("em", "f1") for k in self.top_k]

    def of(self, kind: str) -> Read:
        """How a reader of this kind reads: of paths the first `paths` alone, for every question."""
        return self.model_copy(update={"top_k": [self.paths], "questions": None}) if kind == "paths" else self
