"""Settings for which the right value depends on the encoders that a training starts from, random or pretrained ones.

In params.yaml they are `auto`; `recipes` there has the two values of each.
"""

from collections.abc import Mapping
from typing import Any

from eadpr.settings.model import Layout, Settings


def fill_in(settings: dict[str, Any]) -> dict[str, Any]:
    """Put the values of `recipes` where `auto` stands in `train` and `query_side`; whether they are right is checked
    afterwards.

    Without validation questions the last weights are kept, as none can be the best.
    """
    match settings:
        case {"base": {"model": model}, "recipes": {**recipes}, "train": {**train}, "query_side": {**query_side}}:
            start = "scratch" if model == "scratch" else "pretrained"
            of_base = {key: values for key, values in recipes.items() if isinstance(values, dict) and start in values}
            chosen = {key: values[start] for key, values in of_base.items()}
            rate = chosen.pop("query_side_learning_rate", "auto")
            if train.get("validation_questions") == 0:
                chosen["keep"] = "last"
            train |= {key: value for key, value in chosen.items() if train.get(key) == "auto"}
            if query_side.get("learning_rate") == "auto":
                query_side["learning_rate"] = rate
            return settings | {"train": train, "query_side": query_side}
    return settings


def with_base(
    values: dict[str, Any], layout: Layout, models: Mapping[str, Mapping[str, Settings]], name: str
) -> dict[str, Any]:
    """Return the values of an active arm, of two hops or of a query side with the section `base` of the encoders that
    it starts from, by way of other trainings or not."""
    starts = {arm: edges.init for arm, edges in (layout.active | layout.multihop).items()}
    starts |= {query_side: entry.of for query_side, entry in layout.query_sides.items()}
    while name in starts:
        name = starts[name]
    return values | {"base": models["bases"][name].base.model_dump()}
