"""Checks between the sections of params.yaml: each raises SettingError for the first setting that does not fit another.

Names and edges of the graph are checked in `model`.
"""

import json
import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import get_args

from eadpr.runtime.model_folders import SIDES, has_two_sides, is_folder, sides_differ
from eadpr.settings.model import Layout, MultihopOf, Settings
from eadpr.settings.yaml import SettingError
from eadpr.supervision.config import Placebo, Strategy
from eadpr.training.config import OTHERS

# The settings of each named model and ranking by kind: bases, fused, readers, ..., and arms (the active ones).
Models = dict[str, dict[str, Settings]]

INSIDE = ("window", "answer")  # strategies that cut inside a sentence
WORDS = ("placebo_words", "placebo_inside")  # placebos that are no sentences


def check_settings(layout: Layout, settings: Settings, models: Models) -> None:
    """Check the active collection: its settings, and the settings of its arms and named models."""
    trainings = {f"arm {arm}": config for arm, config in models["arms"].items()}
    trainings |= {f"multihop.{name}": config for name, config in models["multihop"].items()}
    _check_sets(layout, models, trainings)
    _check_arms(layout, models)
    _check_folders(layout, models)
    _check_validation(layout, settings, models, trainings)
    _check_strategies(layout, settings)
    for who, config in trainings.items():
        if config.base.model == "scratch":  # of other encoders the training says it
            _limit("train.layers", config.train.layers or 1, config.base.layers, f"base.layers of {who}")
    for arm, config in models["arms"].items():
        _check_examples(f"arm {arm}", config)
        for package in config.train.report_to:
            if not (find_spec("accelerate") and find_spec(package)):
                raise SettingError("train.report_to", f"{package} is not installed: pip install accelerate {package}")
        _check_loss(f"arm {arm}", config, shared="encoder.shared")
    for name in models["multihop"]:
        _check_multihop(f"multihop.{name}", layout.multihop[name], models["multihop"][name])
    _check_units(layout, settings, models)
    _check_readers(layout, models)
    _check_depths(layout, settings, models)


def compared_placebo(config: Settings) -> Placebo | None:
    """Return the placebo that the loss compares an arm's distractors with: the second where these are placebos."""
    if not config.loss.needs_placebos:
        return None
    return "placebo_second" if config.examples.strategy == "placebo" else "placebo"


def _require(key: str, value: object, choices: Iterable[object], who: str) -> None:
    """Refuse a value that is not one of `choices`, the values that go with `who`."""
    if value not in (allowed := list(choices)):
        names = " or ".join(map(json.dumps, allowed)) or "another"
        raise SettingError(key, f"{json.dumps(value)} does not go with {who}; use {names}")


def _limit(key: str, value: int, most: int, limit: str) -> None:
    if value > most:
        raise SettingError(key, f"{value} is more than {limit}, {most}; lower the one, or raise the other")


def _check_sets(layout: Layout, models: Models, trainings: dict[str, Settings]) -> None:
    sets = layout.collections[layout.collection].sets
    for purpose in ("train", "evaluate"):
        if not getattr(sets, purpose):
            key = f"collections.{layout.collection}.sets.{purpose}"
            raise SettingError(key, "is empty; name a question set, as set/split")
    for name, config in models["query_sides"].items():
        for question_set in config.query_side.sets or ():
            _require(f"query_sides.{name}.sets", question_set, sets.train, "sets.train")
    for who, config in trainings.items():
        for name in config.train.upsample:
            _require("train.upsample", name, (*sets.train, OTHERS), f"sets.train, in {who}")


def _check_arms(layout: Layout, models: Models) -> None:
    """No two arms are the same training, and placebos that a loss needs are made."""
    arm_of: dict[tuple[object, ...], str] = {}
    for arm, config in models["arms"].items():
        edges = layout.active[arm]
        twin = arm_of.setdefault((edges.repeats or arm, config.train.seed, edges.negatives, edges.init), arm)
        if twin != arm:
            raise SettingError(f"active.{arm}.seed", f"{config.train.seed} is the seed of {twin} too; use another seed")
        if (placebo := compared_placebo(config)) and placebo not in config.evidence.strategies:
            uses = f"loss.balance {config.loss.balance} and loss.placebo {config.loss.placebo} of arm {arm}"
            raise SettingError("evidence.strategies", f"add {placebo}, which {uses} need")


