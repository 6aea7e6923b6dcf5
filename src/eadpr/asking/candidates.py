"""How probable it is that a span of the found passages answers the question, or that none does.

Two models tell, and neither is enough: the annotator finds a likely answer in any sentence that states a fact, whatever
is asked, and the arm tells which sentence is about what is asked, but knows names little better than their words.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eadpr.asking.answers import AnswerSpan
from eadpr.storage.records import Passage, Span
from eadpr.text.answers import exact_match_normal


class Features(NamedTuple):
    """What is known of a candidate. `similarity`, `nameless` and `loss` are the arm's, in standard deviations from the
    mean of all sentences: of the sentence to the question, and to it without its names, and what the passage's
    similarity loses without the sentence. Shares are of the question's words."""

    likelihood: float  # log likelihood of the answer, by the annotator
    similarity: float
    nameless: float
    loss: float
    names: float  # share of the names that the sentence or the title holds
    wording: float  # share of the other words that the sentence holds
    kind: float  # 1 where the answer is of the kind that is asked for, else 0


# A conditional logit: the candidates and "none of them" compete, and a candidate's odds against none are exp(WEIGHTS *
# features + BIAS). Fitted to the test questions of another world (atlas.seed 5), each asked as in benchmarks.asking.
WEIGHTS = Features(likelihood=0.59, similarity=1.31, nameless=0.79, loss=0.76, names=12.15, wording=2.45, kind=5.71)
BIAS = -22.91

LEAST_SPREAD = 1e-6  # of similarities, so that one sentence alone divides by something

_WORD = re.compile(r"\w+")
_ASKS_NUMBER = re.compile(r"\b(when|(what|which) year|how (?!do|does|did|is|are|was|were|can|to)\w+)\b")
_ASKS_NAME = re.compile(r"\b(who|whom|whose|where)\b")
_NUMBER = re.compile(
    r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy|eighty"
    r"|ninety|hundred|thousand|million|\w+teen)\b"
)


class ReadSentence(NamedTuple):
    """A sentence of the passage with the number `passage`; the offsets of its likeliest answers are its own."""

    passage: int
    span: Span
    answers: list[AnswerSpan]


class PossibleAnswer(NamedTuple):
    """A span of the passage with the number `passage` that may be the answer, and the sentence it stands in."""

    passage: int
    answer: str
    span: Span
    sentence: Span
    features: Features


class ProposedAnswer(NamedTuple):
    """An answer and the sentence it stands in; `score`, 0 to 1, is how probable it is that the answer is right,
    wherever it stands; `share` is this span's part of that."""

    answer: str
    span: Span
    sentence: Span
    score: float
    share: float = 0.0


def possible(
    question: str, passages: Sequence[Passage], sentences: Sequence[ReadSentence], measured: np.ndarray
) -> list[PossibleAnswer]:
    """Every answer of the sentences that says more than the question does. `measured`, shape (sentences, 3), are
    `similarity`, `nameless` and `loss` as the arm gives them."""
    asked, names = words(question), names_in(question, passages)
    measured = (measured - measured.mean(0)) / np.maximum(measured.std(0), LEAST_SPREAD)
    found = []
    for one, similarities in zip(sentences, measured.tolist(), strict=True):
        passage = passages[one.passage]
        said = words(passage.text[one.span.start : one.span.end])
        held = share(names, said | words(passage.title), 1.0), share(asked - names, said, 0.0)
        for likely in one.answers:
            span = Span(one.span.start + likely.start, one.span.start + likely.end)
            answer = passage.text[span.start : span.end]
            if not words(answer) <= asked:
                features = Features(likely.log_likelihood, *similarities, *held, of_kind(question, answer))
                found.append(PossibleAnswer(one.passage, answer, span, one.span, features))
    return found


def best_of_each(found: Sequence[PossibleAnswer], passages: int) -> list[ProposedAnswer | None]:
    """The candidate of each of so many passages whose answer is most probable, the first of equals; None without any.
    The same answer may be read in several places: their probabilities add up."""
    best: list[ProposedAnswer | None] = [None for _ in range(passages)]
    if not found:
        return best
    odds = np.exp(np.array([one.features for one in found]) @ np.array(WEIGHTS) + BIAS)
    shares = (odds / (1 + odds.sum())).tolist()
    answers = [exact_match_normal(one.answer) for one in found]
    scores = dict.fromkeys(answers, 0.0)
    for answer, own in zip(answers, shares, strict=True):
        scores[answer] += own
    for one, answer, own in zip(found, answers, shares, strict=True):
        so_far = best[one.passage]
        if so_far is None or (scores[answer], own) > (so_far.score, so_far.share):
            best[one.passage] = ProposedAnswer(one.answer, one.span, one.sentence, scores[answer], own)
    return best


def of_kind(question: str, answer: str) -> float:
    """1 for a number where one is asked for (when, how many), a name to who and where, and what has none to others."""
    asked = question.lower()
    number = bool(_NUMBER.search(answer.lower()))
    if _ASKS_NUMBER.search(asked):
        return float(number)
    named = not _ASKS_NAME.search(asked) or (answer[0].isupper() and answer.split()[-1][0].isupper())
    return float(named and not number)


def names_in(question: str, passages: Sequence[Passage]) -> set[str]:
    """The words of the question that have a capital, the first left out, or stand in a passage's title."""
    capital = {word.lower() for word in _WORD.findall(question)[1:] if word[0].isupper()}
    return capital | words(question) & set().union(*(words(passage.title) for passage in passages))


def without_names(question: str, passages: Sequence[Passage]) -> str:
    """What is asked, whoever it is about; the question itself where nothing would be left."""
    names = names_in(question, passages)
    return " ".join(word for word in question.split() if not words(word) & names) or question


def share(of: set[str], held: set[str], of_none: float) -> float:
    return len(of & held) / len(of) if of else of_none


def words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
