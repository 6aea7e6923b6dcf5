"""How probable it is that a span of the found passages answers the question.

Two models tell, and neither is enough: the annotator finds a likely answer in any sentence that states a fact, whatever
is asked, and the arm tells which sentence is about what is asked, but knows names little better than their words.
"""

import re
from collections.abc import Sequence
from math import exp
from typing import NamedTuple

import numpy as np

from eadpr.asking.answers import AnswerSpan
from eadpr.records import Passage, Span

# Of a logistic regression over the spans found for the 130 validation questions of atlas, each asked twice: with the 5
# passages that eadpr ranks first, and with its 5 best without an answer. No test question was among them.
LIKELIHOOD, DISTANCE, LEAD, NAMES, BIAS = 0.87, 2.14, 1.2, 7.72, -12.93

_WORD = re.compile(r"\w+")


class ReadSentence(NamedTuple):
    """A sentence of the passage with the number `passage`, its similarity to the question, and its likeliest answers,
    whose offsets are the sentence's."""

    passage: int
    span: Span
    similarity: float
    answers: list[AnswerSpan]


class ProposedAnswer(NamedTuple):
    """An answer and the sentence it stands in; `score`, 0 to 1, is how probable it is that the answer is right."""

    answer: str
    span: Span
    sentence: Span
    score: float


def best_of_each(
    question: str, passages: Sequence[Passage], sentences: Sequence[ReadSentence]
) -> list[ProposedAnswer | None]:
    """The best candidate of each passage, the first of equals; None where nothing can be one.

    What says no more than the question is no answer. Similarities count in standard deviations of those of all
    sentences: from their mean, and from the best other sentence's.
    """
    asked = words(question)
    best: list[ProposedAnswer | None] = [None for _ in passages]
    names = named(asked, passages)
    values = np.array([one.similarity for one in sentences])
    spread = max(float(values.std()), 1e-6) if len(values) else 1.0
    for number, one in enumerate(sentences):
        lead = one.similarity - max(np.delete(values, number), default=one.similarity)
        fit = (DISTANCE * (one.similarity - values.mean()) + LEAD * lead) / spread
        passage = passages[one.passage]
        for found in one.answers:
            start, end = one.span.start + found.start, one.span.start + found.end
            answer = passage.text[start:end]
            if words(answer) <= asked:
                continue
            log_odds = LIKELIHOOD * found.log_likelihood + fit + NAMES * names[one.passage] + BIAS
            score = 1 / (1 + exp(-log_odds))
            if best[one.passage] is None or score > best[one.passage].score:
                best[one.passage] = ProposedAnswer(answer, Span(start, end), one.span, score)
    return best


def named(asked: set[str], passages: Sequence[Passage]) -> list[float]:
    """Of the question's words that stand in any passage's title, the share that each passage holds; 1 without any."""
    names = asked & set().union(*(words(passage.title) for passage in passages))
    held = [names & words(f"{passage.title} {passage.text}") for passage in passages]
    return [len(own) / len(names) if names else 1.0 for own in held]


def words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
