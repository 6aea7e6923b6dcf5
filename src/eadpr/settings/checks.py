"""Checks between the sections of params.yaml: each raises SettingError for the first setting that does not fit another.

Names and edges of the graph are checked in `model`.
"""

import json
import re
from collections.abc import Collection, Iterable
from typing import get_args

from eadpr.robustness.config import PROBE
from eadpr.runtime.model_folders import SIDES, has_two_sides, is_folder, sides_differ
from eadpr.settings.model import Layout, Settings
from eadpr.settings.yaml import SettingError
from eadpr.supervision.config import Placebo, Strategy
from eadpr.training.config import OTHERS, EncoderSettings
from eadpr.two_hops.config import TwoHop

# The settings of each named model and ranking by kind: bases, fused, readers, ..., and arms (the active ones).
Models = dict[str, dict[str, Settings]]

INSIDE = ("window", "answer")  # strategies that cut inside a sentence
WORDS, SENTENCES = ("placebo_words", "placebo_inside"), ("placebo", "placebo_second")  # placebos
# The forms of the strategies that do not have every form.
FORMS: dict[str, Collection[str]] = {
    **dict.fromkeys(WORDS, ("cut",)),
    **dict.fromkeys(INSIDE, ("cut", "swapped", "written")),
    **dict.fromkeys(SENTENCES, ("cut", "filled")),
}


def check_settings(layout: Layout, settings: Settings, models: Models) -> None:
    """Check the active collection: its settings, and the settings of its arms and named models."""
    trainings = [(f"arm {arm}", config) for arm, config in models["arms"].items()]
    trainings += [(f"multihop.{name}", config) for name, config in models["multihop"].items()]
    _check_sets(layout, settings, models)
    _check_arms(layout, models)
    _check_folders(settings, models)
    _check_validation(layout, settings, models, trainings)
    _check_strategies(layout, settings)
    train_sets = (*layout.collections[layout.collection].sets.train, OTHERS)
    for who, config in trainings:
        for name in config.train.upsample:
            _require("train.upsample", name, train_sets, f"of {who} is not in sets.train")
        if config.base.model == "scratch":  # of other encoders the training says it
            _limit("train.layers", config.train.layers or 1, config.base.layers, f"base.layers of {who}")
    for arm, config in models["arms"].items():
        _check_examples(f"arm {arm}", config)
        _check_loss(f"arm {arm}", f"arm {arm}", config, "encoder")
    for name in models["multihop"]:
        _check_multihop(layout, models, name)
    _check_readers(layout, models)
    _check_depths(layout, settings, models)
    _check_bases(layout, models)
    if settings.retrieve.index != "exact":
        from eadpr.search.faiss_index import is_index

        if not is_index(settings.retrieve.index):  # its fit to the vectors is checked once they exist
            reason = f"{settings.retrieve.index!r} is neither exact nor a string of faiss.index_factory, such as HNSW32"
            raise SettingError("retrieve.index", reason)


def compared_placebo(config: Settings) -> Placebo | None:
    """Return the placebo that the loss compares an arm's distractors with: the second where these are placebos."""
    if not config.loss.needs_placebos:
        return None
    return "placebo_second" if config.examples.strategy == "placebo" else "placebo"


def _require(key: str, value: object, choices: Iterable[object], problem: str) -> None:
    """Refuse a value that is not one of `choices`; `problem` goes on behind the value."""
    if value not in (allowed := list(choices)):
        raise SettingError(key, f"{_show(value)} {problem}; use {' or '.join(map(_show, allowed)) or 'another'}")


def _limit(key: str, value: int, most: int, limit: str) -> None:
    if value > most:
        raise SettingError(key, f"{value} is more than {limit}, {most}; lower the one, or raise the other")


def _show(value: object) -> str:
    """Write a value as params.yaml does."""
    return repr(value) if isinstance(value, str) else json.dumps(value)


def _check_sets(layout: Layout, settings: Settings, models: Models) -> None:
    sets = layout.collections[layout.collection].sets
    for purpose in ("train", "evaluate"):
        if not getattr(sets, purpose):
            key = f"collections.{layout.collection}.sets.{purpose}"
            raise SettingError(key, "is empty; name a question set, as set/split")
    for name, config in models["query_sides"].items():
        for question_set in config.query_side.sets or ():
            _require(f"query_sides.{name}.sets", question_set, sets.train, "is not in sets.train")


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


