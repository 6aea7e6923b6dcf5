"""What the texts behind awareness say without any encoder: what chance is where two of them differ in length, and how
many distractors hold an answer still: the evidence was not found, or the answer is named elsewhere too."""

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from eadpr.evaluation.awareness import AWARENESS, CONTROLLED
from eadpr.storage.questions import read_question_ids
from eadpr.supervision.config import PLACEBOS, Strategy
from eadpr.supervision.probed import first_pairs_with_cuts, mask_answers
from eadpr.text.answers import answer_spans


class PairTexts(NamedTuple):
    """`by_length`: by controlled metric, of all pairs that have both texts, the share in which the one that should
    score above has more characters. `answered` of `distractors` hold an answer."""

    by_length: dict[str, float]
    answered: int = 0
    distractors: int = 0


def of_pairs(
    records: Path, positives: Path, distractors: Path, name: str, strategy: Strategy, metrics: Collection[str]
) -> PairTexts:
    """Of the question set `name`. `positives` and `distractors` are tables."""
    wanted = [metric for metric in CONTROLLED if metric in metrics]
    if not wanted:
        return PairTexts({})
    variants = {strategy: "distractor"} | {placebo: placebo for placebo in PLACEBOS}
    longer, answered = defaultdict(list), []
    ids = read_question_ids(records / "question_sets.parquet", [name])
    for pair, left in first_pairs_with_cuts(records, positives, distractors, [*variants], ids):
        answers, kind = pair.question.answers, pair.question.answer_kind
        texts = {variants[removed]: text for removed, text in left.items()}
        texts["masked"] = mask_answers(pair.passage.text, answers, kind)
        if "distractor" in texts:
            answered.append(bool(answer_spans(answers, texts["distractor"], kind)))
        for metric in wanted:
            above, below = (texts.get(variant) for variant in AWARENESS[metric][:2])
            if above is not None and below is not None:
                longer[metric].append(len(above) > len(below))
    return PairTexts({metric: sum(of) / len(of) for metric, of in longer.items()}, sum(answered), len(answered))
