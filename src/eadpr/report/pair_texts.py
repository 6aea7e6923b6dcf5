"""Chance levels of awareness that the texts alone give, without any encoder: a retriever could prefer the longer text,
and some distractors still hold an answer, because the evidence was not found or the answer is named elsewhere too."""

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
    """`by_length`: by controlled metric, the share of pairs in which the text that should score higher has more
    characters. `answered` of `distractors` hold an answer."""

    by_length: dict[str, float]
    answered: int = 0
    distractors: int = 0


def compare_texts(
    records: Path, positives: Path, distractors: Path, name: str, strategy: Strategy, metrics: Collection[str]
) -> PairTexts:
    """Compare the texts of the question set `name`; `positives` and `distractors` are tables."""
    controlled = [metric for metric in CONTROLLED if metric in metrics]
    if not controlled:
        return PairTexts({})
    variants = {strategy: "distractor"} | {placebo: placebo for placebo in PLACEBOS}
    longer, answered = defaultdict(list), []
    ids = read_question_ids(records / "question_sets.parquet", [name])
    for pair, texts_by_strategy in first_pairs_with_cuts(records, positives, distractors, [*variants], ids):
        answers, kind = pair.question.answers, pair.question.answer_kind
        texts = {variants[removed]: text for removed, text in texts_by_strategy.items()}
        texts["masked"] = mask_answers(pair.passage.text, answers, kind)
        if "distractor" in texts:
            answered.append(bool(answer_spans(answers, texts["distractor"], kind)))
        for metric in controlled:
            above, below = (texts.get(variant) for variant in AWARENESS[metric][:2])
            if above is not None and below is not None:
                longer[metric].append(len(above) > len(below))
    by_length = {metric: sum(flags) / len(flags) for metric, flags in longer.items()}
    return PairTexts(by_length, sum(answered), len(answered))
