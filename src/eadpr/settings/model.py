"""params.yaml as two models: the shared sections (`Settings`), and the rest (`Layout`).

The rest is a graph: models, rankings and readers by name, and the inputs of each (`Of`). `check_graph` walks it.
"""

import pkgutil
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import ConfigDict, Field, StringConstraints, create_model, model_validator

from eadpr.corpus.sources import Source
from eadpr.evaluation.config import Evaluate
from eadpr.report.config import Report
from eadpr.robustness.config import Generator, Robustness
from eadpr.runtime.section import Once, Section, Sets
from eadpr.settings.names import SECTIONS
from eadpr.settings.yaml import SettingError

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
# The shared sections, which a collection or an arm may override.
SECTION_FIELDS = {name: (pkgutil.resolve_name(kind), ...) for name, kind in SECTIONS.items()}
Settings = create_model("Settings", __base__=Section, **SECTION_FIELDS)

# Names of files and folders that lie in the same folders as those of arms and rankings.
RESERVED = ("bm25", "bases", "fused", "evidence", "multihop", "near_duplicates", "query_sides", "readers", "readings")
# Kinds of entries that leave files in the same folders, so that no two have the same name.
APART = ("bases", "active", "arms", "query_sides", "fused", "multihop")


class Of(NamedTuple):
    """The names that a field may hold: `prefix` and an entry of `kinds`, or one of `also`."""

    kinds: tuple[str, ...]
    also: tuple[str, ...] = ()
    prefix: str = ""


class Edges(Section):
    """The inputs of an arm; these names are edges of the DAG.

    `repeats` names the active arm that this arm trains once more, with `seed` as train.seed.
    """

    negatives: Annotated[Name, Of(("active", "fused"), ("bm25",))]
    init: Annotated[Name, Of(("bases", "query_sides", "active"))]
    repeats: Name | None = None
    seed: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _check_pair(self) -> Self:
        if (self.repeats is None) != (self.seed is None):
            raise ValueError("repeats and seed go together: another training of an arm differs from it by its seed")
        return self


class NamedEntry(Section):
    """The inputs of a named model or ranking; its other keys override `section` (of multihop several sections)."""

    model_config = ConfigDict(extra="allow")


class BaseOf(NamedEntry):
    section: ClassVar = "base"


class Fused(NamedEntry):
    section: ClassVar = "fuse"
    first: Annotated[Name, Of(("active",), ("bm25",))]
    second: Annotated[Name, Of(("active",), ("bm25",))]


class QuerySideOf(NamedEntry):
    section: ClassVar = "query_side"
    of: Annotated[Name, Of(("active",))]


class ReaderOf(NamedEntry):
    """The reader starts from the folder `init` of the collection."""

    section: ClassVar = "reader"
    ranking: Annotated[Name, Of(("active", "fused", "multihop"), ("bm25",))]
    init: Annotated[str, Of(("bases", "query_sides", "active", "multihop"), ("annotator",), "models/")]


class MultihopOf(NamedEntry):
    """The arm `of` gives examples and settings; the training starts from `init`."""

    of: Annotated[Name, Of(("active",))]
    init: Annotated[Name, Of(("bases", "active", "multihop"))]


class Matrix(Section):
    """A stage for each pair of two lists, the class's own fields; none by default."""

    @model_validator(mode="after")
    def _check_axes(self) -> Self:
        axes = type(self).__annotations__
        if len({bool(getattr(self, name)) for name in axes}) > 1:
            raise ValueError(f"{' and '.join(axes)} go together: name at least one of each, or none of both")
        return self


class Reading(Matrix):
    """The readers, and the rankings that each of them reads."""

    readers: Annotated[list[Name], Once, Of(("readers",))]
    rankings: Annotated[list[Name], Once, Of(("active", "fused", "multihop"), ("bm25",))]


class Measured(Robustness, Matrix):
    """The arms that are measured against the near-duplicates of each generator."""

    generators: Annotated[list[Generator], Once]
    arms: Annotated[list[Name], Once, Of(("active",))]


class Collection(Section):
    source: Source
    sets: Sets
    settings: dict[str, Any]


