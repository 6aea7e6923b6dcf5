"""Near-duplicates by rule: the positive without its evidence, its sentences thinned out, reordered and rephrased.

The first candidate is the text as it is: the distractor.
"""

from __future__ import annotations

import math
import re

import numpy as np

from eadpr.near_duplicates.config import Rules, filled
from eadpr.near_duplicates.original import Candidate, Generate, Original, draw
from eadpr.supervision import spans

# Words that begin a sentence with a capital letter only because it begins there.
_LOWERED = re.compile(
    r"(the|an?|it|its|he|his|she|her|they|their|there|this|that|these|those|both|many|most|some|several|in|on|at|by|for"
    r"|from|with|as|after|before|during|since|while|when|where|although|though|however|because|if|one|two|another|each"
    r"|later|today|not|under|according|despite)\b",
    re.IGNORECASE,
)


def rules(settings: Rules, seed: int) -> Generate:
    def generate(original: Original, numbers: range) -> list[Candidate]:
        sentences = [original.text[start:end] for start, end in spans.sentences(original.text)]
        if not sentences:
            return []
        title = original.positive.title
        return [Candidate(title, _variant(settings, seed, original, sentences, number)) for number in numbers]

    return generate


def _variant(settings: Rules, seed: int, original: Original, sentences: list[str], number: int) -> str:
    if number == 0:
        return original.text
    rng = np.random.default_rng(draw(seed, original.question.id, number))
    count = len(sentences)
    fewest = max(1, math.ceil(settings.keep * count))
    chosen = [sentences[i] for i in rng.permutation(count)[: rng.integers(fewest, count + 1)]]
    rephrased = rng.random(len(chosen)) < settings.rephrase
    templates = rng.integers(len(settings.templates), size=len(chosen))
    return " ".join(
        _rephrased(settings.templates[template], sentence, original.positive.title) if change else sentence
        for sentence, change, template in zip(chosen, rephrased, templates, strict=True)
    )


def _rephrased(template: str, sentence: str, title: str) -> str:
    if _LOWERED.match(sentence) and not template.startswith("{sentence}"):
        sentence = sentence[0].lower() + sentence[1:]
    return filled(template, sentence=sentence, title=title)