def _check_folders(settings: Settings, models: Models) -> None:
    """The folder of base.model can be taken with the settings of every encoder that starts from it."""
    checked = set()
    arms = [settings, *models["bases"].values(), *models["arms"].values()]
    for config, two_hop in [(arm, None) for arm in arms] + [(c, c.two_hop) for c in models["multihop"].values()]:
        case = config.base.model, config.encoder.model_dump_json(), two_hop and two_hop.query_tokens
        if config.base.model == "scratch" or not is_folder(config.base.model) or case in checked:
            continue
        checked.add(case)
        try:
            _check_folder(config.base.model, config.encoder, two_hop)
        except ValueError as error:
            key, reason = re.fullmatch(r"(?s)((?:base|encoder|two_hop)\.\w+)?:? ?(.*)", str(error)).groups()
            raise SettingError(key or "base.model", reason) from error


def _check_folder(model: str, encoder: EncoderSettings, two_hop: TwoHop | None) -> None:
    from eadpr.training.encoder import check_positions, load_pretrained

    for side in [f"{model}/{side}" for side in SIDES] if has_two_sides(model) else [model]:
        outline = load_pretrained(side, encoder, setting="base.model", weights=False).model
        if two_hop is not None:
            check_positions(outline, "two_hop.query_tokens", two_hop.query_tokens)


def _check_validation(layout: Layout, settings: Settings, models: Models, trained: list[tuple[str, Settings]]) -> None:
    users = [f"query_sides.{name}" for name in models["query_sides"]]
    weighted = [name for name, config in models["fused"].items() if config.fuse.by == "weighted"]
    users += [f"fused.{name}, by: weighted," for name in weighted]
    for who, config in trained:
        if config.train.keep == "best":
            users.append(f"train.keep: best of {who} (last needs none)")
            if not config.train.validation_questions:
                raise SettingError("train.validation_questions", f"is 0, but {users[-1]} needs some; raise it")
    if users and not settings.positives.validation and not layout.collections[layout.collection].sets.validation:
        raise SettingError("positives.validation", f"is 0, but {users[0]} needs some; raise it, or sets.validation")


def _check_strategies(layout: Layout, settings: Settings) -> None:
    """Check that the strategies which other sections use are in evidence.strategies."""
    probe, evidence = settings.probe, settings.evidence
    if settings.annotator.model == "none" and "pseudo" in evidence.strategies:
        raise SettingError("annotator.model", "name a QA model, which pseudo in evidence.strategies needs")
    used = [("probe.strategy", probe.strategy)]
    used += [("probe.also", strategy) for strategy in probe.also]
    used += [("probe.placebos", placebo) for placebo in probe.placebos]
    if "written" in settings.distractors.forms:
        used += [("written.strategies", strategy) for strategy in settings.written.strategies]
    if set(layout.robustness.generators) - {"given", PROBE}:  # these two start from no distractor
        used.append(("near_duplicates.strategy", settings.near_duplicates.strategy))
    for key, strategy in used:
        _require(key, strategy, evidence.strategies, "is not in evidence.strategies")
    if probe.strategy in INSIDE:
        for placebo in probe.placebos:
            _require(
                "probe.placebos", placebo, WORDS, f"is a sentence, but probe.strategy {probe.strategy} is inside one"
            )
    if probe.placebos:
        _require("evidence.placebo_of", evidence.placebo_of, [probe.strategy], "is not probe.strategy")


def _check_examples(arm: str, config: Settings) -> None:
    strategy, shares = config.examples.strategy, config.examples.shares
    if strategy == "none":
        return
    if config.evidence.positive == "first":
        problem = f"of {arm} is not evidence.positive"
        _require("examples.positive", config.examples.positive, ["first"], problem)
    _require("examples.strategy", strategy, config.evidence.strategies, f"of {arm} is not in evidence.strategies")
    for form in shares:
        problem = f"of {arm} is no form of examples.strategy {strategy}; set its share to 0.0"
        _require("examples.forms", form, FORMS.get(strategy, shares), problem)
        _require("examples.forms", form, config.distractors.forms, f"of {arm} is not in distractors.forms")
    if "written" in shares:
        _require("examples.strategy", strategy, config.written.strategies, f"of {arm} is not in written.strategies")


def _check_loss(who: str, arm: str, config: Settings, encoder_section: str) -> None:
    """Check the loss of a training on an arm's examples; `encoder_section` has the setting `shared`."""
    loss, strategy = config.loss, config.examples.strategy
    if strategy == "none" and loss.needs_distractors:
        weights = f"form {loss.form}, lambda {loss.lambda_}, tau1 {loss.tau1}, tau2 {loss.tau2}"
        problem = f"of {arm} gives no distractors, which the loss of {who} uses ({weights})"
        _require("examples.strategy", strategy, config.evidence.strategies, problem)
    if loss.needs_placebos:
        use = f"the loss of {who} uses placebos (balance {loss.balance}, placebo {loss.placebo})"
        allowed = [s for s in (*get_args(Strategy), "placebo") if loss.balances == "none" or s not in INSIDE]
        kind = "placebo cut inside a sentence" if strategy in INSIDE else "placebo"
        _require("examples.strategy", strategy, allowed, f"of {arm} has no {kind}, but {use}")
        if strategy != "placebo":
            problem = f"is not examples.strategy of {arm}, but {use} of the same evidence"
            _require("evidence.placebo_of", config.evidence.placebo_of, [strategy], problem)
    if loss.balances != "none":
        for form in config.examples.shares:
            _require(
                "examples.forms", form, ("cut", "filled"), f"of {arm} does not go with loss.balance {loss.balance}"
            )
    if getattr(config, encoder_section).shared:
        _require("train.freeze", config.train.freeze, ["none"], f"of {who} needs {encoder_section}.shared: false")


