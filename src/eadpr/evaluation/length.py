"""Controlled awareness of an encoder that knows nothing but length: what chance is where two texts differ in length."""

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from eadpr.evaluation.awareness import AWARENESS, CONTROLLED
from eadpr.questions import select
from eadpr.supervision.config import PLACEBOS, Strategy
from eadpr.supervision.probed import first_beside, masked


def of_length(
    records: Path, positives: Path, distractors: Path, name: str, strategy: Strategy, metrics: Collection[str]
) -> dict[str, float]:
    """By controlled metric, of all pairs of the question set `name` that have both texts, the share in which the one
    that should score above has more characters. `positives` and `distractors` are tables."""
    wanted = [metric for metric in CONTROLLED if metric in metrics]
    if not wanted:
        return {}
    variants = {strategy: "distractor"} | {placebo: placebo for placebo in PLACEBOS}
    longer = defaultdict(list)
    ids = select(records / "question_sets.parquet", [name])
    for pair, left in first_beside(records, positives, distractors, [*variants], ids):
        texts = {variants[removed]: text for removed, text in left.items()}
        texts["masked"] = masked(pair.passage.text, pair.question.answers, pair.question.answer_kind)
        for metric in wanted:
            above, below = (texts.get(variant) for variant in AWARENESS[metric][:2])
            if above is not None and below is not None:
                longer[metric].append(len(above) > len(below))
    return {metric: sum(of) / len(of) for metric, of in longer.items()}
