"""Whether there are questions to train on, to choose on and to evaluate on.

Each raises ValueError naming the key, what was found there and what to do.
"""

from __future__ import annotations

from eadpr.params_model import Collection, Layout, Settings


def check_sets(collection: Collection, name: str) -> None:
    for purpose in ("train", "evaluate"):
        if not getattr(collection.sets, purpose):
            raise ValueError(
                f"params.yaml: collections.{name}.sets.{purpose}: is empty; name a question set, as in set/split"
            )


def check_query_sides(collection: Collection, query_sides: dict[str, Settings]) -> None:
    for model, own in query_sides.items():
        for name in own.query_side.sets or ():
            if name not in collection.sets.train:
                raise ValueError(
                    f"params.yaml: query_sides.{model}: query_side.sets: {name!r} is not in sets.train"
                    f" ({', '.join(collection.sets.train)})"
                )


def check_validation(layout: Layout, settings: Settings, fused: dict[str, Settings]) -> None:
    if settings.positives.validation:
        return
    if layout.query_sides:
        raise ValueError(
            "params.yaml: positives.validation: is 0, but query_sides needs validation questions; raise it"
        )
    for name, own in fused.items():
        if own.fuse.by == "weighted":
            raise ValueError(
                f"params.yaml: positives.validation: is 0, but fused.{name} has by: weighted, which chooses its weight"
                " on validation questions; raise it, or set by to reciprocal"
            )
