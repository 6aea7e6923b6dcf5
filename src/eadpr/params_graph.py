"""The graph that params.yaml describes: models, rankings and readers by name, and what each of them is made from."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from eadpr.evaluation.config import Report
from eadpr.params_model import Layout
from eadpr.reading.config import GOLD

# Names of files and folders beside those of arms and rankings.
RESERVED = (
    "bm25", "bases", "denoised", "fused", "evidence", GOLD, "multihop", "near_duplicates", "query_sides",
    "readers", "readings",
)  # fmt: skip
# Kinds of nodes, and those whose names each must not take.
APART = {
    "query_sides": ("bases",),
    "active": ("bases", "query_sides"),
    "fused": ("active", "arms", "bases"),
    "multihop": ("active", "arms", "bases", "fused", "query_sides"),
    "denoised": ("active", "arms", "bases", "fused", "multihop"),
}


class Edge(NamedTuple):
    """What `field` of each entry of `kind` may name: `prefix` and the name of a node of `kinds`, or one of `also`."""

    kind: str
    field: str
    kinds: tuple[str, ...]
    also: tuple[str, ...] = ()
    prefix: str = ""


EDGES = (
    Edge("active", "negatives", ("active", "fused", "denoised"), ("bm25",)),
    Edge("active", "init", ("bases", "query_sides", "active")),
    Edge("query_sides", "of", ("active",)),
    Edge("fused", "first", ("active",), ("bm25",)),
    Edge("fused", "second", ("active",), ("bm25",)),
    Edge("multihop", "of", ("active",)),
    Edge("multihop", "init", ("bases", "active", "multihop")),
    Edge("denoised", "of", ("active",), ("bm25",)),
    Edge("denoised", "readers", ("readers",)),
    Edge("readers", "ranking", ("active", "fused", "multihop"), ("bm25",)),
    Edge("readers", "init", ("bases", "query_sides", "active", "multihop"), ("annotator",), "models/"),
    # What measures nodes, or compares them.
    Edge("robustness", "arms", ("active",)),
    Edge("reading", "readers", ("readers",)),
    Edge("reading", "rankings", ("active", "fused", "multihop"), ("bm25", GOLD)),
    Edge("report", "baseline", ("arms", "fused", "multihop"), ("bm25",)),
    Edge("report", "compare", ("arms", "fused", "multihop"), ("bm25",)),
)


def check_graph(layout: Layout, report: Report) -> None:
    """Names are free and taken once, what they name is there, and nothing is made from itself.

    Raises ValueError naming the key, what was found there and what there is.
    """
    for problem in (*_names(layout), *_repeats(layout)):
        raise ValueError(f"params.yaml: {problem}")
    graph: dict[str, list[str]] = {}
    for edge in EDGES:
        for place, entry in _entries(layout, report, edge.kind):
            sources = graph.setdefault(place, [])
            for value in _values(getattr(entry, edge.field)):
                name = value.removeprefix(edge.prefix)
                kinds = [kind for kind in edge.kinds if name in getattr(layout, kind) and value.startswith(edge.prefix)]
                if not kinds and value not in edge.also:
                    known = _known(layout, edge)
                    idle = (
                        "; it is under arms, but not active" if "active" in edge.kinds and name in layout.arms else ""
                    )
                    raise ValueError(f"params.yaml: {place}.{edge.field}: {value!r} is not one of {known}{idle}")
                sources += [f"{kind}.{name}" for kind in kinds]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        first, *_ = cycle = error.args[1]
        raise ValueError(
            f"params.yaml: {first}: is made from itself ({' -> '.join(cycle)}); name another ranking, reader or model"
            " in one of them"
        ) from None


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


def _entries(layout: Layout, report: Report, kind: str) -> Iterator[tuple[str, Any]]:
    """Place in params.yaml and value of each."""
    found = report if kind == "report" else getattr(layout, kind)
    if isinstance(found, dict):
        for name, entry in found.items():
            yield f"{kind}.{name}", entry
    else:
        yield kind, found


def _values(given: str | list[str] | dict[str, str]) -> list[str]:
    if isinstance(given, dict):
        return [*given, *given.values()]
    return [given] if isinstance(given, str) else given


def _known(layout: Layout, edge: Edge) -> str:
    named = [
        f"{kind} ({', '.join(f'{edge.prefix}{n}' for n in getattr(layout, kind)) or 'none'})" for kind in edge.kinds
    ]
    return ", ".join([*edge.also, *named])
