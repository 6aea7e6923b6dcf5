"""From the scores of a question's paths to its answer and supporting sentences.

P(answer) = P(path) P(kind | path), for a span times P(start | path) P(end | path). The most probable answer of all
paths is taken, and the supporting sentences are those of its path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eadpr.reading_multihop.inputs import NOWHERE, PathInput
from eadpr.reading_multihop.losses import KINDS


class PathScores(NamedTuple):
    """Of one path: raw scores of itself, of KINDS, of T tokens to start and end the answer, and of S sentences."""

    path: float
    kind_K: NDArray[np.float64]
    start_T: NDArray[np.float64]
    end_T: NDArray[np.float64]
    sentence_S: NDArray[np.float64]


class Decided(NamedTuple):
    """`path` is an index; `span` the first and last token of an answer of kind span; `log_probability` in nats."""

    path: int
    kind: str
    span: tuple[int, int] | None
    log_probability: float


def decide(scores: Sequence[PathScores], inputs: Sequence[PathInput], answer_tokens: int) -> Decided:
    """Of equals the earlier path, then span before yes before no. Raises ValueError without a path."""
    if not scores:
        raise ValueError("a question without a path cannot be answered; leave it out of what is read")
    paths = log_softmax(np.array([one.path for one in scores]))
    options = []
    for place, (one, given) in enumerate(zip(scores, inputs, strict=True)):
        kinds = log_softmax(one.kind_K)
        found = best_span(one.start_T, one.end_T, given.passage_T, answer_tokens)
        if found is not None:
            options.append(Decided(place, KINDS[0], found[:2], float(paths[place] + kinds[0] + found[2])))
        options += [Decided(place, KINDS[k], None, float(paths[place] + kinds[k])) for k in range(1, len(KINDS))]
    return max(options, key=lambda option: option.log_probability)


def best_span(
    start_T: NDArray[np.float64], end_T: NDArray[np.float64], passage_T: NDArray[np.int64], longest: int
) -> tuple[int, int, float] | None:
    """First and last token of the most probable span of at most `longest` tokens inside one passage, and its log
    probability; of equals the first, then the shortest. None where no token is of a passage."""
    readable = np.flatnonzero(passage_T != NOWHERE)
    if not len(readable):
        return None
    starts = np.full(len(passage_T), -np.inf)
    ends = starts.copy()
    starts[readable], ends[readable] = log_softmax(start_T[readable]), log_softmax(end_T[readable])
    best = (0, 0, -np.inf)
    for length in range(min(longest, len(passage_T))):
        count = len(passage_T) - length
        inside = passage_T[:count] == passage_T[length:]
        totals = np.where(inside, starts[:count] + ends[length:], -np.inf)
        first = int(totals.argmax())
        if (totals[first], -first) > (best[2], -best[0]):
            best = (first, first + length, float(totals[first]))
    return best


def supporting(sentence_S: NDArray[np.float64], one: PathInput) -> list[tuple[int, int]]:
    """(passage, sentence) of every sentence that is more likely than not, and of each passage's likeliest, since all
    passages of a path support the answer. Sentences without a token, cut off or blank, are none."""
    there = [i for i in range(len(one.sentences)) if (one.sentence_T == i).any()]
    chosen = {i for i in there if sentence_S[i] > 0}
    for place in {one.sentences[i][0] for i in there}:
        own = [i for i in there if one.sentences[i][0] == place]
        chosen.add(max(own, key=lambda i: (sentence_S[i], -i)))
    return [one.sentences[i] for i in sorted(chosen)]


def log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = scores - scores.max()
    return shifted - np.log(np.exp(shifted).sum())