class Layout(Section):
    """All of params.yaml but the shared sections."""

    collection: Name
    active: dict[Name, Edges]
    fused: dict[Name, Fused]
    bases: dict[Name, BaseOf]
    query_sides: dict[Name, QuerySideOf]
    multihop: dict[Name, MultihopOf]
    robustness: Measured
    readers: dict[Name, ReaderOf]
    reading: Reading
    collections: dict[Name, Collection]
    arms: dict[Name, dict[str, Any]]


COMPARED = Of(("arms", "fused", "multihop"), ("bm25",))  # names that the report may hold


def check_graph(layout: Layout, report: Report) -> None:
    """Refuse names that are used twice or that name nothing, and entries that are their own inputs."""
    _check_names(layout)
    _check_repeats(layout)
    graph: dict[str, list[str]] = {}
    for place, field, value, rule in _edges(layout, report):
        name = value.removeprefix(rule.prefix)
        kinds = [kind for kind in rule.kinds if name in getattr(layout, kind) and value.startswith(rule.prefix)]
        if not kinds and value not in rule.also:
            idle = "; it is under arms, but not active" if "active" in rule.kinds and name in layout.arms else ""
            listed = {kind: ", ".join(rule.prefix + key for key in getattr(layout, kind)) for kind in rule.kinds}
            choices = [*rule.also, *(f"{kind} ({names or 'none'})" for kind, names in listed.items())]
            raise SettingError(f"{place}.{field}", f"{value!r} is not one of {', '.join(choices)}{idle}")
        graph.setdefault(place, []).extend(f"{kind}.{name}" for kind in kinds)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        reason = f"is its own input ({cycle}); name another ranking, reader or model in one of them"
        raise SettingError(error.args[1][0], reason) from None


def _edges(layout: Layout, report: Report) -> Iterator[tuple[str, str, str, Of]]:
    """Yield each name in an entry: the entry's place in params.yaml, the field, the name, and the names allowed."""
    for kind, value in layout:
        entries = {kind: value}
        if isinstance(value, dict):
            entries = {f"{kind}.{name}": entry for name, entry in value.items()}
        for place, entry in entries.items():
            for field, info in (type(entry).model_fields if isinstance(entry, Section) else {}).items():
                for rule in info.metadata:
                    if isinstance(rule, Of):
                        names = getattr(entry, field)
                        for name in [names] if isinstance(names, str) else names:
                            yield place, field, name, rule
    yield "report", "baseline", report.baseline, COMPARED
    for name in report.compare:
        yield from (("report", "compare", row, COMPARED) for row in [name, *report.references(name)])


def _check_names(layout: Layout) -> None:
    if not layout.active:
        raise SettingError("active", "no arm is active; add one, e.g. dpr: {negatives: bm25, init: base}")
    kinds: dict[str, str] = {}
    for kind in APART:
        for name in getattr(layout, kind):
            first_kind = kinds.setdefault(name, kind)
            if name in RESERVED:
                raise SettingError(f"{kind}.{name}", "this name is reserved; rename it")
            if first_kind != kind and (first_kind, kind) != ("active", "arms"):
                raise SettingError(f"{kind}.{name}", f"{first_kind} has this name too; rename one of them")


def _check_repeats(layout: Layout) -> None:
    trained_once = [arm for arm, edges in layout.active.items() if edges.repeats is None]
    for arm, edges in layout.active.items():
        if edges.repeats is None and arm not in layout.arms:
            raise SettingError(f"active.{arm}", f"no such arm under arms ({', '.join(layout.arms)})")
        if edges.repeats not in (None, *trained_once):
            raise SettingError(f"active.{arm}.repeats", f"{edges.repeats!r} is not an active arm that repeats no other")
        if edges.repeats is not None and arm in layout.arms:
            raise SettingError(f"active.{arm}", f"arms.{arm} has settings, so it repeats no other; rename it")


def check_metrics(evaluate: Evaluate, report: Report, prefix: str = "") -> None:
    """Refuse metrics in the report that `evaluate` does not measure."""
    used = {"columns": report.columns, "differences": report.differences}
    used |= {f"by.{kind}": metrics for kind, metrics in report.by.items()}
    for key, metrics in used.items():
        for metric in metrics:
            if metric not in evaluate.metrics:
                reason = f"{metric!r} is not a metric of `evaluate`; add its cut-off there, or use one of"
                raise SettingError(f"{prefix}report.{key}", f"{reason} {', '.join(evaluate.metrics)}")
