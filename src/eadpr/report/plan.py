"""The plan of a report: its settings, resolved once into plain rows, columns, comparisons and question sets."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from eadpr.evaluation.config import BM25
from eadpr.evaluation.kinds import KindName
from eadpr.report.config import Report, ReportArms
from eadpr.supervision.config import Strategy

Rows = Mapping[str, Sequence[str]]  # a row of the tables -> its trainings, which are files of outcomes
Pairs = Sequence[tuple[str, str]]  # (row, the row it is compared with)


class Sampling(NamedTuple):
    """The resampling behind intervals and tests."""

    resamples: int
    confidence: float
    seed: int


class ReportPlan(NamedTuple):
    """`rows` are BM25, the `arms` and the fused rankings; `one_hop` maps a ranking of paths to a one-hop arm."""

    sets: Sequence[str]
    arms: Rows
    rows: Rows
    columns: Sequence[str]
    differences: Sequence[str]
    by: Mapping[KindName, Sequence[str]]
    comparisons: Pairs
    one_hop: Mapping[str, str]
    strategy: Strategy
    bins: int
    sampling: Sampling


def make_plan(settings: ReportArms, sets: Sequence[str]) -> ReportPlan:
    rows = {BM25: [BM25]} | settings.trainings | {name: [name] for name in settings.fused}
    return ReportPlan(
        sets=sets,
        arms=settings.trainings,
        rows=rows,
        columns=settings.columns,
        differences=settings.differences,
        by=settings.by,
        comparisons=choose_pairs([*settings.trainings, *settings.fused], rows, settings.compare, settings.baseline),
        one_hop=settings.one_hop,
        strategy=settings.strategy,
        bins=settings.bins,
        sampling=sampling_of(settings),
    )


def sampling_of(settings: Report) -> Sampling:
    return Sampling(settings.resamples, settings.confidence, settings.seed)


def choose_pairs(names: Sequence[str], rows: Collection[str], compare: Mapping[str, str], baseline: str) -> Pairs:
    """Pair each name with the row that `compare` gives it, else with the baseline; each pair once, no row with itself.

    A name has no pair where neither is among `rows`.
    """
    pairs = []
    for name in names:
        reference = compare.get(name)
        if reference not in rows:
            reference = baseline
        if reference in rows and reference != name and compare.get(reference) != name:
            pairs.append((name, reference))
    return pairs
