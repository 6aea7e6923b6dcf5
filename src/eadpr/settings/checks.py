"""Whether values that stand in different sections of params.yaml fit each other. Names and edges: `params_model`.

Most are rules: what may stand at a key, given what stands at others. What no rule can say is a sentence of its own.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator
from typing import get_args

from eadpr.robustness.config import PROBE
from eadpr.runtime.model_folders import has_two_sides, sides_differ
from eadpr.settings.model import Layout, Settings
from eadpr.supervision.config import Placebo, Strategy
from eadpr.training.config import OTHERS

# Settings by kind and name: bases, fused, readers, ..., and arms, the active ones.
Named = dict[str, dict[str, Settings]]
# A key, the values found there, those that may stand there, and why no other may, as the sentence goes on.
Rule = tuple[str, Iterable[object], Collection[object], str]

INSIDE = ("window", "answer")  # strategies that cut inside of a sentence
WORDS, SENTENCES = ("placebo_words", "placebo_inside"), ("placebo", "placebo_second")  # placebos
# The forms of strategies that have not all of them.
FORMS: dict[str, Collection[str]] = {
    **dict.fromkeys(WORDS, ("cut",)),
    **dict.fromkeys(INSIDE, ("cut", "swapped", "written")),
    **dict.fromkeys(SENTENCES, ("cut", "filled")),
}


def problems(layout: Layout, settings: Settings, named: Named) -> Iterator[str]:
    """Of the active collection with these settings: the key, what was found there and what to do."""
    yield from (*_sentences(layout, settings, named), *_validation(layout, settings, named))
    for rules in (_of_collection, _of_trainings, _of_multihop, _of_readers):
        for key, found, allowed, why in rules(layout, settings, named):
            for value in found:
                if value not in allowed:
                    yield f"{key}: {_shown(value)} {why}; it can be {' or '.join(map(_shown, allowed))}"
    for key, found, most, why in _bounds(layout, settings, named):
        if found > most:
            yield f"{key} is {found}, but {why} {most}; lower the one, or raise the other"
    yield from _sides(layout, named)
    yield from _index(settings.retrieve.index)


def compared_with(own: Settings) -> Placebo | None:
    """What the loss compares an arm's distractors with: where these are placebos themselves, other placebos."""
    if not own.loss.needs_placebos:
        return None
    return "placebo_second" if own.examples.strategy == "placebo" else "placebo"


def _shown(value: object) -> str:
    """As in params.yaml."""
    return repr(value) if isinstance(value, str) else json.dumps(value)


def _sentences(layout: Layout, settings: Settings, named: Named) -> Iterator[str]:
    for purpose in ("train", "evaluate"):
        if not getattr(layout.collections[layout.collection].sets, purpose):
            yield f"collections.{layout.collection}.sets.{purpose}: is empty; name a question set, as in set/split"
    first: dict[tuple[object, ...], str] = {}
    for arm, own in named["arms"].items():
        given, kind = layout.active[arm], own.negatives.kind
        same = first.setdefault((given.repeats or arm, own.train.seed, given.negatives, given.init), arm)
        if same != arm:
            yield f"active.{arm}.seed: {own.train.seed} is that of {same}, so both are one training; give another seed"
        if kind != "ranked" and given.negatives != "bm25":
            why = f"is not read, as negatives.kind is {kind}; set arms.{given.repeats or arm}.negatives.kind to ranked"
            yield f"active.{arm}.negatives: {given.negatives} {why}, or name bm25"
    if settings.annotator.model == "none" and "pseudo" in settings.evidence.strategies:
        yield "annotator.model: none, but evidence.strategies holds pseudo, which needs a QA model; name one"
    for k in settings.evaluate.all_at if layout.multihop else ():
        if k % 2:
            yield f"evaluate.all_at: {k} is odd, but paths of `multihop` have two passages; give even ones"
    for arm, own in named["arms"].items():
        if (placebo := compared_with(own)) and placebo not in own.evidence.strategies:
            uses = f"the loss of arm {arm} compares with (balance {own.loss.balance}, placebo {own.loss.placebo})"
            yield f"evidence.strategies: lacks {placebo}, which {uses}; add it, or set these to none and 0"
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for base in [settings.base, *(own.base for own in named["bases"].values())]:
        if base.model == "scratch" and base.least_memory > there:
            size = f"hidden {base.hidden:,}, layers {base.layers:,}, vocabulary {base.vocabulary:,}"
            needed = (
                f"take {base.least_memory / 2**30:,.1f} GiB or more to train, and this machine has {there / 2**30:,.1f}"
            )
            yield f"base: {size} {needed}; lower them"
    for name, given in layout.multihop.items():
        if "shared" in given.model_extra.get("encoder", {}):
            yield f"multihop.{name}.encoder.shared: cannot be set here; set multihop.{name}.two_hop.shared"
        ours, of_arm = named["multihop"][name].loss, named["arms"][given.of].loss
        if ours.needs_placebos and not of_arm.needs_placebos:
            key, found = f"multihop.{name}.loss", f"balance: {ours.balance} and placebo: {ours.placebo}"
            yield f"{key}: {found} need placebos, which the examples of arm {given.of} lack; set both alike in its loss"


