"""Whether what has one encoder for questions and passages starts from one."""

from __future__ import annotations

from eadpr.model_folders import has_two_sides, sides_differ
from eadpr.params_model import Layout, Settings

Named = dict[str, Settings]


def check_sides(layout: Layout, bases: Named, arms: Named, multihop: Named) -> None:
    """Raises ValueError naming the key; `layout` has no cycles."""
    trained = {"active": arms, "multihop": multihop}
    for kind, section in (("active", "encoder"), ("multihop", "two_hop")):
        for name, own in trained[kind].items():
            given = getattr(layout, kind)[name]
            if getattr(own, section).shared and _differ(given.init, layout, bases, arms, multihop):
                setting = f"multihop.{name}" if kind == "multihop" else f"arms.{given.repeats or name}"
                raise ValueError(
                    f"params.yaml: {kind}.{name}.init: {given.init} has two encoders, but {section}.shared: true starts"
                    f" from one; set {setting}.{section}.shared to false, or start from another"
                )


def _differ(name: str, layout: Layout, bases: Named, arms: Named, multihop: Named) -> bool:
    """Whether the sides of this model may differ."""
    if name in bases:
        model = bases[name].base.model
        return has_two_sides(model) and sides_differ(model)  # the latter reads all its files
    if name in multihop:
        return not multihop[name].two_hop.shared or multihop[name].two_hop.memory.size > 0
    if name in arms:
        learns = arms[name].train.steps != 0
        init = layout.active[name].init
        return not arms[name].encoder.shared and (learns or _differ(init, layout, bases, arms, multihop))
    return name in layout.query_sides