def _check_folders(layout: Layout, models: Models) -> None:
    """The folder of base.model can be taken with the settings of every encoder that starts from it."""
    starts = [config for kind in ("bases", "arms", "multihop") for config in models[kind].values()]
    for model, encoder in dict.fromkeys((config.base.model, config.encoder) for config in starts):
        if model == "scratch" or not is_folder(model):
            continue
        from eadpr.training.encoder import load_pretrained

        try:
            for side in [f"{model}/{side}" for side in SIDES] if has_two_sides(model) else [model]:
                load_pretrained(side, encoder, setting="base.model", weights=False)
        except ValueError as error:
            key, reason = re.fullmatch(r"(?s)((?:base|encoder)\.\w+)?:? ?(.*)", str(error)).groups()
            raise SettingError(key or "base.model", reason) from error
    for arm, config in models["arms"].items():
        init = layout.active[arm].init
        folder = models["bases"][init].base.model if init in models["bases"] else ""
        if config.encoder.shared and has_two_sides(folder) and sides_differ(folder):  # which reads all files
            reason = f"{init} has two encoders; set arms.{layout.active[arm].repeats or arm}.encoder.shared to false"
            raise SettingError(f"active.{arm}.init", f"{reason}, or start from another")


def _check_validation(layout: Layout, settings: Settings, models: Models, trainings: dict[str, Settings]) -> None:
    users = [f"query_sides.{name}" for name in models["query_sides"]]
    users += [f"fused.{name}, by: weighted" for name, c in models["fused"].items() if c.fuse.by == "weighted"]
    for who, config in trainings.items():
        if config.train.keep == "best":
            users.append(f"train.keep: best of {who}")
            if not config.train.validation_questions:
                raise SettingError("train.validation_questions", f"is 0, but {users[-1]} needs some; raise it")
    if users and not settings.positives.validation and not layout.collections[layout.collection].sets.validation:
        raise SettingError("positives.validation", f"is 0, but {users[0]} needs some; raise it, or sets.validation")


def _check_strategies(layout: Layout, settings: Settings) -> None:
    """The strategies that other sections use are in evidence.strategies."""
    probe, evidence = settings.probe, settings.evidence
    kind, model = settings.annotator.kind, settings.annotator.model
    if (kind, model) == ("answer", "none") and "pseudo" in evidence.strategies:
        raise SettingError("annotator.model", "name a QA model, which pseudo in evidence.strategies needs")
    if (kind, model) == ("relevance", "build"):
        reason = "name a reranker or an encoder, which annotator.kind: relevance needs, or none: no evidence"
        raise SettingError("annotator.model", reason)
    if kind == "endpoint":
        _require("annotator.model", model, ["build"], "annotator.kind: endpoint, where endpoint.model is asked")
    used = {"probe.strategy": [probe.strategy], "probe.also": probe.also, "probe.placebos": probe.placebos}
    if set(layout.robustness.generators) - {"given"}:  # which starts from no distractor
        used["near_duplicates.strategy"] = [settings.near_duplicates.strategy]
    for key, strategies in used.items():
        for strategy in strategies:
            _require(key, strategy, evidence.strategies, "evidence.strategies")
    for placebo in probe.placebos:
        if probe.strategy in INSIDE:
            _require("probe.placebos", placebo, WORDS, f"probe.strategy {probe.strategy}, inside a sentence")
        _require("evidence.placebo_of", evidence.placebo_of, [probe.strategy], "probe.strategy")


def _check_examples(arm: str, config: Settings) -> None:
    strategy, form = config.examples.strategy, config.examples.form
    if strategy == "none":
        return
    if config.evidence.positive == "first":
        _require("examples.positive", config.examples.positive, ["first"], f"evidence.positive, in {arm}")
    _require("examples.strategy", strategy, config.evidence.strategies, f"evidence.strategies, in {arm}")
    if strategy in (*INSIDE, *WORDS):
        _require("examples.form", form, ["cut"], f"examples.strategy {strategy} of {arm}")
    _require("examples.form", form, config.distractors.forms, f"distractors.forms, in {arm}")


