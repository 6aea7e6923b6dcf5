"""What no single section of params.yaml can check: names that must fit together, settings that exclude each other.

Each raises ValueError naming the key, what was found there and what to do.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from eadpr.params_model import Collection, Edges, Layout, Settings
from eadpr.training.config import OTHERS

RESERVED = (
    "bm25",
    "bases",
    "denoised",
    "evidence",
    "gold",
    "multihop",
    "near_duplicates",
    "path_readers",
    "query_sides",
    "readers",
)


def check_layout(layout: Layout) -> None:
    """Names of arms, bases and rankings, and what they take from each other."""
    _check_sets(layout.collections[layout.collection], layout.collection)
    _check_edges(layout)
    _check_fused(layout)
    _check_multihop_edges(layout)
    _check_denoised(layout)


def check_active(
    layout: Layout, settings: Settings, trained: dict[str, Settings], denoised: dict[str, Settings]
) -> None:
    """Settings of the active collection, of its active arms and of the denoised rankings."""
    _check_validation(settings, layout)
    _check_strategies(settings, trained)
    _check_gradients(trained)
    _check_upsample(layout.collections[layout.collection], trained)
    _check_report(settings, layout)
    _check_robustness(settings, layout)
    _check_promoted(layout, trained, denoised)


def _check_sets(collection: Collection, name: str) -> None:
    for purpose in ("train", "evaluate"):
        if not getattr(collection.sets, purpose):
            raise ValueError(
                f"params.yaml: collections.{name}.sets.{purpose}: is empty; name a question set, as in set/split"
            )


def _check_edges(layout: Layout) -> None:
    if not layout.active:
        raise ValueError("params.yaml: active: no arm is active; add one, e.g. dpr: {negatives: bm25, init: base}")
    for arm, edges in layout.active.items():
        if arm in RESERVED:
            raise ValueError(f"params.yaml: active.{arm}: this name is reserved; rename the arm")
        for taken in ("bases", "query_sides"):
            if arm in getattr(layout, taken):
                raise ValueError(f"params.yaml: active.{arm}: {taken} has this name too; rename one of them")
        if edges.repeats is None and arm not in layout.arms:
            raise ValueError(f"params.yaml: active.{arm}: no such arm under arms ({', '.join(layout.arms)})")
        for field, source, roots in (
            ("negatives", edges.negatives, ["bm25", *layout.denoised]),
            ("init", edges.init, [*layout.bases, *layout.query_sides]),
        ):
            if source not in roots and source not in layout.active:
                raise ValueError(
                    f"params.yaml: active.{arm}.{field}: {source!r} is neither {' nor '.join(roots)} nor an active arm"
                )
        if edges.repeats is not None:
            _check_repeated(layout, arm, edges)
    for model, given in layout.query_sides.items():
        if model in layout.bases:
            raise ValueError(f"params.yaml: query_sides.{model}: bases has this name too; rename one of them")
        if given.of not in layout.active:
            raise ValueError(f"params.yaml: query_sides.{model}.of: {given.of!r} is not an active arm")


def _check_fused(layout: Layout) -> None:
    for name, fused in layout.fused.items():
        if name in (*layout.active, *layout.arms, *layout.bases, *RESERVED):
            raise ValueError(f"params.yaml: fused.{name}: an arm or a base has this name, or it is reserved; rename it")
        for field in ("first", "second"):
            if (source := getattr(fused, field)) not in ("bm25", *layout.active):
                raise ValueError(f"params.yaml: fused.{name}.{field}: {source!r} is neither bm25 nor an active arm")


def _check_multihop_edges(layout: Layout) -> None:
    for name, given in layout.multihop.items():
        if name in (*layout.active, *layout.arms, *layout.bases, *layout.fused, *layout.query_sides, *RESERVED):
            raise ValueError(
                f"params.yaml: multihop.{name}: an arm, a base or a ranking has this name, or it is reserved; rename it"
            )
        if given.of not in layout.active:
            raise ValueError(f"params.yaml: multihop.{name}.of: {given.of!r} is not an active arm")
        if given.init not in (*layout.bases, *layout.active, *layout.multihop):
            raise ValueError(
                f"params.yaml: multihop.{name}.init: {given.init!r} is neither {' nor '.join(layout.bases)} nor an"
                " active arm nor one of multihop"
            )


def check_multihop(
    layout: Layout, settings: Settings, trained: dict[str, Settings], multihop: dict[str, Settings]
) -> None:
    """Settings of two-hop retrieval; `trained` are those of the arms."""
    for name, own in multihop.items():
        train, positive, given = own.train, own.examples.positive, layout.multihop[name]
        if "shared" in given.model_extra.get("encoder", {}):
            raise ValueError(
                f"params.yaml: multihop.{name}.encoder.shared: two_hop.shared takes its place; set"
                f" multihop.{name}.two_hop.shared"
            )
        if own.two_hop.shared and _two_encoders(given.init, trained, multihop):
            raise ValueError(
                f"params.yaml: multihop.{name}.init: {given.init} has two encoders, but two_hop.shared: true starts"
                f" from one; take one of {', '.join(layout.bases)}, or set multihop.{name}.two_hop.shared to false"
            )
        _check_memory(name, own)
        if positive != "each":
            raise ValueError(
                f"params.yaml: examples.positive of arm {given.of} is {positive}, but multihop.{name}"
                " learns from both passages of its examples; set it to each"
            )
        if train.shuffle_questions or train.shuffle_passages:
            raise ValueError(
                f"params.yaml: multihop.{name} cannot train on shuffled words; set train.shuffle_questions and"
                " train.shuffle_passages to false"
            )
        if train.freeze != "none" and own.two_hop.shared:
            raise ValueError(
                f"params.yaml: train.freeze of multihop.{name} is {train.freeze}, but two_hop.shared: true has one"
                " encoder for both sides; set one of them otherwise"
            )
        if own.loss.needs_distractors and own.examples.strategy == "none":
            raise ValueError(
                f"params.yaml: the loss of multihop.{name} uses distractors, but examples.strategy of arm"
                f" {given.of} is none; take an arm with distractors, or set lambda, tau1 and tau2 to 0"
            )
        if own.examples.strategy == "pivots":
            _check_pivots(f"multihop.{name}", own)
        _check_stopped(f"multihop.{name}", own)
        _check_upsample(layout.collections[layout.collection], {f"multihop.{name}": own})
    if not multihop:
        return
    if odd := [k for k in settings.evaluate.all_at if k % 2]:
        raise ValueError(
            f"params.yaml: evaluate.all_at: {odd[0]} is odd, but paths of `multihop` have two passages; give even ones"
        )
    if settings.evaluate.all_at and settings.beam.paths < settings.evaluate.all_at[-1] // 2:
        raise ValueError(
            f"params.yaml: beam.paths: is {settings.beam.paths}, but evaluate.all_at looks at"
            f" {settings.evaluate.all_at[-1] // 2} paths; raise it"
        )
    if settings.beam.paths > settings.beam.width**2:
        raise ValueError(
            f"params.yaml: beam.paths: is {settings.beam.paths}, but a beam of width {settings.beam.width} holds"
            f" {settings.beam.width**2} paths; raise width"
        )


def _two_encoders(init: str, trained: dict[str, Settings], multihop: dict[str, Settings]) -> bool:
    if init in multihop:
        return not multihop[init].two_hop.shared or multihop[init].two_hop.memory.size > 0
    return init in trained and not trained[init].encoder.shared


def _check_memory(name: str, own: Settings) -> None:
    if not own.two_hop.memory.size:
        return
    for key, needed in (
        ("two_hop.shared", True),
        ("train.freeze", "none"),
        ("loss.form", "paper"),
        ("loss.anchor", "question"),
        ("loss.stop_gradient", "none"),
    ):
        section, field = key.split(".")
        if (found := getattr(getattr(own, section), field)) != needed:
            raise ValueError(
                f"params.yaml: {key} of multihop.{name} is {found}, but with two_hop.memory the queries' encoder alone"
                f" learns, from a shared one, against passages without gradient; set it to {str(needed).lower()}, or"
                " two_hop.memory.size to 0"
            )


def _check_denoised(layout: Layout) -> None:
    for name, denoised in layout.denoised.items():
        if name in (*layout.active, *layout.arms, *layout.bases, *layout.fused, *layout.multihop, *RESERVED):
            raise ValueError(
                f"params.yaml: denoised.{name}: an arm, a base or a ranking has this name, or it is reserved; rename it"
            )
        if denoised.of not in ("bm25", *layout.active):
            raise ValueError(f"params.yaml: denoised.{name}.of: {denoised.of!r} is neither bm25 nor an active arm")
        for reader in denoised.readers:
            if reader not in layout.readers:
                raise ValueError(
                    f"params.yaml: denoised.{name}.readers: {reader!r} is not one of the readers"
                    f" ({', '.join(layout.readers) or 'none'})"
                )


def check_cycles(layout: Layout) -> None:
    """Nothing may be made from itself; all names are known."""
    try:
        TopologicalSorter(_made_from(layout)).prepare()
    except CycleError as error:
        first, *_ = cycle = error.args[1]
        raise ValueError(
            f"params.yaml: {first}: is made from itself ({' -> '.join(cycle)}); name another ranking, reader or model"
            " in one of them"
        ) from None


def _made_from(layout: Layout) -> dict[str, list[str]]:
    """What each entry names, both by section and name, as `active.dpr`."""

    def of(name: str, *sections: str) -> list[str]:
        return [f"{section}.{name}" for section in sections if name in getattr(layout, section)]

    rankings, models = ("active", "fused", "denoised"), ("active", "query_sides")
    found = {
        f"active.{k}": of(given.negatives, *rankings) + of(given.init, *models) for k, given in layout.active.items()
    }
    found |= {f"query_sides.{k}": of(given.of, "active") for k, given in layout.query_sides.items()}
    found |= {
        f"fused.{k}": of(given.first, *rankings) + of(given.second, *rankings) for k, given in layout.fused.items()
    }
    found |= {
        f"multihop.{k}": of(given.of, "active") + of(given.init, "active", "multihop")
        for k, given in layout.multihop.items()
    }
    for name, denoised in layout.denoised.items():
        found[f"denoised.{name}"] = of(denoised.of, *rankings) + [f"readers.{reader}" for reader in denoised.readers]
    for name, reader in layout.readers.items():
        model = reader.init.partition("models/")[2]
        found[f"readers.{name}"] = of(reader.ranking, *rankings) + of(model, *models)
    return found


def _check_promoted(layout: Layout, arms: dict[str, Settings], denoised: dict[str, Settings]) -> None:
    """An arm that asks for the first positive alone would never see those that a reader adds behind it."""
    for arm, own in arms.items():
        name = layout.active[arm].negatives
        above = denoised[name].denoise.above if name in denoised else None
        if above is not None and own.examples.positive == "first":
            raise ValueError(
                f"params.yaml: denoise.above of denoised.{name} is {above}, but examples.positive of arm {arm}, which"
                " mines it, is first, so that no new positive is asked for; set it to random or each, or above to null"
            )


def _check_validation(settings: Settings, layout: Layout) -> None:
    if settings.positives.validation:
        return
    if layout.query_sides:
        raise ValueError(
            "params.yaml: positives.validation: is 0, but query_sides needs validation questions; raise it"
        )
    if layout.fused and settings.fuse.by == "weighted":
        raise ValueError(
            "params.yaml: positives.validation: is 0, but fuse.by: weighted chooses its weight on validation questions;"
            " raise it, or set fuse.by to reciprocal"
        )


def _check_repeated(layout: Layout, arm: str, edges: Edges) -> None:
    repeated = layout.active.get(edges.repeats)
    if repeated is None or repeated.repeats is not None:
        raise ValueError(
            f"params.yaml: active.{arm}.repeats: {edges.repeats!r} is not an active arm that repeats no other"
        )
    if arm in layout.arms:
        raise ValueError(
            f"params.yaml: active.{arm}: has settings of its own under arms, so it cannot repeat {edges.repeats};"
            " rename it"
        )


def _check_strategies(settings: Settings, arms: dict[str, Settings]) -> None:
    known = settings.evidence.strategies
    if "pseudo" in known and settings.annotator.model == "none":
        raise ValueError(
            "params.yaml: annotator.model: none, but evidence.strategies holds pseudo, which needs a QA model"
        )
    for arm, own in arms.items():
        if own.examples.strategy == "pivots":
            _check_pivots(arm, own)
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


def _check_pivots(arm: str, own: Settings) -> None:
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
                " sides; set one of them otherwise"
            )
        _check_stopped(arm, own)


def _check_stopped(arm: str, own: Settings) -> None:
    frozen, stopped = own.train.freeze, own.loss.stop_gradient
    if "none" not in (frozen, stopped) and stopped in ("question", "passage") and frozen != stopped:
        raise ValueError(
            f"params.yaml: arm {arm} learns nothing: train.freeze is {frozen} and loss.stop_gradient {stopped}"
        )


def _check_upsample(collection: Collection, arms: dict[str, Settings]) -> None:
    for arm, own in arms.items():
        for name in own.train.upsample:
            if name not in (*collection.sets.train, OTHERS):
                raise ValueError(
                    f"params.yaml: train.upsample of arm {arm}: {name!r} is not in sets.train"
                    f" ({', '.join(collection.sets.train)})"
                )


def check_metrics(settings: Settings, of: str = "") -> None:
    known = settings.evaluate.metrics
    for key in ("columns", "differences", "by_type"):
        for metric in getattr(settings.report, key):
            if metric not in known:
                raise ValueError(
                    f"params.yaml: report.{key}{of}: {metric!r} is not a metric of `evaluate`; known are"
                    f" {', '.join(known)}; take one of them, or add its cut-off to the section evaluate"
                )


def _check_report(settings: Settings, layout: Layout) -> None:
    ranked = min(settings.bm25.depth, settings.retrieve.depth)
    if settings.evaluate.depth > ranked:
        raise ValueError(
            f"params.yaml: evaluate: a metric looks at rank {settings.evaluate.depth}, but rankings (bm25.depth,"
            f" retrieve.depth) end at {ranked}"
        )
    compare = settings.report.compare
    for name in (settings.report.baseline, *compare, *compare.values()):
        if name not in (*layout.arms, *layout.fused, *layout.multihop, "bm25"):
            raise ValueError(f"params.yaml: report: {name!r} is not an arm ({', '.join(layout.arms)}), fused or bm25")


def _check_robustness(settings: Settings, layout: Layout) -> None:
    measured, made = layout.robustness, settings.near_duplicates
    for arm in measured.arms:
        if arm not in layout.active:
            raise ValueError(f"params.yaml: robustness.arms: {arm!r} is not an active arm ({', '.join(layout.active)})")
    for generator in measured.generators:
        if getattr(made, generator) is None:
            raise ValueError(f"params.yaml: near_duplicates.{generator}: is null, but robustness.generators names it")
        if generator != "given" and made.strategy not in settings.evidence.strategies:
            raise ValueError(
                f"params.yaml: near_duplicates.strategy: {made.strategy!r} is not in evidence.strategies"
                f" {settings.evidence.strategies}"
            )
    if measured.generators and measured.counts[-1] > made.per_question:
        raise ValueError(
            f"params.yaml: robustness.counts: {measured.counts[-1]} near-duplicates are to join, but"
            f" near_duplicates.per_question is {made.per_question}"
        )