def _validation(layout: Layout, settings: Settings, named: Named) -> Iterator[str]:
    trained = [(f"arm {arm}", own) for arm, own in named["arms"].items()]
    trained += [(f"multihop.{name}", own) for name, own in named["multihop"].items()]
    best = [(f"train.keep: best of {who}", own.train) for who, own in trained if own.train.keep == "best"]
    for who, train in best:
        if not train.validation_questions:
            yield f"train.validation_questions: is 0, but {who} needs some; raise it, or keep the last"
    if not settings.positives.validation and not layout.collections[layout.collection].sets.validation:
        weighted = (f"fused.{name}, by: weighted," for name, own in named["fused"].items() if own.fuse.by == "weighted")
        for name in (*(f"query_sides.{name}" for name in named["query_sides"]), *weighted, *(who for who, _ in best)):
            yield f"positives.validation: is 0, but {name} needs validation questions; raise it, or sets.validation"


def _of_collection(layout: Layout, settings: Settings, named: Named) -> Iterator[Rule]:
    probe, evidence, sets = settings.probe, settings.evidence, layout.collections[layout.collection].sets
    for name, own in named["query_sides"].items():
        yield f"query_sides.{name}: query_side.sets", own.query_side.sets or (), sets.train, "is not in sets.train"
    strategies = evidence.strategies, "is not in evidence.strategies"
    yield "probe.strategy", [probe.strategy], *strategies
    yield "probe.also", probe.also, *strategies
    yield "probe.placebos", probe.placebos, *strategies
    if probe.strategy in INSIDE:
        why = f"is a sentence, but probe.strategy {probe.strategy} cuts inside of one, so the two are not cut alike"
        yield "probe.placebos", probe.placebos, WORDS, why
    if probe.placebos:
        why = "is not probe.strategy, so that probe.placebos would control for other evidence than is removed"
        yield "evidence.placebo_of", [evidence.placebo_of], [probe.strategy], why
    if "written" in settings.distractors.forms:
        yield "written.strategies", settings.written.strategies, *strategies
    if set(layout.robustness.generators) - {"given", PROBE}:  # both start from no distractor
        yield "near_duplicates.strategy", [settings.near_duplicates.strategy], *strategies


def _of_trainings(layout: Layout, settings: Settings, named: Named) -> Iterator[Rule]:
    """Of arms, and of two-hop retrieval, which learns from the examples of an arm."""
    known = (*layout.collections[layout.collection].sets.train, OTHERS), "is not in sets.train"
    for arm, own in named["arms"].items():
        yield f"train.upsample of arm {arm}", own.train.upsample, *known
        yield from _of_examples(f"arm {arm}", own)
        yield from _of_loss(f"arm {arm}", f"arm {arm}", own, "encoder")
    for name, own in named["multihop"].items():
        yield f"train.upsample of multihop.{name}", own.train.upsample, *known
        yield from _of_loss(f"multihop.{name}", f"arm {layout.multihop[name].of}", own, "two_hop")


def _of_examples(arm: str, own: Settings) -> Iterator[Rule]:
    strategy, shares, strategies = own.examples.strategy, own.examples.shares, own.evidence.strategies
    if strategy == "none":
        return
    if own.evidence.positive == "first":
        why = "takes positives whose evidence is not sought, as evidence.positive is first"
        yield f"examples.positive of {arm}", [own.examples.positive], ["first"], why
    yield f"examples.strategy of {arm}", [strategy], strategies, "is not in evidence.strategies"
    forms = f"examples.forms of {arm}", shares
    yield *forms, FORMS.get(strategy, shares), f"is no form of examples.strategy {strategy}, so its share is to be 0.0"
    yield *forms, own.distractors.forms, "is not in distractors.forms"
    if "written" in shares:
        why = f"is not in written.strategies, but examples.forms of {arm} has written"
        yield f"examples.strategy of {arm}", [strategy], own.written.strategies, why


