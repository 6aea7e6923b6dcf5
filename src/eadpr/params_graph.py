"""Whether the names in params.yaml are free and taken once, what they name is there, and nothing is made from itself.

`problems` yields what is wrong: the key, what was found there and what there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from eadpr.config import Section
from eadpr.evaluation.config import Report
from eadpr.params_model import Layout, Of
from eadpr.reading.config import GOLD

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
COMPARED = Of(("arms", "fused", "multihop"), ("bm25",))  # what the report may name


def problems(layout: Layout, report: Report) -> Iterator[str]:
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
