"""The base class of every component's settings: strict, frozen, unknown keys refused.

The stage `configs` reads params.yaml and writes a JSON file of sections for each stage (and arm).
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo

from eadpr.runtime import files

OrAuto = Annotated[int, Field(ge=1)] | Literal["auto"]  # auto: chosen for the device


def _check_once(values: list) -> list:
    if len(set(values)) < len(values):
        raise ValueError("names one twice")
    return values


def _check_heads(heads: int, info: ValidationInfo) -> int:
    width = next((info.data[name] for name in ("hidden", "width") if name in info.data), 0)
    if width % heads:
        raise ValueError(f"{heads} heads do not divide the {width} numbers of a token")
    return heads


Once = AfterValidator(_check_once)  # of a list
DividesWidth = AfterValidator(_check_heads)  # of heads of attention, behind the field hidden or width


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Sets(Section):
    """The question sets (`set/split`) of a collection; without one for validation, a share of training serves."""

    train: list[str]
    evaluate: list[str]
    annotator: list[str]
    validation: list[str] = []

    @property
    def learnt(self) -> list[str]:
        return [*self.train, *self.validation]


def read(path: Path, **sections: type[Section]) -> tuple:
    """Read the named sections of a stage's config file, in order; None for a section that the collection lacks."""
    values = files.read_json(path)
    if not isinstance(values, dict) or set(values) != set(sections):
        raise ValueError(f"{path} holds {sorted(values)}, expected {sorted(sections)}; run `dvc repro configs`")
    return tuple(
        None if values[name] is None else checked(kind, values[name], path, name) for name, kind in sections.items()
    )


def checked(kind: type[Section], value: object, path: Path, *keys: str) -> Section:
    """Validate a value of a file that the pipeline wrote, at `keys`; ValueError names the first wrong key and why."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        wrong = error.errors()[0]
        where = ".".join(map(str, [*keys, *wrong["loc"]]))
        raise ValueError(f"{path}: {where}: {wrong['msg']}; run `dvc repro` to rebuild it") from error
