"""Whether values that stand in different sections of params.yaml fit each other. Names and edges: `params_graph`.

Each function yields what is wrong: the key, what was found there and what to do.
"""

from __future__ import annotations

from collections.abc import Iterator

from eadpr.model_folders import has_two_sides, sides_differ
from eadpr.params_model import Layout, Settings
from eadpr.training.config import OTHERS

Named = dict[
    str, dict[str, Settings]
]  # settings by kind and name: bases, fused, readers, ..., and arms, the active ones
# What a memory bank needs: only the queries' encoder learns.
WITH_MEMORY = {
    "two_hop.shared": True,
    "train.freeze": "none",
    "loss.form": "paper",
    "loss.anchor": "question",
    "loss.stop_gradient": "none",
}


def problems(layout: Layout, settings: Settings, named: Named) -> Iterator[str]:
    """Of the active collection with these settings."""
    yield from _questions(layout, settings, named)
    yield from _evidence(settings)
    for arm, own in named["arms"].items():
        yield from _arm(layout, settings, named, arm, own)
        yield from _training(layout, f"arm {arm}", f"arm {arm}", own, "encoder")
    yield from _evaluation(layout, settings)
    yield from _robustness(layout, settings)
    yield from _readers(layout, settings, named)
    yield from _scoring(layout, named)
    for name, own in named["multihop"].items():
        yield from _multihop(layout, name, own)
        yield from _training(layout, f"multihop.{name}", f"arm {layout.multihop[name].of}", own, "two_hop")
    if named["multihop"]:
        yield from _beam(settings)
    yield from _sides(layout, named)


def unknown_metrics(settings: Settings, of: str = "") -> Iterator[str]:
    known = settings.evaluate.metrics
    for key in ("columns", "differences", "by_type"):
        for metric in getattr(settings.report, key):
            if metric not in known:
                yield (
                    f"report.{key}{of}: {metric!r} is not a metric of `evaluate`; known are {', '.join(known)}; take"
                    " one of them, or add its cut-off to the section evaluate"
                )


def _questions(layout: Layout, settings: Settings, named: Named) -> Iterator[str]:
    sets = layout.collections[layout.collection].sets
    for purpose in ("train", "evaluate"):
        if not getattr(sets, purpose):
            yield f"collections.{layout.collection}.sets.{purpose}: is empty; name a question set, as in set/split"
    for model, own in named["query_sides"].items():
        for name in own.query_side.sets or ():
            if name not in sets.train:
                yield (f"query_sides.{model}: query_side.sets: {name!r} is not in sets.train ({', '.join(sets.train)})")
    if settings.positives.validation:
        return
    if layout.query_sides:
        yield "positives.validation: is 0, but query_sides needs validation questions; raise it"
    for name, own in named["fused"].items():
        if own.fuse.by == "weighted":
            yield (
                f"positives.validation: is 0, but fused.{name} has by: weighted, which chooses its weight on validation"
                " questions; raise it, or set by to reciprocal"
            )


def _evidence(settings: Settings) -> Iterator[str]:
    known = settings.evidence.strategies
    if "pseudo" in known and settings.annotator.model == "none":
        yield "annotator.model: none, but evidence.strategies holds pseudo, which needs a QA model"
    for key, strategies in (("strategy", [settings.probe.strategy]), ("also", settings.probe.also)):
        for strategy in strategies:
            if strategy not in known:
                yield f"probe.{key}: {strategy!r} is not in evidence.strategies {known}"


def _arm(layout: Layout, settings: Settings, named: Named, arm: str, own: Settings) -> Iterator[str]:
    if own.examples.strategy not in ("none", "pivots", *(known := settings.evidence.strategies)):
        yield f"examples.strategy of arm {arm} is {own.examples.strategy!r}, not in evidence.strategies {known}"
    mined = layout.active[arm].negatives
    ranked = layout.denoised[mined].of if mined in layout.denoised else mined
    key, depth = ("bm25", settings.bm25.depth) if ranked == "bm25" else ("retrieve", settings.retrieve.depth)
    if own.negatives.kind == "ranked" and own.negatives.depth > depth:
        yield (
            f"negatives.depth of arm {arm} is {own.negatives.depth}, but its ranking, {mined}, ends at {depth}; raise"
            f" {key}.depth"
        )
    above = named["denoised"][mined].denoise.above if mined in layout.denoised else None
    if above is not None and own.examples.positive == "first":
        yield (
            f"denoise.above of denoised.{mined} is {above}, but examples.positive of arm {arm}, which mines it, is"
            " first, so that no new positive is asked for; set it to random or each, or above to null"
        )


