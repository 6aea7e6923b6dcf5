"""Settings for which the right value depends on the encoders that a training starts from, random or pretrained ones.

In params.yaml they are `auto`; `recipes` there has the two values of each.
"""

from collections.abc import Mapping
from typing import Any

from eadpr.settings.model import Layout, Settings


def fill_in(values: dict[str, Any]) -> dict[str, Any]:
    """Put the values of `recipes` where `auto` stands in `train`; whether they are right is checked afterwards.

    Without validation questions the last weights are kept, as none can be the best.
    """
    match values:
        case {"base": {"model": model}, "recipes": {**recipes}, "train": {**train}}:
            start = "scratch" if model == "scratch" else "pretrained"
            chosen = {
                key: recipe[start]
                for key, recipe in recipes.items()
                if train.get(key) == "auto" and isinstance(recipe, dict) and start in recipe
            }
            if "keep" in chosen and train.get("validation_questions") == 0:
                chosen["keep"] = "last"
            return values | {"train": train | chosen}
    return values


def with_base(
    values: dict[str, Any], layout: Layout, models: Mapping[str, Mapping[str, Settings]], name: str
) -> dict[str, Any]:
    """Return the values of an active arm or of two hops with the section `base` of the encoders that it starts from,
    by way of other trainings or not."""
    starts = {arm: edges.init for arm, edges in (layout.active | layout.multihop).items()}
    starts |= {query_side: entry.of for query_side, entry in layout.query_sides.items()}
    while name in starts:
        name = starts[name]
    return values | {"base": models["bases"][name].base.model_dump()}
