"""Reading practice for a T5 with random weights: given a snippet of a passage and the passage, write what follows.

Every target token can be found in the input, so the model learns to look things up and copy them within some hundred
steps, which is what answering from a passage needs. T5's span corruption hides 15 % of the tokens, hardly any of which
stands elsewhere in the input; with it a small model still only guessed likely words when practice ended (docs/log.md).
"""

from __future__ import annotations

import numpy as np

SHORTEST = 3  # tokens of a snippet; fewer stand in many places


def continuation(
    tokens: np.ndarray, *, snippet: int, target: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """A snippet of `tokens`, of `SHORTEST` to `snippet` tokens, and the up to `target` tokens that follow it.

    The snippet is shorter where `tokens` would not leave one to follow.
    """
    length = min(int(rng.integers(SHORTEST, snippet + 1)), len(tokens) - 1)
    start = int(rng.integers(0, max(len(tokens) - length - target, 0) + 1))
    end = start + length
    return tokens[start:end], tokens[end : end + target]
