"""What models and rankings are called and what each is made from: names known and taken once, no cycles.

Each raises ValueError naming the key, what was found there and what to do.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from eadpr.params_model import Edges, Layout

RESERVED = (
    "bm25",
    "bases",
    "denoised",
    "fused",
    "evidence",
    "gold",
    "multihop",
    "near_duplicates",
    "path_readers",
    "query_sides",
    "readers",
)


def check_edges(layout: Layout) -> None:
    """Names of arms, models and rankings, and that what they are made from is there."""
    _check_arms(layout)
    _check_query_sides(layout)
    _check_fused(layout)
    _check_multihop(layout)
    _check_denoised(layout)


def _check_arms(layout: Layout) -> None:
    if not layout.active:
        raise ValueError("params.yaml: active: no arm is active; add one, e.g. dpr: {negatives: bm25, init: base}")
    for arm, edges in layout.active.items():
        if arm in RESERVED:
            raise ValueError(f"params.yaml: active.{arm}: this name is reserved; rename the arm")
        for taken in ("bases", "query_sides"):
            if arm in getattr(layout, taken):
                raise ValueError(f"params.yaml: active.{arm}: {taken} has this name too; rename one of them")
        if edges.repeats is None and arm not in layout.arms:
            raise ValueError(f"params.yaml: active.{arm}: no such arm under arms ({', '.join(layout.arms)})")
        for field, source, roots in (
            ("negatives", edges.negatives, ["bm25", *layout.denoised, *layout.fused]),
            ("init", edges.init, [*layout.bases, *layout.query_sides]),
        ):
            if source not in roots and source not in layout.active:
                raise ValueError(
                    f"params.yaml: active.{arm}.{field}: {source!r} is neither {' nor '.join(roots)} nor an active arm"
                )
        if edges.repeats is not None:
            _check_repeated(layout, arm, edges)


def _check_repeated(layout: Layout, arm: str, edges: Edges) -> None:
    repeated = layout.active.get(edges.repeats)
    if repeated is None or repeated.repeats is not None:
        raise ValueError(
            f"params.yaml: active.{arm}.repeats: {edges.repeats!r} is not an active arm that repeats no other"
        )
    if arm in layout.arms:
        raise ValueError(
            f"params.yaml: active.{arm}: has settings of its own under arms, so it cannot repeat {edges.repeats};"
            " rename it"
        )


def _check_query_sides(layout: Layout) -> None:
    for model, given in layout.query_sides.items():
        if model in layout.bases:
            raise ValueError(f"params.yaml: query_sides.{model}: bases has this name too; rename one of them")
        if given.of not in layout.active:
            raise ValueError(f"params.yaml: query_sides.{model}.of: {given.of!r} is not an active arm")


def _check_fused(layout: Layout) -> None:
    for name, fused in layout.fused.items():
        if name in (*layout.active, *layout.arms, *layout.bases, *RESERVED):
            raise ValueError(f"params.yaml: fused.{name}: an arm or a base has this name, or it is reserved; rename it")
        for field in ("first", "second"):
            if (source := getattr(fused, field)) not in ("bm25", *layout.active):
                raise ValueError(f"params.yaml: fused.{name}.{field}: {source!r} is neither bm25 nor an active arm")


def _check_multihop(layout: Layout) -> None:
    for name, given in layout.multihop.items():
        if name in (*layout.active, *layout.arms, *layout.bases, *layout.fused, *layout.query_sides, *RESERVED):
            raise ValueError(
                f"params.yaml: multihop.{name}: an arm, a base or a ranking has this name, or it is reserved; rename it"
            )
        if given.of not in layout.active:
            raise ValueError(f"params.yaml: multihop.{name}.of: {given.of!r} is not an active arm")
        if given.init not in (*layout.bases, *layout.active, *layout.multihop):
            raise ValueError(
                f"params.yaml: multihop.{name}.init: {given.init!r} is neither {' nor '.join(layout.bases)} nor an"
                " active arm nor one of multihop"
            )


def _check_denoised(layout: Layout) -> None:
    for name, denoised in layout.denoised.items():
        if name in (*layout.active, *layout.arms, *layout.bases, *layout.fused, *layout.multihop, *RESERVED):
            raise ValueError(
                f"params.yaml: denoised.{name}: an arm, a base or a ranking has this name, or it is reserved; rename it"
            )
        if denoised.of not in ("bm25", *layout.active):
            raise ValueError(f"params.yaml: denoised.{name}.of: {denoised.of!r} is neither bm25 nor an active arm")
        for reader in denoised.readers:
            if reader not in layout.readers:
                raise ValueError(
                    f"params.yaml: denoised.{name}.readers: {reader!r} is not one of the readers"
                    f" ({', '.join(layout.readers) or 'none'})"
                )


def check_cycles(layout: Layout) -> None:
    """Nothing may be made from itself; all names are known."""
    try:
        TopologicalSorter(_made_from(layout)).prepare()
    except CycleError as error:
        first, *_ = cycle = error.args[1]
        raise ValueError(
            f"params.yaml: {first}: is made from itself ({' -> '.join(cycle)}); name another ranking, reader or model"
            " in one of them"
        ) from None


def _made_from(layout: Layout) -> dict[str, list[str]]:
    """What each entry names, both by section and name, as `active.dpr`."""

    def of(name: str, *sections: str) -> list[str]:
        return [f"{section}.{name}" for section in sections if name in getattr(layout, section)]

    rankings, models = ("active", "fused", "denoised"), ("active", "query_sides")
    found = {
        f"active.{k}": of(given.negatives, *rankings) + of(given.init, *models) for k, given in layout.active.items()
    }
    found |= {f"query_sides.{k}": of(given.of, "active") for k, given in layout.query_sides.items()}
    found |= {
        f"fused.{k}": of(given.first, *rankings) + of(given.second, *rankings) for k, given in layout.fused.items()
    }
    found |= {
        f"multihop.{k}": of(given.of, "active") + of(given.init, "active", "multihop")
        for k, given in layout.multihop.items()
    }
    for name, denoised in layout.denoised.items():
        found[f"denoised.{name}"] = of(denoised.of, *rankings) + [f"readers.{reader}" for reader in denoised.readers]
    for name, reader in layout.readers.items():
        model = reader.init.partition("models/")[2]
        found[f"readers.{name}"] = of(reader.ranking, *rankings) + of(model, *models)
    return found
