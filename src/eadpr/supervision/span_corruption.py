"""T5's span corruption (Raffel et al. 2020, section 3.1.4): spans of the input are replaced by sentinels, and the
output is the sentinels, each followed by what it replaced."""

from __future__ import annotations

import numpy as np


def _composition(total: int, parts: int, rng: np.random.Generator) -> np.ndarray:
    """`parts` positive integers that sum to `total`, every such list equally likely."""
    cuts = np.sort(rng.choice(total - 1, size=parts - 1, replace=False)) + 1
    return np.diff(np.concatenate(([0], cuts, [total])))


def noise_spans(length: int, density: float, mean_span: float, rng: np.random.Generator) -> np.ndarray:
    """Start and end of the spans to hide, shape (S, 2), in order, never touching; the input starts with what is kept.

    Row i is where kept piece i ends and hidden piece i starts, and where that ends.
    round(length · density) tokens are hidden, at least one and never all, in round(hidden / mean_span) spans.
    """
    if length < 2:
        return np.zeros((0, 2), dtype=np.int64)
    hidden = min(max(round(length * density), 1), length - 1)
    spans = min(max(round(hidden / mean_span), 1), hidden, length - hidden)
    lengths = np.stack([_composition(length - hidden, spans, rng), _composition(hidden, spans, rng)], axis=1)
    return np.cumsum(lengths.ravel()).reshape(spans, 2)


def corrupted(
    tokens: np.ndarray, spans: np.ndarray, *, sentinels: np.ndarray, end: int
) -> tuple[np.ndarray, np.ndarray]:
    """Input and target ids; a b c d e with b c and e hidden are "a <0> d <1> </s>" and "<0> b c <1> e <2> </s>"."""
    if len(spans) >= len(sentinels):
        raise ValueError(f"{len(spans)} hidden spans need {len(spans) + 1} sentinels, there are {len(sentinels)}")
    source, target, position = [], [], 0
    for sentinel, (start, stop) in zip(sentinels, spans, strict=False):
        source += [tokens[position:start], [sentinel]]
        target += [[sentinel], tokens[start:stop]]
        position = stop
    source += [tokens[position:], [end]]
    target += [[sentinels[len(spans)]], [end]]
    return np.concatenate(source).astype(np.int64), np.concatenate(target).astype(np.int64)
