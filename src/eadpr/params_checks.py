"""Whether values that stand in different sections of params.yaml fit each other. Names and edges: `params_model`.

Each function yields what is wrong: the key, what was found there and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eadpr import params_training
from eadpr.model_folders import has_two_sides, sides_differ
from eadpr.near_duplicates.config import PROBE, WITH_SETTINGS
from eadpr.params_model import Layout, Settings
from eadpr.training.config import OTHERS

# Settings by kind and name: bases, fused, readers, ..., and arms, the active ones.
Named = dict[str, dict[str, Settings]]


def problems(layout: Layout, settings: Settings, named: Named) -> Iterator[str]:
    """Of the active collection with these settings."""
    yield from _questions(layout, settings, named)
    for key, found, known, holder in _memberships(layout, settings, named):
        for value in found:
            if value not in known:
                yield f"{key}: {value!r} is not in {holder} ({', '.join(known)})"
    for key, found, most, why in _bounds(layout, settings, named):
        if found > most:
            yield f"{key} is {found}, but {why} {most}; lower the one, or raise the other"
    yield from _placebos(settings)
    if settings.annotator.model == "none" and "pseudo" in settings.evidence.strategies:
        yield "annotator.model: none, but evidence.strategies holds pseudo, which needs a QA model"
    for generator in layout.robustness.generators:
        if generator in WITH_SETTINGS and getattr(settings.near_duplicates, generator) is None:
            yield f"near_duplicates.{generator}: is null, but robustness.generators names it"
    for arm, own in named["arms"].items():
        yield from params_training.of_training(f"arm {arm}", f"arm {arm}", own, "encoder")
    for name, own in named["multihop"].items():
        yield from params_training.of_multihop(layout, name, own, named["arms"][layout.multihop[name].of])
        yield from params_training.of_training(f"multihop.{name}", f"arm {layout.multihop[name].of}", own, "two_hop")
    for k in settings.evaluate.all_at if layout.multihop else ():
        if k % 2:
            yield f"evaluate.all_at: {k} is odd, but paths of `multihop` have two passages; give even ones"
    yield from _denoised(layout, named)
    yield from _readers(layout, named)
    yield from _sides(layout, named)


def unknown_metrics(settings: Settings, of: str = "") -> Iterator[str]:
    known = settings.evaluate.metrics
    report = settings.report
    shown = {"columns": report.columns, "differences": report.differences}
    for key, metrics in (shown | {f"by.{kind}": metrics for kind, metrics in report.by.items()}).items():
        for metric in metrics:
            if metric not in known:
                yield (
                    f"report.{key}{of}: {metric!r} is not a metric of `evaluate`; known are {', '.join(known)}; take"
                    " one of them, or add its cut-off to the section evaluate"
                )


def _questions(layout: Layout, settings: Settings, named: Named) -> Iterator[str]:
    for purpose in ("train", "evaluate"):
        if not getattr(layout.collections[layout.collection].sets, purpose):
            yield f"collections.{layout.collection}.sets.{purpose}: is empty; name a question set, as in set/split"
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


def _memberships(
    layout: Layout, settings: Settings, named: Named
) -> Iterator[tuple[str, Iterable[str], Iterable[str], str]]:
    """A key, the values found there, those that may stand there, and the key that holds these."""
    sets = layout.collections[layout.collection].sets.train
    strategies = settings.evidence.strategies, "evidence.strategies"
    for name, own in named["query_sides"].items():
        yield f"query_sides.{name}: query_side.sets", own.query_side.sets or (), sets, "sets.train"
    for name, own in named["multihop"].items():
        yield f"train.upsample of multihop.{name}", own.train.upsample, (*sets, OTHERS), "sets.train"
    for arm, own in named["arms"].items():
        yield f"train.upsample of arm {arm}", own.train.upsample, (*sets, OTHERS), "sets.train"
        if own.examples.strategy not in ("none", "pivots"):
            yield f"examples.strategy of arm {arm}", [own.examples.strategy], *strategies
        if own.examples.strategy != "none":
            yield f"examples.forms of arm {arm}", own.examples.shares, settings.distractors.forms, "distractors.forms"
    yield "probe.strategy", [settings.probe.strategy], *strategies
    yield "probe.also", settings.probe.also, *strategies
    if set(layout.robustness.generators) - {"given", PROBE}:  # both start from no distractor
        yield "near_duplicates.strategy", [settings.near_duplicates.strategy], *strategies


def _placebos(settings: Settings) -> Iterator[str]:
    probe, evidence = settings.probe, settings.evidence
    if missing := [name for name in probe.placebos if name not in evidence.strategies]:
        yield (
            f"probe.placebos: {', '.join(missing)} not in evidence.strategies ({', '.join(evidence.strategies)}); add"
            " them there, with evidence.placebo_of one of its strategies, or take them out of probe.placebos"
        )
    elif probe.placebos and probe.strategy != evidence.placebo_of:
        yield (
            f"evidence.placebo_of: {evidence.placebo_of!r} is not probe.strategy ({probe.strategy}), so the placebos of"
            " probe.placebos would control for other evidence than is removed; set both to one strategy"
        )


def _bounds(layout: Layout, settings: Settings, named: Named) -> Iterator[tuple[str, int, int, str]]:
    """A key, the number found there, the most that it can be, and what that is."""
    beam, evaluate, read = settings.beam, settings.evaluate, settings.read
    ranked = min(settings.bm25.depth, settings.retrieve.depth), "rankings (bm25.depth, retrieve.depth) end at"
    paths = beam.paths, "the paths kept of a question (beam.paths) are"
    on_paths = 2 * beam.paths, "the passages on the paths kept of a question (beam.paths) are at most"
    yield "evaluate: the deepest cut-off", evaluate.depth, *ranked
    for arm, own in named["arms"].items():
        mined = layout.active[arm].negatives
        of = layout.denoised[mined].of if mined in layout.denoised else mined
        section = "bm25" if of == "bm25" else "retrieve"
        if own.negatives.kind == "ranked":
            ends = getattr(settings, section).depth, f"its ranking, {mined}, has a depth ({section}.depth) of"
            yield f"negatives.depth of arm {arm}", own.negatives.depth, *ends
    for name, own in named["readers"].items():
        most = paths if own.reader.of_paths else ranked
        yield f"readers.{name}: {own.reader.section}.depth", own.reader.depth, *most
    hops = {ranking in layout.multihop for ranking in layout.reading.rankings}
    for of_paths in sorted({named["readers"][name].reader.of_paths for name in layout.reading.readers}):
        key, found = ("read.paths", read.paths) if of_paths else ("read.top_k", read.top_k[-1])
        if False in hops:
            yield key, found, *ranked
        if True in hops:
            yield key, found, *(paths if of_paths else on_paths)
    if layout.multihop:
        yield "beam.paths", beam.paths, beam.width**2, "a beam holds no more than the square of beam.width,"
        if evaluate.all_at:
            yield "evaluate.all_at: the deepest cut-off", evaluate.all_at[-1], *on_paths
    if layout.robustness.generators:
        most = settings.near_duplicates.per_question
        yield "robustness.counts: the last", layout.robustness.counts[-1], most, "near_duplicates.per_question is"


def _denoised(layout: Layout, named: Named) -> Iterator[str]:
    for arm, own in named["arms"].items():
        mined = layout.active[arm].negatives
        above = named["denoised"][mined].denoise.above if mined in layout.denoised else None
        if above is not None and own.examples.positive == "first":
            yield (
                f"denoise.above of denoised.{mined} is {above}, but examples.positive of arm {arm}, which mines it, is"
                " first, so that no new positive is asked for; set it to random or each, or above to null"
            )
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


def _readers(layout: Layout, named: Named) -> Iterator[str]:
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
