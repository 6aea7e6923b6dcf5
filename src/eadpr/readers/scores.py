"""Losses and decoding of extractive readers on a question's paths (Karpukhin et al., 2020; MDR: Xiong et al., 2021).

Shapes: P paths, T tokens, A answer spans, S sentences, K kinds of answer. A span is its first and its last token. Start
and end are softmaxes over the tokens of a path's texts; `passage` is the place in the path of each token's passage,
NOWHERE for question, titles and padding.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import log_softmax
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from eadpr.readers.inputs import NOWHERE, Sentences

KINDS = ("span", "yes", "no")


class TokenSpan(NamedTuple):
    """A span with `score`, the log-probability of its start and end."""

    first: int
    last: int
    score: float


def log_probabilities(logits: Tensor, text: Tensor) -> Tensor:
    """Return the log-softmax, (..., T), over the tokens of the text; -inf elsewhere, and for a path without text."""
    return torch.where(text, logits.masked_fill(~text, -torch.inf).log_softmax(-1), -torch.inf)


def span_nll(start_T: Tensor, end_T: Tensor, text_T: Tensor, spans_A2: Tensor) -> Tensor:
    """Return -log of the probability that the answer is any of the spans, 0 without spans. All lie in the text."""
    if not len(spans_A2):
        return start_T.sum() * 0
    starts_A = log_probabilities(start_T, text_T)[spans_A2[:, 0]]
    ends_A = log_probabilities(end_T, text_T)[spans_A2[:, 1]]
    return -(starts_A + ends_A).logsumexp(0)


def selection_nll(paths_P: Tensor) -> Tensor:
    """Return -log of the softmax over paths at the first path, the right one."""
    return -paths_P.log_softmax(0)[0]


def support_loss(scores_S: Tensor, support_S: Tensor, there_S: Tensor) -> Tensor:
    """Return the mean binary cross-entropy over the sentences that have tokens (`there_S`), 0 without any."""
    losses = binary_cross_entropy_with_logits(scores_S, support_S.to(scores_S.dtype), reduction="none")
    return losses.masked_fill(~there_S, 0).sum() / there_S.sum().clamp(min=1)


def sentence_means(scores_T: Tensor, sentence_T: Tensor, count: int) -> Tensor:
    """Return the mean score, (S,), of each sentence's tokens, 0 for a sentence without tokens."""
    numbers = torch.arange(count, device=sentence_T.device)
    holds_ST = (sentence_T == numbers[:, None]).to(scores_T.dtype)
    return holds_ST @ scores_T / holds_ST.sum(1).clamp(min=1)


def best_spans(start_PT: Tensor, end_PT: Tensor, passage_PT: Tensor, *, longest: int) -> list[TokenSpan | None]:
    """Return the likeliest span of each path, at most `longest` tokens in one passage, the first of equals, or None."""
    text_PT = passage_PT != NOWHERE
    starts_PT, ends_PT = log_probabilities(start_PT, text_PT), log_probabilities(end_PT, text_PT)
    count = starts_PT.shape[1]
    scores_PTL = torch.full((*starts_PT.shape, min(longest, count)), -torch.inf)
    for more in range(min(longest, count)):
        scores = starts_PT[:, : count - more] + ends_PT[:, more:]
        apart = passage_PT[:, : count - more] != passage_PT[:, more:]
        scores_PTL[:, : count - more, more] = scores.masked_fill(apart, -torch.inf).cpu()
    spans: list[TokenSpan | None] = []
    for scores_TL in scores_PTL.numpy():  # numpy's argmax gives the first of equals
        first, more = divmod(int(scores_TL.argmax()), scores_TL.shape[1])
        score = float(scores_TL[first, more])
        spans.append(TokenSpan(first, first + more, score) if score > -torch.inf else None)
    return spans


class PathScores(NamedTuple):
    """A path's logit and the best span of its texts; of paths also the logits of KINDS and tokens' sentences."""

    path: float
    span: TokenSpan | None
    kinds_K: np.ndarray | None = None
    sentences_T: Tensor | None = None


class Decided(NamedTuple):
    """An answer: the index of its `path`, its kind, and its log-probability among all answers."""

    path: int
    kind: str
    score: float


def selected_span(scored: Sequence[PathScores]) -> Decided | None:
    """Choose the best span of the path with the highest logit among paths with text, the first of equal ones."""
    readable = [i for i, scores in enumerate(scored) if scores.span]
    best = max(readable, key=lambda i: scored[i].path, default=None)
    return None if best is None else Decided(best, KINDS[0], scored[best].span.score)


def most_probable(scored: Sequence[PathScores]) -> Decided | None:
    """Choose the most probable answer of all paths: P(path) P(kind | path), for a span times P(start | path) P(end |
    path). Of equal ones the earlier path wins, then span before yes before no."""
    if not scored:
        return None
    paths = log_softmax(np.array([scores.path for scores in scored]))
    options = []
    for place, scores in enumerate(scored):
        kinds = paths[place] + log_softmax(scores.kinds_K.astype(np.float64))
        if scores.span is not None:
            options.append(Decided(place, KINDS[0], float(kinds[0]) + scores.span.score))
        options += [Decided(place, KINDS[k], float(kinds[k])) for k in range(1, len(KINDS))]
    return max(options, key=lambda option: option.score)


def supporting(scores_S: np.ndarray, sentences: Sentences) -> list[tuple[int, int]]:
    """Return (passage, sentence) of every sentence that is more likely than not to support the answer.

    The likeliest of each passage is added, since all support the answer. Sentences without a token are left out.
    """
    numbers, present = sentences.numbers, np.flatnonzero(sentences.there_S).tolist()
    chosen = {i for i in present if scores_S[i] > 0}
    for place in {numbers[i][0] for i in present}:
        chosen.add(max((i for i in present if numbers[i][0] == place), key=lambda i: (scores_S[i], -i)))
    return [numbers[i] for i in sorted(chosen)]
