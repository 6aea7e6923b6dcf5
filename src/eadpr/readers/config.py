"""Settings of readers; no heavy imports."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from eadpr.runtime.section import Section
from eadpr.training.optimiser import Optimiser

Kind = Literal["extractive", "paths", "fid"]


class Reader(Optimiser):
    """Settings of a reader.

    `model` None means the reader's `init`. `tokens` is the longest input: question and passages with their titles.
    Lessons are drawn from the first `depth` passages, or paths, of a question's ranking; a step reads `passages` of
    them, the right one included. `support` weighs the loss of supporting sentences.
    """

    kind: Kind
    model: Annotated[str, Field(min_length=1)] | None
    revision: str | None
    tokens: int = Field(ge=16)
    question_tokens: int = Field(ge=4)
    lowercase: bool
    epochs: int = Field(ge=1)
    steps: int | None = Field(ge=1)
    batch_size: int = Field(ge=1)
    depth: int = Field(ge=1)
    passages: int = Field(ge=1)
    support: float = Field(ge=0)
    dropout: float = Field(ge=0, lt=1)
    attention_dropout: float = Field(ge=0, lt=1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.tokens < 2 * self.question_tokens + 4:
            raise ValueError(f"tokens ({self.tokens}) must be 4 more than twice question_tokens, or greater")
        if self.kind == "fid" and self.passages > self.depth:
            raise ValueError(f"passages ({self.passages}) must not exceed depth ({self.depth})")
        if self.kind != "fid" and self.passages < 2:
            raise ValueError("passages: an extractive reader chooses among passages, so it needs 2 or more")
        return self

    @property
    def of_paths(self) -> bool:
        return self.kind == "paths"

    @property
    def section(self) -> str:
        """The section of params.yaml with the values of this kind."""
        return "path_reader" if self.of_paths else "reader"


class PathReader(Reader):
    """Settings of readers of paths: the section path_reader."""

    kind: Literal["paths"] = "paths"


class Read(Section):
    """`top_k` are the numbers of passages to answer from, which are put in order. A reader of paths reads `paths` of
    them, and its answers have at most `path_answer_tokens`."""

    top_k: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1), AfterValidator(lambda ks: sorted({*ks}))]
    paths: int = Field(ge=1)
    answer_tokens: int = Field(ge=1)
    path_answer_tokens: int = Field(ge=1)
    output_tokens: int = Field(ge=1)

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics: `em_5`, `f1_5` and so on."""
        return [f"{kind}_{k}" for kind in ("em", "f1") for k in self.top_k]

    def for_reader(self, reader: Reader) -> Self:
        """Return the settings of this reader: a reader of paths reads `paths` for every question."""
        changes = {"top_k": [self.paths], "answer_tokens": self.path_answer_tokens}
        return self.model_copy(update=changes) if reader.of_paths else self
