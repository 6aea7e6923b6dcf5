"""Settings of base, train and the encoders; no heavy imports."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from eadpr.runtime.files import read_json
from eadpr.runtime.section import DividesWidth, OrAuto, Section, checked
from eadpr.training.optimiser import Optimiser

SETTINGS = "encoder.json"  # of a model folder


class Base(Section):
    """The encoders that every training starts from. The sizes and the seed are used by `scratch` only."""

    model: str = Field(min_length=1)
    revision: str | None
    layers: int = Field(ge=1)
    hidden: int = Field(ge=1)
    heads: Annotated[int, Field(ge=1), DividesWidth]
    intermediate: int = Field(ge=1)
    vocabulary: int = Field(ge=64)
    lowercase: bool
    tokenizer_passages: int = Field(ge=1)
    seed: int = Field(ge=0)


class Prompts(Section):
    """Texts put before every question and every passage."""

    question: str
    passage: str


NO_PROMPTS = Prompts(question="", passage="")
Tokens = Annotated[int, Field(ge=8)]
Pooling = Literal["cls", "mean", "last"]


class EncoderSettings(Section):
    """How texts become vectors, as params.yaml asks for it; `auto` leaves a setting as the model has it."""

    pooling: Literal["auto", Pooling]
    similarity: Literal["auto", "dot", "cosine"]
    prompts: Literal["auto"] | Prompts
    title: Literal["auto", "pair", "joined", "none"]
    shared: bool
    unit: Literal["passage", "sentence", "token"]
    question_tokens: Literal["auto"] | Tokens
    passage_tokens: Literal["auto"] | Tokens

    def resolve(self, model: "ResolvedSettings") -> "ResolvedSettings":
        """Return the settings of a model with those that are asked for here in their place."""
        overrides = {name: getattr(self, name) for name in EncoderSettings.model_fields}
        overrides = {name: value for name, value in overrides.items() if value != "auto"}
        if overrides.get("similarity", model.similarity) != model.similarity:
            overrides["scale"] = None  # the model's was of the other similarity
        return model.model_copy(update=overrides)


# All as the model has it; `shared` says nothing of one encoder.
AUTO = EncoderSettings(
    pooling="auto", similarity="auto", prompts="auto", title="auto", shared=True, unit="passage",
    question_tokens="auto", passage_tokens="auto",
)  # fmt: skip


class ResolvedSettings(EncoderSettings):
    """The settings of a model, without `auto`: its `encoder.json`, which leaves the defaults here out.

    `scale` multiplies the scores in a loss; None is the usual one of the similarity, 1 of dot and 20 of cosine, as in
    sentence-transformers. With `lowercase` texts are lower-cased before they are tokenised.
    """

    pooling: Pooling
    similarity: Literal["dot", "cosine"] = "dot"
    prompts: Prompts = NO_PROMPTS
    title: Literal["pair", "joined", "none"] = "pair"
    unit: Literal["passage", "sentence", "token"] = "passage"
    question_tokens: Tokens
    passage_tokens: Tokens
    lowercase: bool = False
    scale: Annotated[float, Field(gt=0)] | None = None

    @property
    def loss_scale(self) -> float:
        return self.scale or (20.0 if self.similarity == "cosine" or self.unit != "passage" else 1.0)


def settings_of(folder: Path) -> ResolvedSettings:
    """Read the settings that a model folder was saved with."""
    return checked(ResolvedSettings, read_json(folder / SETTINGS), folder / SETTINGS)  # type: ignore[return-value]


# L_HN compares a distractor with the positive (none), its placebo, or both.
Balance = Literal["none", "placebo", "both"]
HardNegatives = Literal["all", "others"]
OTHERS = "others"  # in `Train.upsample`: the questions of all sets without an entry


class Loss(Section):
    """`lambda_` is written `lambda` in params.yaml (a reserved word here)."""

    model_config = ConfigDict(serialize_by_alias=True)

    form: Literal["paper", "reference"]
    scale: Annotated[float, Field(gt=0)] | Literal["auto"]
    lambda_: float = Field(ge=0, alias="lambda")
    dpr: float = Field(ge=0)
    tau1: float = Field(ge=0)
    tau2: float = Field(ge=0)
    balance: Balance
    pp_negatives: HardNegatives
    placebo: float = Field(ge=0)
    rest: float = Field(ge=0)
    anchor: Literal["question", "passage"]
    stop_gradient: Literal["none", "question", "passage", "symmetric"]
    mask_false_negatives: bool

    @model_validator(mode="after")
    def _anchored(self) -> Self:
        settings = (self.anchor, self.stop_gradient, self.dpr, self.pp_negatives)
        if self.form == "reference" and settings != ("question", "none", 1.0, "all"):
            raise ValueError("form: reference needs anchor: question, stop_gradient: none, dpr: 1.0, pp_negatives: all")
        ours = self.balance != "none" or self.placebo or self.rest
        if ours and (self.form == "reference" or self.anchor == "passage"):
            raise ValueError("balance, placebo and rest need form: paper and anchor: question; else: none, 0 and 0")
        if not (self.dpr or self.tau1 or self.tau2 or self.placebo or self.rest):
            raise ValueError("dpr, tau1, tau2, placebo and rest are all 0, so there is nothing to learn; raise one")
        if self.anchor == "passage" and (self.lambda_ or self.stop_gradient == "symmetric"):
            raise ValueError("anchor: passage goes with lambda 0, and without symmetric, which takes both anchors")
        return self

    @property
    def needs_distractors(self) -> bool:
        """True if any term has a distractor in it; `dpr` (all weights 0) trains without them."""
        return self.form == "reference" or bool((self.dpr and self.lambda_) or self.tau1 or self.tau2)

    @property
    def balances(self) -> Balance:
        """The `balance` of L_HN, `none` if L_HN has no weight."""
        return self.balance if self.tau1 else "none"

    @property
    def needs_placebos(self) -> bool:
        return self.balances != "none" or bool(self.placebo)


class Train(Optimiser):
    """Where params.yaml says `auto`, the values are known here (RECIPES of `eadpr.settings.resolve`)."""

    epochs: int = Field(ge=1)
    steps: int | None = Field(ge=0, le=10**9)
    step_factor: float = Field(gt=0)
    batch_size: int = Field(ge=1, le=2**20)
    processes: OrAuto
    gradient_cache: int | None = Field(ge=1)
    hard_negatives: int = Field(ge=0)
    freeze: Literal["none", "question", "passage"]
    layers: int | None = Field(ge=1)
    shuffle_questions: bool
    shuffle_passages: bool
    upsample: dict[str, Annotated[int, Field(ge=0)]]
    dropout: float = Field(ge=0, lt=1)
    attention_dropout: float = Field(ge=0, lt=1)
    keep: Literal["last", "best"]
    validate_every: int = Field(ge=0)
    validation_questions: int = Field(ge=0)
    validation_hard_negatives: int = Field(ge=0)
    report_to: list[Literal["tensorboard", "wandb", "mlflow", "dvclive"]] = Field([], exclude=True)

    def total_steps(self, questions: int, per_epoch: int) -> int:
        """Return the optimiser steps: `steps`, or `epochs` passes over an epoch of `per_epoch` questions, times
        `step_factor`, rounded, but 0 only of 0. No question is twice in a batch unless the set is small."""
        batches = per_epoch // min(self.batch_size, questions) if questions else 1
        steps = self.steps if self.steps is not None else max(1, batches * self.epochs)
        return max(round(steps * self.step_factor), min(steps, 1))
