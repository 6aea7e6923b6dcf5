"""params.yaml as two models: its shared sections (`Settings`), and all else (`Layout`), which is a graph: models,
rankings and readers by name, and what each of them is made from (`Of`). `problems` walks it."""

import pkgutil
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, StringConstraints, create_model, model_validator

from eadpr.corpus.sources import Source
from eadpr.readers.config import GOLD
from eadpr.report.config import Report
from eadpr.robustness.config import Generator, Robustness
from eadpr.runtime.section import Section, Sets
from eadpr.settings.names import SECTIONS

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
# The shared sections: what a collection or an arm may override.
Settings = create_model(
    "Settings",
    __base__=Section,
    **{name: (pkgutil.resolve_name(kind), ...) for name, kind in SECTIONS.items()},
    path_reader=(dict[str, Any], ...),  # what readers of kind paths have otherwise than in the section reader
)

# Names of files and folders beside those of arms and rankings.
RESERVED = (
    "bm25", "bases", "denoised", "fused", "evidence", GOLD, "multihop", "near_duplicates", "query_sides",
    "readers", "readings",
)  # fmt: skip
# Kinds of entries, and those whose names each must not take.
APART = {
    "query_sides": ("bases",),
    "active": ("bases", "query_sides"),
    "fused": ("active", "arms", "bases"),
    "multihop": ("active", "arms", "bases", "fused", "query_sides"),
    "denoised": ("active", "arms", "bases", "fused", "multihop"),
}


class Of(NamedTuple):
    """What a field may name: `prefix` and the name of an entry of `kinds`, or one of `also`."""

    kinds: tuple[str, ...]
    also: tuple[str, ...] = ()
    prefix: str = ""


class Edges(Section):
    """Where an arm's inputs come from; these names are edges of the DAG.

    `repeats` names the active arm that this one is, but for `seed`, which takes the place of train.seed.
    """

    negatives: Annotated[Name, Of(("active", "fused", "denoised"), ("bm25",))]
    init: Annotated[Name, Of(("bases", "query_sides", "active"))]
    repeats: Name | None = None
    seed: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.repeats is None) != (self.seed is None):
            raise ValueError("repeats and seed go together: another training of an arm differs from it by its seed")
        return self


class Made(Section):
    """What a named model or ranking is made from; its other keys override `section` (of multihop several)."""

    model_config = ConfigDict(extra="allow")


class BaseOf(Made):
    section: ClassVar = "base"


class Fused(Made):
    section: ClassVar = "fuse"
    first: Annotated[Name, Of(("active",), ("bm25",))]
    second: Annotated[Name, Of(("active",), ("bm25",))]


class QuerySideOf(Made):
    section: ClassVar = "query_side"
    of: Annotated[Name, Of(("active",))]


class ReaderOf(Made):
    """`init` is the folder of the collection that it starts from."""

    section: ClassVar = "reader"
    ranking: Annotated[Name, Of(("active", "fused", "multihop"), ("bm25",))]
    init: Annotated[str, Of(("bases", "query_sides", "active", "multihop"), ("annotator",), "models/")]


class MultihopOf(Made):
    """`of` names the arm whose examples and settings train, `init` the model to start from."""

    of: Annotated[Name, Of(("active",))]
    init: Annotated[Name, Of(("bases", "active", "multihop"))]


class DenoisedOf(Made):
    """`readers` score the questions of half 0 and of half 1."""

    section: ClassVar = "denoise"
    of: Annotated[Name, Of(("active",), ("bm25",))]
    readers: Annotated[list[Name], Of(("readers",)), Field(min_length=2, max_length=2)]


class Reading(Section):
    """Which readers read from which rankings; none by default. `gold` is the axis of the stage that makes the ranking
    of this name: it holds the name where `rankings` does."""

    readers: Annotated[list[Name], Of(("readers",))]
    rankings: Annotated[list[Name], Of(("active", "fused", "multihop"), ("bm25", GOLD))]
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
    """Which arms are measured against the near-duplicates of which generators; none by default. `bm25` is the axis of
    the stage that measures BM25, which has no model: it holds the name where that is to be done."""

    generators: list[Generator]
    arms: Annotated[list[Name], Of(("active",))]
    bm25: list[Literal["bm25"]]

    @model_validator(mode="after")
    def _together(self) -> Self:
        _check_lists(generators=self.generators, arms=self.arms)
        if self.bm25 not in ([], ["bm25"]) or (self.bm25 and not self.arms):
            raise ValueError(f"bm25 must be [bm25], where arms are named too, or [] (found {self.bm25})")
        return self

    @property
    def rows(self) -> list[str]:
        return [*self.bm25, *self.arms]


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
    bases: dict[Name, BaseOf]
    query_sides: dict[Name, QuerySideOf]
    multihop: dict[Name, MultihopOf]
    denoised: dict[Name, DenoisedOf]
    robustness: Measured
    readers: dict[Name, ReaderOf]
    reading: Reading
    collections: dict[Name, Collection]
    arms: dict[Name, dict[str, Any]]


