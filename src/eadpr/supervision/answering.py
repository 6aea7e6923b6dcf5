"""What the annotator reads while it learns to answer: passages that lack sentences without the answer.

Evidence is sought in passages that lack a sentence (`evidence`). A model that learnt from whole ones is surprised by
many a gap; one that saw gaps, by the gap that counts (docs/log.md).
"""

from __future__ import annotations

import numpy as np

from eadpr.records import Span
from eadpr.supervision import spans
from eadpr.supervision.pairs import Pair
from eadpr.text import answer_spans


def expendable(pair: Pair) -> list[Span]:
    """The sentences that hold no answer; none where no sentence holds one, as any of them may be the evidence."""
    sentences = spans.segment(pair.passage, "sentence")
    found = answer_spans(pair.question.answers, pair.passage.text, pair.question.answer_kind)
    holding = set(spans.overlapping(sentences, found))
    return [sentence for i, sentence in enumerate(sentences) if holding and i not in holding]


def without_some(text: str, sentences: list[Span], rng: np.random.Generator) -> str:
    """`text` without one to all of the sentences, how many and which drawn with equal chances; as it is without any."""
    if not sentences:
        return text
    drawn = rng.choice(len(sentences), size=rng.integers(1, len(sentences) + 1), replace=False)
    return spans.without(text, [sentences[i] for i in drawn])