def _check_multihop(layout: Layout, models: Models, name: str) -> None:
    who, entry, config = f"multihop.{name}", layout.multihop[name], models["multihop"][name]
    if "shared" in entry.model_extra.get("encoder", {}):
        raise SettingError(f"{who}.encoder.shared", f"cannot be set here; set {who}.two_hop.shared")
    _check_loss(who, f"arm {entry.of}", config, "two_hop")
    for key in ("shuffle_questions", "shuffle_passages"):
        _require(f"train.{key}", getattr(config.train, key), [False], f"of {who} is for arms alone")
    _require("examples.positive", config.examples.positive, ["each"], f"of arm {entry.of} is not for {who}")


def _check_readers(layout: Layout, models: Models) -> None:
    readers = {name: config.reader for name, config in models["readers"].items()}
    for name, reader in readers.items():
        entry = layout.readers[name]
        problem = f"is not for a reader of kind {reader.kind}"
        if (entry.init == "annotator") != (reader.kind == "fid"):
            start = "annotator" if reader.kind == "fid" else "models/NAME"
            raise SettingError(f"readers.{name}.init", f"{entry.init!r} {problem}; use {start}")
        rankings = [*layout.multihop] if reader.of_paths else ["bm25", *layout.active, *layout.fused]
        _require(f"readers.{name}.ranking", entry.ranking, rankings, problem)
    for name, denoised in layout.denoised.items():
        for half, reader in enumerate(denoised.readers):
            problem = f"is not for denoised.{name}.readers"
            _require(f"readers.{reader}.kind", readers[reader].kind, ["extractive"], problem)
            problem = f"is the half of the questions that denoised.{name} has it score"
            _require(f"readers.{reader}.half", readers[reader].half, [None, 1 - half], problem)
    for arm, config in models["arms"].items():
        mined = layout.active[arm].negatives
        if mined in layout.denoised and (above := models["denoised"][mined].denoise.above) is not None:
            problem = f"of arm {arm} takes no new positive, but denoise.above of {mined} is {above}, not null"
            _require("examples.positive", config.examples.positive, ["random", "each"], problem)


def _check_depths(layout: Layout, settings: Settings, models: Models) -> None:
    """No stage looks for more passages or paths than an earlier one keeps."""
    beam, evaluate, read = settings.beam, settings.evaluate, settings.read
    ranked = min(settings.bm25.depth, settings.retrieve.depth), "the depth of rankings (bm25.depth, retrieve.depth)"
    paths = beam.paths, "the paths per question (beam.paths)"
    on_paths = 2 * beam.paths, "the passages on the paths of a question (2 x beam.paths)"
    _limit("evaluate", evaluate.depth, *ranked)
    for arm, config in models["arms"].items():
        mined = layout.active[arm].negatives
        source = layout.denoised[mined].of if mined in layout.denoised else mined
        section = "bm25" if source == "bm25" else "retrieve"
        if config.negatives.kind == "ranked":
            limit = f"{section}.depth, the depth of the ranking {mined} that arm {arm} mines"
            _limit("negatives.depth", config.negatives.depth, getattr(settings, section).depth, limit)
        if config.negatives.kind != "none":
            limit = f"negatives.keep, the negatives per question of arm {arm}"
            _limit("train.hard_negatives", config.train.hard_negatives, config.negatives.keep, limit)
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
    if layout.robustness.generators:
        most = settings.near_duplicates.per_question
        _limit("robustness.counts", layout.robustness.counts[-1], most, "near_duplicates.per_question")


def _check_bases(layout: Layout, models: Models) -> None:
    """A training of one encoder for questions and passages starts from one; `train` says so of other models."""
    for arm, config in models["arms"].items():
        init = layout.active[arm].init
        folder = models["bases"][init].base.model if init in models["bases"] else ""
        # The latter reads all files.
        if config.encoder.shared and has_two_sides(folder) and sides_differ(folder):
            reason = f"{init} has two encoders; set arms.{layout.active[arm].repeats or arm}.encoder.shared to false"
            raise SettingError(f"active.{arm}.init", f"{reason}, or start from another")
