"""Whether what the report and the robustness measure shows is there to be shown.

Each raises ValueError naming the key, what was found there and what to do.
"""

from __future__ import annotations

from eadpr.params_model import Layout, Settings


def check_metrics(settings: Settings, of: str = "") -> None:
    known = settings.evaluate.metrics
    for key in ("columns", "differences", "by_type"):
        for metric in getattr(settings.report, key):
            if metric not in known:
                raise ValueError(
                    f"params.yaml: report.{key}{of}: {metric!r} is not a metric of `evaluate`; known are"
                    f" {', '.join(known)}; take one of them, or add its cut-off to the section evaluate"
                )


def check_report(layout: Layout, settings: Settings) -> None:
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


def check_robustness(layout: Layout, settings: Settings) -> None:
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