def _training(layout: Layout, who: str, arm: str, own: Settings, encoders: str) -> Iterator[str]:
    """Of what learns from the examples of `arm`; `encoders` is the section that says if it has one for both sides."""
    loss, frozen, pivots = own.loss, own.train.freeze, own.distractors.pivots
    if own.examples.strategy == "pivots":
        if not pivots or not set(pivots) <= set(own.evidence.strategies):
            yield (
                f"examples.strategy of {arm} is pivots, so distractors.pivots must name two or more of"
                f" evidence.strategies {own.evidence.strategies}, found {pivots}"
            )
        if loss.form == "reference":
            yield (
                f"loss.form of {who} is reference, the published code, which has one distractor; set examples.strategy"
                " to another than pivots"
            )
    if loss.needs_distractors and own.examples.strategy == "none":
        yield (
            f"examples.strategy of {arm} is none, but the loss of {who} uses distractors (form {loss.form}, lambda"
            f" {loss.lambda_}, tau1 {loss.tau1}, tau2 {loss.tau2}); name a strategy, or set form to paper and the three"
            " to 0"
        )
    if frozen != "none" and getattr(own, encoders).shared:
        yield (
            f"train.freeze of {who} is {frozen}, but {encoders}.shared: true has one encoder for both sides; set"
            f" {encoders}.shared to false, or freeze to none"
        )
    if {frozen, loss.stop_gradient} == {"question", "passage"}:
        yield f"{who} learns nothing: train.freeze is {frozen} and loss.stop_gradient {loss.stop_gradient}"
    trained = layout.collections[layout.collection].sets.train
    for name in own.train.upsample:
        if name not in (*trained, OTHERS):
            yield f"train.upsample of {who}: {name!r} is not in sets.train ({', '.join(trained)})"


def _multihop(layout: Layout, name: str, own: Settings) -> Iterator[str]:
    given = layout.multihop[name]
    if "shared" in given.model_extra.get("encoder", {}):
        yield f"multihop.{name}.encoder.shared: two_hop.shared takes its place; set multihop.{name}.two_hop.shared"
    for key, needed in WITH_MEMORY.items() if own.two_hop.memory.size else ():
        section, field = key.split(".")
        if (found := getattr(getattr(own, section), field)) != needed:
            yield (
                f"{key} of multihop.{name} is {found}, but with two_hop.memory the queries' encoder alone learns, from"
                f" a shared one, against passages without gradient; set it to {str(needed).lower()}, or"
                " two_hop.memory.size to 0"
            )
    if own.examples.positive != "each":
        yield (
            f"examples.positive of arm {given.of} is {own.examples.positive}, but multihop.{name} learns from both"
            " passages of its examples; set it to each"
        )
    if own.train.shuffle_questions or own.train.shuffle_passages:
        yield (
            f"multihop.{name} cannot train on shuffled words; set train.shuffle_questions and train.shuffle_passages to"
            " false"
        )


def _beam(settings: Settings) -> Iterator[str]:
    beam, all_at = settings.beam, settings.evaluate.all_at
    for k in all_at:
        if k % 2:
            yield f"evaluate.all_at: {k} is odd, but paths of `multihop` have two passages; give even ones"
    if all_at and beam.paths < all_at[-1] // 2:
        yield f"beam.paths: is {beam.paths}, but evaluate.all_at looks at {all_at[-1] // 2} paths; raise it"
    if beam.paths > beam.width**2:
        yield (
            f"beam.paths: is {beam.paths}, but a beam of width {beam.width} holds {beam.width**2} paths; raise width"
        )


def _evaluation(layout: Layout, settings: Settings) -> Iterator[str]:
    if settings.evaluate.depth > (ranked := _ranked(settings)):
        yield (
            f"evaluate: a metric looks at rank {settings.evaluate.depth}, but rankings (bm25.depth, retrieve.depth) end"
            f" at {ranked}"
        )


def _ranked(settings: Settings) -> int:
    """Passages that every ranking has."""
    return min(settings.bm25.depth, settings.retrieve.depth)


def _robustness(layout: Layout, settings: Settings) -> Iterator[str]:
    measured, made, known = layout.robustness, settings.near_duplicates, settings.evidence.strategies
    for generator in measured.generators:
        if getattr(made, generator) is None:
            yield f"near_duplicates.{generator}: is null, but robustness.generators names it"
        if generator != "given" and made.strategy not in known:
            yield f"near_duplicates.strategy: {made.strategy!r} is not in evidence.strategies {known}"
    if measured.generators and measured.counts[-1] > made.per_question:
        yield (
            f"robustness.counts: {measured.counts[-1]} near-duplicates are to join, but near_duplicates.per_question is"
            f" {made.per_question}"
        )


