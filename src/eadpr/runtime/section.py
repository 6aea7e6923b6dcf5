"""The base of every component's settings: strict, frozen, unknown keys refused. Values come from params.yaml by way of
the stage `configs`, which writes one JSON file of sections per stage (and per arm)."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from eadpr.runtime import files

OrAuto = Annotated[int, Field(ge=1)] | Literal["auto"]  # auto: what suits the device


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Sets(Section):
    """Which question sets (`set/split`) a collection trains on, is evaluated on, trains its annotator on, and validates
    with; where no set is for validation, a share of the training questions is."""

    train: list[str]
    evaluate: list[str]
    annotator: list[str]
    validation: list[str] = []

    @property
    def learnt(self) -> list[str]:
        """Those with questions to train on or to validate with."""
        return [*self.train, *self.validation]


def read(path: Path, **sections: type[Section]) -> tuple:
    """The named sections of a stage's config file, in the order asked for; None where the collection needs none."""
    found = files.read_json(path)
    if not isinstance(found, dict) or set(found) != set(sections):
        raise ValueError(f"{path} holds {sorted(found)}, expected {sorted(sections)}; run `dvc repro configs`")
    return tuple(
        None if found[name] is None else checked(kind, found[name], path, name) for name, kind in sections.items()
    )


def checked(kind: type[Section], value: object, path: Path, *at: str) -> Section:
    """Of a file that the pipeline wrote, at the keys `at`; ValueError names it and the first thing that is wrong."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        wrong = error.errors()[0]
        where = ".".join(map(str, [*at, *wrong["loc"]]))
        raise ValueError(f"{path}: {where}: {wrong['msg']}; run `dvc repro` to make it anew") from error
