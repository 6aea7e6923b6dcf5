"""params.yaml as one model: what may stand in it, each section by its owner."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from eadpr.atlas.generate import Atlas
from eadpr.config import Section, Sets
from eadpr.corpus.entities import Facts, Paq
from eadpr.corpus.prepare import Prepare
from eadpr.corpus.sources import Source
from eadpr.evaluation.config import Evaluate, Report, Robustness
from eadpr.machine import Machine
from eadpr.multihop.config import Beam, TwoHop
from eadpr.near_duplicates.config import Generator, NearDuplicates
from eadpr.reading.config import GOLD, Read, Reader
from eadpr.search.config import Encode, Fuse, Probe, QuerySide, Retrieve
from eadpr.supervision.bm25 import BM25
from eadpr.supervision.config import Annotator, Distractors, EvidenceSettings
from eadpr.supervision.denoise import Denoise
from eadpr.supervision.examples import Examples
from eadpr.supervision.negatives import Negatives
from eadpr.supervision.positives import Positives
from eadpr.training.config import Base, EncoderSettings, Loss, Train

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$")]


class Settings(Section):
    """The shared sections: what a collection or an arm may override."""

    machine: Machine
    atlas: Atlas
    prepare: Prepare
    facts: Facts
    paq: Paq
    bm25: BM25
    positives: Positives
    base: Base
    encoder: EncoderSettings
    annotator: Annotator
    evidence: EvidenceSettings
    distractors: Distractors
    near_duplicates: NearDuplicates
    denoise: Denoise
    negatives: Negatives
    examples: Examples
    loss: Loss
    train: Train
    encode: Encode
    query_side: QuerySide
    retrieve: Retrieve
    two_hop: TwoHop
    beam: Beam
    fuse: Fuse
    probe: Probe
    reader: Reader
    path_reader: dict[str, Any]  # what readers of kind paths have otherwise than in the section reader
    read: Read
    evaluate: Evaluate
    report: Report


class Edges(Section):
    """Where an arm's inputs come from; these names are edges of the DAG.

    `repeats` names the active arm that this one is, but for `seed`, which takes the place of train.seed.
    """

    negatives: Name
    init: Name
    repeats: Name | None = None
    seed: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.repeats is None) != (self.seed is None):
            raise ValueError("repeats and seed go together: another training of an arm differs from it by its seed")
        return self


class Made(Section):
    """What a named model or ranking is made from; its other keys override a section (or several, for multihop)."""

    model_config = ConfigDict(extra="allow")


class Fused(Made):
    first: Name
    second: Name


class QuerySideOf(Made):
    of: Name


class ReaderOf(Made):
    """`init` is the folder of the collection that it starts from."""

    ranking: Name
    init: Annotated[str, StringConstraints(pattern=r"^(annotator|models/[a-z0-9][a-z0-9_-]*)$")]


class MultihopOf(Made):
    """`of` names the arm whose examples and settings train, `init` the model to start from."""

    of: Name
    init: Name


class DenoisedOf(Made):
    """`readers` score the questions of half 0 and of half 1."""

    of: Name
    readers: list[Name] = Field(min_length=2, max_length=2)


class Reading(Section):
    """Which readers read from which rankings; none by default. `gold` is the axis of the stage that makes the ranking
    of this name: it holds the name where `rankings` does."""

    readers: list[Name]
    rankings: list[Name]
    gold: list[Literal["gold"]]

    @model_validator(mode="after")
    def _together(self) -> Self:
        _check_lists(readers=self.readers, rankings=self.rankings)
        if self.gold != [name for name in self.rankings if name == GOLD]:
            raise ValueError(
                f"gold must be [{GOLD}] where rankings names {GOLD}, else [] (rankings: {self.rankings}, gold:"
                f" {self.gold})"
            )
        return self


class Measured(Robustness):
    """Which arms are measured against the near-duplicates of which generators; none by default."""

    generators: list[Generator]
    arms: list[Name]

    @model_validator(mode="after")
    def _together(self) -> Self:
        _check_lists(generators=self.generators, arms=self.arms)
        return self


def _check_lists(**lists: list[str]) -> None:
    """The two axes of a matrix of stages."""
    for name, found in lists.items():
        if len(set(found)) < len(found):
            raise ValueError(f"{name} names one twice, found {found}")
    if len({bool(found) for found in lists.values()}) > 1:
        raise ValueError(f"{' and '.join(lists)} go together: name at least one of each, or none of both")


class Collection(Section):
    source: Source
    sets: Sets
    settings: dict[str, Any]


class Layout(Section):
    """params.yaml less the shared sections."""

    collection: Name
    active: dict[Name, Edges]
    fused: dict[Name, Fused]
    bases: dict[Name, dict[str, Any]]
    query_sides: dict[Name, QuerySideOf]
    multihop: dict[Name, MultihopOf]
    denoised: dict[Name, DenoisedOf]
    robustness: Measured
    readers: dict[Name, ReaderOf]
    reading: Reading
    collections: dict[Name, Collection]
    arms: dict[Name, dict[str, Any]]