def _check_loss(who: str, config: Settings, *, shared: str) -> None:
    """The examples give what the loss uses; `shared` is the key of the setting for one encoder."""
    loss, strategy = config.loss, config.examples.strategy
    if strategy == "none" and (loss.needs_distractors or loss.rest):
        _require("examples.strategy", strategy, config.evidence.strategies, f"the distractors of the loss of {who}")
    learns = loss.needs_distractors or loss.needs_placebos or loss.rest
    if learns and strategy == "pseudo" and config.annotator.model == "none":
        raise SettingError("annotator.model", f"none finds no evidence, which the loss of {who} needs; name a model")
    if config.encoder.unit == "passage":
        _require("loss.rest", loss.rest, [0.0], f"encoder.unit: passage of {who}")
    if loss.rest:
        _require("train.shuffle_passages", config.train.shuffle_passages, [False], f"loss.rest of {who}")
    if loss.needs_placebos:
        uses = f"the placebos of the loss of {who}"
        allowed = [s for s in (*get_args(Strategy), "placebo") if loss.balances == "none" or s not in INSIDE]
        _require("examples.strategy", strategy, allowed, uses)
        if strategy != "placebo":
            _require("evidence.placebo_of", config.evidence.placebo_of, [strategy], f"examples.strategy and {uses}")
    section, key = shared.split(".")
    if getattr(getattr(config, section), key):
        _require("train.freeze", config.train.freeze, ["none"], f"{shared}: true of {who}")


def _check_multihop(who: str, entry: MultihopOf, config: Settings) -> None:
    if "shared" in entry.model_extra.get("encoder", {}):
        raise SettingError(f"{who}.encoder.shared", f"cannot be set here; set {who}.two_hop.shared")
    _check_loss(who, config, shared="two_hop.shared")
    for key in ("shuffle_questions", "shuffle_passages"):
        _require(f"train.{key}", getattr(config.train, key), [False], who)
    _require("examples.positive", config.examples.positive, ["each"], who)


def _check_units(layout: Layout, settings: Settings, models: Models) -> None:
    """Query sides and two hops know only one vector of a passage."""
    by_vector = [arm for arm, config in models["arms"].items() if config.encoder.unit == "passage"]
    if len(by_vector) < len(layout.active):
        _limit("retrieve.depth", settings.retrieve.depth, settings.retrieve.candidates, "retrieve.candidates")
    for name, entry in layout.query_sides.items():
        _require(f"query_sides.{name}.of", entry.of, by_vector, "another encoder.unit than passage")
    for name, config in models["multihop"].items():
        _require("encoder.unit", config.encoder.unit, ["passage"], f"multihop.{name}")


def _check_readers(layout: Layout, models: Models) -> None:
    for name, entry in layout.readers.items():
        reader = models["readers"][name].reader
        if (entry.init == "annotator") != (reader.kind == "fid"):
            start = "annotator" if reader.kind == "fid" else "models/NAME"
            raise SettingError(f"readers.{name}.init", f"{entry.init!r} is not for kind {reader.kind}; use {start}")
        rankings = [*layout.multihop] if reader.of_paths else ["bm25", *layout.active, *layout.fused]
        _require(f"readers.{name}.ranking", entry.ranking, rankings, f"kind: {reader.kind}")


def _check_depths(layout: Layout, settings: Settings, models: Models) -> None:
    """No stage looks for more passages, paths or negatives than an earlier one keeps."""
    for arm, config in models["arms"].items():
        mined = layout.active[arm].negatives
        section = "bm25" if mined == "bm25" else "retrieve"
        if config.negatives.kind == "ranked":
            limit = f"{section}.depth, the depth of the ranking {mined} that arm {arm} mines"
            _limit("negatives.depth", config.negatives.depth, getattr(settings, section).depth, limit)
        limit = f"negatives.keep, the negatives per question of arm {arm}"
        _limit("train.hard_negatives", config.train.hard_negatives, config.negatives.keep, limit)
    if layout.robustness.generators:
        most = settings.near_duplicates.per_question
        _limit("robustness.counts", layout.robustness.counts[-1], most, "near_duplicates.per_question")
    beam, evaluate, read = settings.beam, settings.evaluate, settings.read
    ranked = min(settings.bm25.depth, settings.retrieve.depth), "the depth of rankings (bm25.depth, retrieve.depth)"
    paths = beam.paths, "the paths per question (beam.paths)"
    on_paths = 2 * beam.paths, "the passages on the paths of a question (2 x beam.paths)"
    _limit("evaluate", evaluate.depth, *ranked)
    for name, config in models["readers"].items():
        _limit(f"readers.{name}.depth", config.reader.depth, *(paths if config.reader.of_paths else ranked))
    for name in layout.reading.readers:
        of_paths = models["readers"][name].reader.of_paths
        key, depth = ("read.paths", read.paths) if of_paths else ("read.top_k", read.top_k[-1])
        for ranking in layout.reading.rankings:
            two_hops = paths if of_paths else on_paths
            _limit(key, depth, *(two_hops if ranking in layout.multihop else ranked))
    if layout.multihop:
        _limit("beam.paths", beam.paths, beam.width**2, "the square of beam.width, which a beam holds")
        _limit("evaluate.all_at", max(evaluate.all_at, default=0), *on_paths)
