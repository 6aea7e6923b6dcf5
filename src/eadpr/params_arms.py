"""Whether the settings that an arm trains with fit each other, its collection and the evidence there is.

Each raises ValueError naming the key, what was found there and what to do.
"""

from __future__ import annotations

from eadpr.params_model import Collection, Layout, Settings
from eadpr.training.config import OTHERS


def check_arms(layout: Layout, settings: Settings, arms: dict[str, Settings]) -> None:
    """`arms` are the settings of the active arms."""
    _check_strategies(settings, arms)
    _check_depths(layout, settings, arms)
    _check_gradients(arms)
    check_upsample(layout.collections[layout.collection], arms)


def _check_strategies(settings: Settings, arms: dict[str, Settings]) -> None:
    known = settings.evidence.strategies
    if "pseudo" in known and settings.annotator.model == "none":
        raise ValueError(
            "params.yaml: annotator.model: none, but evidence.strategies holds pseudo, which needs a QA model"
        )
    for arm, own in arms.items():
        if own.examples.strategy == "pivots":
            check_pivots(arm, own)
        elif own.examples.strategy not in ("none", *known):
            raise ValueError(
                f"params.yaml: examples.strategy of arm {arm} is {own.examples.strategy!r},"
                f" not in evidence.strategies {known}"
            )
        if own.loss.needs_distractors and own.examples.strategy == "none":
            raise ValueError(
                f"params.yaml: examples.strategy of arm {arm} is none, but its loss uses distractors"
                f" (form {own.loss.form}, lambda {own.loss.lambda_}, tau1 {own.loss.tau1}, tau2 {own.loss.tau2});"
                f" name a strategy, or set form to paper and the three to 0"
            )
    for key, strategies in (("strategy", [settings.probe.strategy]), ("also", settings.probe.also)):
        for strategy in strategies:
            if strategy not in known:
                raise ValueError(f"params.yaml: probe.{key}: {strategy!r} is not in evidence.strategies {known}")


def _check_depths(layout: Layout, settings: Settings, arms: dict[str, Settings]) -> None:
    for arm, own in arms.items():
        source = layout.active[arm].negatives
        ranked = layout.denoised[source].of if source in layout.denoised else source
        key, depth = ("bm25", settings.bm25.depth) if ranked == "bm25" else ("retrieve", settings.retrieve.depth)
        if own.negatives.kind == "ranked" and own.negatives.depth > depth:
            raise ValueError(
                f"params.yaml: negatives.depth of arm {arm} is {own.negatives.depth}, but its ranking, {source}, ends"
                f" at {depth}; raise {key}.depth"
            )


def check_pivots(arm: str, own: Settings) -> None:
    missing = [strategy for strategy in own.distractors.pivots if strategy not in own.evidence.strategies]
    if missing or not own.distractors.pivots:
        raise ValueError(
            f"params.yaml: examples.strategy of arm {arm} is pivots, so distractors.pivots must name two or more of"
            f" evidence.strategies {own.evidence.strategies}, found {own.distractors.pivots}"
        )
    if own.loss.form == "reference":
        raise ValueError(
            f"params.yaml: loss.form of arm {arm} is reference, the published code, which has one distractor; set"
            " examples.strategy to another than pivots"
        )


def _check_gradients(arms: dict[str, Settings]) -> None:
    for arm, own in arms.items():
        frozen = own.train.freeze
        if frozen != "none" and own.encoder.shared:
            raise ValueError(
                f"params.yaml: train.freeze of arm {arm} is {frozen}, but encoder.shared: true has one encoder for both"
                " sides; set encoder.shared of the arm to false"
            )
        check_stopped(arm, own)


def check_stopped(arm: str, own: Settings) -> None:
    frozen, stopped = own.train.freeze, own.loss.stop_gradient
    if "none" not in (frozen, stopped) and stopped in ("question", "passage") and frozen != stopped:
        raise ValueError(
            f"params.yaml: arm {arm} learns nothing: train.freeze is {frozen} and loss.stop_gradient {stopped}"
        )


def check_upsample(collection: Collection, arms: dict[str, Settings]) -> None:
    for arm, own in arms.items():
        for name in own.train.upsample:
            if name not in (*collection.sets.train, OTHERS):
                raise ValueError(
                    f"params.yaml: train.upsample of arm {arm}: {name!r} is not in sets.train"
                    f" ({', '.join(collection.sets.train)})"
                )