def _readers(layout: Layout, settings: Settings, named: Named) -> Iterator[str]:
    ranked, paths = _ranked(settings), settings.beam.paths
    for name, own in named["readers"].items():
        given, reader = layout.readers[name], own.reader
        if (given.init == "annotator") != (reader.kind == "fid"):
            yield (
                f"readers.{name}.init: {given.init!r} is not what a reader of kind {reader.kind} starts from, which is"
                f" {'annotator' if reader.kind == 'fid' else 'models/<name>'}"
            )
        if reader.of_paths != (given.ranking in layout.multihop):
            learns = "paths, one of multihop" if reader.of_paths else "passages, bm25 or one of active or fused"
            yield (
                f"readers.{name}.ranking: {given.ranking!r} is not what a reader of kind {reader.kind} learns from,"
                f" which is a ranking of {learns}"
            )
        if reader.of_paths and reader.depth > paths:
            yield (
                f"readers.{name}: reader.depth: is {reader.depth}, but beam.paths keeps {paths} of a question; lower"
                " it, or raise beam.paths"
            )
        if not reader.of_paths and reader.depth > ranked:
            yield (
                f"readers.{name}: reader.depth: {reader.depth} passages are to be looked at, but rankings (bm25.depth,"
                f" retrieve.depth) end at {ranked}"
            )
    for of_paths in {named["readers"][name].reader.of_paths for name in layout.reading.readers}:
        yield from _read(layout, settings, of_paths=of_paths)


def _read(layout: Layout, settings: Settings, *, of_paths: bool) -> Iterator[str]:
    """Rankings are as deep as readers of passages read them, or those of paths."""
    ranked, paths = _ranked(settings), settings.beam.paths
    one_hop = [name for name in layout.reading.rankings if name not in layout.multihop]
    two_hop = [name for name in layout.reading.rankings if name in layout.multihop]
    key, read = ("read.paths", settings.read.paths) if of_paths else ("read.top_k", settings.read.top_k[-1])
    if one_hop and read > ranked:
        yield f"{key}: {read} passages are to be read, but rankings (bm25.depth, retrieve.depth) end at {ranked}"
    if two_hop and of_paths and read > paths:
        yield f"read.paths: is {read}, but beam.paths keeps {paths} of a question; lower it, or raise beam.paths"
    if two_hop and not of_paths and read > 2 * paths:
        yield (
            f"read.top_k: {read} passages are to be read, but the paths of multihop.{two_hop[0]} (beam.paths) hold"
            f" {2 * paths} at most; lower top_k, or raise paths"
        )


def _scoring(layout: Layout, named: Named) -> Iterator[str]:
    for name, denoised in layout.denoised.items():
        for half, reader in enumerate(denoised.readers):
            own = named["readers"][reader].reader
            if own.kind != "extractive":
                yield (
                    f"denoised.{name}.readers: {reader!r} is of kind {own.kind}, which selects no passage; name one of"
                    " kind extractive"
                )
            if own.half == half:
                yield (
                    f"denoised.{name}.readers: {reader!r} learns from half {half} of the training questions, and place"
                    f" {half} of the list is for who scores that half; name another there, or swap the two"
                )


def _sides(layout: Layout, named: Named) -> Iterator[str]:
    """What has one encoder for questions and passages starts from one."""
    for kind, section, trained in (("active", "encoder", named["arms"]), ("multihop", "two_hop", named["multihop"])):
        for name, own in trained.items():
            given = getattr(layout, kind)[name]
            if getattr(own, section).shared and _sides_may_differ(given.init, layout, named):
                setting = f"multihop.{name}" if kind == "multihop" else f"arms.{given.repeats or name}"
                yield (
                    f"{kind}.{name}.init: {given.init} has two encoders, but {section}.shared: true starts from one;"
                    f" set {setting}.{section}.shared to false, or start from another"
                )


def _sides_may_differ(model: str, layout: Layout, named: Named) -> bool:
    if model in named["bases"]:
        folder = named["bases"][model].base.model
        return has_two_sides(folder) and sides_differ(folder)  # the latter reads all its files
    if model in named["multihop"]:
        two_hop = named["multihop"][model].two_hop
        return not two_hop.shared or two_hop.memory.size > 0
    if model in named["arms"]:
        own = named["arms"][model]
        unlike = own.train.steps != 0 or _sides_may_differ(layout.active[model].init, layout, named)
        return not own.encoder.shared and unlike
    return model in layout.query_sides