def _of_loss(who: str, arm: str, own: Settings, encoders: str) -> Iterator[Rule]:
    """`encoders` is the section that says if there is one for both sides."""
    loss, strategy, strategies = own.loss, own.examples.strategy, own.evidence.strategies
    if strategy == "none" and loss.needs_distractors:
        weights = f"lambda {loss.lambda_}, tau1 {loss.tau1}, tau2 {loss.tau2}"
        why = f"lacks the distractors that the loss of {who} uses (form {loss.form}, {weights})"
        yield f"examples.strategy of {arm}", [strategy], strategies, why
    if loss.needs_placebos:
        uses = f"but the loss of {who} uses placebos (balance {loss.balance}, placebo {loss.placebo})"
        alike = [s for s in (*get_args(Strategy), "placebo") if loss.balances == "none" or s not in INSIDE]
        why = f"has no placebo{' cut as it is, inside a sentence' * (strategy in INSIDE)}, {uses}"
        yield f"examples.strategy of {arm}", [strategy], alike, why
        why = f"is not examples.strategy of {arm}, {uses} of the same evidence"
        yield "evidence.placebo_of", [own.evidence.placebo_of], {strategy} - {"placebo"} or strategies, why
    if loss.balances != "none":
        why = f"is nothing cut, as loss.balance {loss.balance} needs, so its share is to be 0.0"
        yield f"examples.forms of {arm}", own.examples.shares, ("cut", "filled"), why
    if getattr(own, encoders).shared:
        why = f"needs two encoders, but {encoders}.shared: true has one for both sides"
        yield f"train.freeze of {who}", [own.train.freeze], ["none"], why
    if {own.train.freeze, loss.stop_gradient} == {"question", "passage"}:
        why = f"and loss.stop_gradient {loss.stop_gradient} leave nothing to learn"
        yield f"train.freeze of {who}", [own.train.freeze], ["none", loss.stop_gradient], why


def _of_multihop(layout: Layout, settings: Settings, named: Named) -> Iterator[Rule]:
    for name, own in named["multihop"].items():
        who, arm = f"multihop.{name}", layout.multihop[name].of
        why = f"is not for {who}, which learns from both passages of an example"
        yield f"examples.positive of arm {arm}", [own.examples.positive], ["each"], why
        for field in ("shuffle_questions", "shuffle_passages"):
            yield f"train.{field} of {who}", [getattr(own.train, field)], [False], "is for one hop alone"


def _of_readers(layout: Layout, settings: Settings, named: Named) -> Iterator[Rule]:
    readers = {name: own.reader for name, own in named["readers"].items()}
    passages, paths = (["bm25", *layout.active, *layout.fused], "passages"), ([*layout.multihop], "paths")
    for name, reader in readers.items():
        given, what = layout.readers[name], f"is not what a reader of kind {reader.kind}"
        starts = {"annotator"} if reader.kind == "fid" else {given.init} - {"annotator"} or {"models/<name>"}
        yield f"readers.{name}.init", [given.init], starts, f"{what} starts from"
        rankings, of = paths if reader.of_paths else passages
        yield f"readers.{name}.ranking", [given.ranking], rankings, f"{what} learns from, which is a ranking of {of}"
    for name, denoised in layout.denoised.items():
        for half, reader in enumerate(denoised.readers):
            why = f"selects no passage, which denoised.{name}.readers is for"
            yield f"kind of readers.{reader}", [readers[reader].kind], ["extractive"], why
            why = f"is the half of questions that denoised.{name}.readers has it score, at place {half}"
            yield f"half of readers.{reader}", [readers[reader].half], [None, 1 - half], why
    for arm, own in named["arms"].items():
        mined = layout.active[arm].negatives
        if mined in layout.denoised and (above := named["denoised"][mined].denoise.above) is not None:
            why = f"asks for no new positive, but denoise.above of denoised.{mined} is {above}, not null"
            yield f"examples.positive of arm {arm}", [own.examples.positive], ["random", "each"], why


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
        if own.negatives.kind != "none":
            kept = own.negatives.keep, "the negatives kept of a question (negatives.keep) are"
            yield f"train.hard_negatives of arm {arm}", own.train.hard_negatives, *kept
    for name, own in named["readers"].items():
        most = paths if own.reader.of_paths else ranked
        yield f"readers.{name}: {own.reader.section}.depth", own.reader.depth, *most
    hops = {ranking in layout.multihop for ranking in layout.reading.rankings}
    for of_paths in sorted({named["readers"][name].reader.of_paths for name in layout.reading.readers}):
        found = ("read.paths", read.paths) if of_paths else ("read.top_k", read.top_k[-1])
        for of_hops in hops:
            yield *found, *((paths if of_paths else on_paths) if of_hops else ranked)
    if layout.multihop:
        yield "beam.paths", beam.paths, beam.width**2, "a beam holds no more than the square of beam.width,"
        yield "evaluate.all_at: the deepest cut-off", max(evaluate.all_at, default=0), *on_paths
    if layout.robustness.generators:
        most = settings.near_duplicates.per_question, "near_duplicates.per_question is"
        yield "robustness.counts: the last", layout.robustness.counts[-1], *most


def _index(index: str) -> Iterator[str]:
    """Whether FAISS can read it; if it fits the vectors is known once they are there."""
    if index != "exact":
        from eadpr.search.faiss_index import readable

        if not readable(index):
            yield f"retrieve.index: {index!r} is neither exact nor a string of faiss.index_factory, such as HNSW32"


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
        return not named["multihop"][model].two_hop.shared
    if model in named["arms"]:
        own = named["arms"][model]
        unlike = own.train.steps != 0 or _sides_may_differ(layout.active[model].init, layout, named)
        return not own.encoder.shared and unlike
    return model in layout.query_sides
