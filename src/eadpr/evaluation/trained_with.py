"""Markdown of what each arm was trained with, beside the figures of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eadpr.evaluation import tabulate as md

TITLES = ["arm", "form", "L_dpr", "lambda", "tau1", "tau2", "distractors", "hard negatives", "from", "batch", "length"]


def table(active: Mapping[str, Mapping[str, Any]], configs: Mapping[str, Any]) -> str:
    """Of the section `active` and the config files of its arms, as `params.configs` makes them; other seeds are left
    out."""
    rows = [_row(arm, edges, configs) for arm, edges in active.items() if "repeats" not in edges]
    return md.table([*TITLES, "rate"], rows)


def _row(arm: str, edges: Mapping[str, Any], configs: Mapping[str, Any]) -> list[str]:
    stages = ("train", "examples", "negatives")
    settings, examples, negatives = (configs[f"{arm}/{stage}.json"] for stage in stages)
    loss, train = settings["loss"], settings["train"]
    mined = negatives["negatives"]
    source = f"{edges['negatives']} (best {mined['keep']})" if mined["kind"] == "ranked" else mined["kind"]
    hard = f"{train['hard_negatives']} of {source}"
    length = f"{train['epochs']} epochs" if train["steps"] is None else f"{train['steps']:,} steps"
    if train["step_factor"] != 1:
        length += f" x {train['step_factor']:g}"
    return [
        arm,
        loss["form"],
        *(f"{loss[weight]:g}" for weight in ("dpr", "lambda", "tau1", "tau2")),
        examples["examples"]["strategy"],
        hard if train["hard_negatives"] else "none",
        edges["init"],
        str(train["batch_size"]),
        length,
        f"{train['learning_rate']:g}",
    ]