COMPARED = Of(("arms", "fused", "multihop"), ("bm25",))  # what the report may name


def problems(layout: Layout, report: Report) -> Iterator[str]:
    """Names that are taken twice or name nothing, and what is made from itself: the key, what was found there and what
    there is."""
    yield from _names(layout)
    yield from _repeats(layout)
    graph: dict[str, list[str]] = {}
    for place, field, value, of in _edges(layout, report):
        name = value.removeprefix(of.prefix)
        kinds = [kind for kind in of.kinds if name in getattr(layout, kind) and value.startswith(of.prefix)]
        if not kinds and value not in of.also:
            idle = "; it is under arms, but not active" if "active" in of.kinds and name in layout.arms else ""
            yield f"{place}.{field}: {value!r} is not one of {_known(layout, of)}{idle}"
        graph.setdefault(place, []).extend(f"{kind}.{name}" for kind in kinds)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        first, *_ = cycle = error.args[1]
        yield (
            f"{first}: is made from itself ({' -> '.join(cycle)}); name another ranking, reader or model in one of them"
        )


def _edges(layout: Layout, report: Report) -> Iterator[tuple[str, str, str, Of]]:
    """Place of an entry in params.yaml, field, each name that stands there, and what it may name."""
    for kind in Layout.model_fields:
        found = getattr(layout, kind)
        entries = (
            {f"{kind}.{name}": entry for name, entry in found.items()} if isinstance(found, dict) else {kind: found}
        )
        for place, entry in entries.items():
            for field, of in _named(entry):
                names = getattr(entry, field)
                yield from ((place, field, name, of) for name in ([names] if isinstance(names, str) else names))
    for field, names in (("baseline", [report.baseline]), ("compare", [*report.compare, *report.compare.values()])):
        yield from (("report", field, name, COMPARED) for name in names)


def _named(entry: object) -> list[tuple[str, Of]]:
    """The fields of an entry that name others."""
    fields = type(entry).model_fields if isinstance(entry, Section) else {}
    return [(field, of) for field, info in fields.items() for of in info.metadata if isinstance(of, Of)]


def _names(layout: Layout) -> Iterator[str]:
    if not layout.active:
        yield "active: no arm is active; add one, e.g. dpr: {negatives: bm25, init: base}"
    for kind, others in APART.items():
        for name in getattr(layout, kind):
            if name in RESERVED and kind != "query_sides":
                yield f"{kind}.{name}: this name is reserved; rename it"
            for other in others:
                if name in getattr(layout, other):
                    yield f"{kind}.{name}: {other} has this name too; rename one of them"


def _repeats(layout: Layout) -> Iterator[str]:
    for arm, edges in layout.active.items():
        if edges.repeats is None:
            if arm not in layout.arms:
                yield f"active.{arm}: no such arm under arms ({', '.join(layout.arms)})"
            continue
        repeated = layout.active.get(edges.repeats)
        if repeated is None or repeated.repeats is not None:
            yield f"active.{arm}.repeats: {edges.repeats!r} is not an active arm that repeats no other"
        if arm in layout.arms:
            yield f"active.{arm}: has settings of its own under arms, so it cannot repeat {edges.repeats}; rename it"


def _known(layout: Layout, of: Of) -> str:
    named = [f"{kind} ({', '.join(of.prefix + name for name in getattr(layout, kind)) or 'none'})" for kind in of.kinds]
    return ", ".join([*of.also, *named])


def unknown_metrics(settings: Settings, of: str = "") -> Iterator[str]:
    """What the report names and `evaluate` does not measure: the key, what was found there and what to do."""
    known = settings.evaluate.metrics
    report = settings.report
    shown = {"columns": report.columns, "differences": report.differences}
    for key, metrics in (shown | {f"by.{kind}": metrics for kind, metrics in report.by.items()}).items():
        for metric in metrics:
            if metric not in known:
                yield (
                    f"report.{key}{of}: {metric!r} is not a metric of `evaluate`; known are {', '.join(known)}; take"
                    " one of them, or add its cut-off to the section evaluate"
                )
