"""Whether a predicted answer is right: exact match and F1 of SQuAD's evaluation (Rajpurkar et al., 2016), as readers of
open-domain questions are measured (Karpukhin et al., 2020, section 6.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import regex

from eadpr.text import exact_match_normal, nfd

_FLAGS = regex.IGNORECASE | regex.UNICODE | regex.MULTILINE


def exact_match(prediction: str, answers: Sequence[str], kind: str = "string") -> bool:
    """Whether the prediction is one of the answers in its normal form, or the whole of it matches a `regex`.

    A prediction of nothing is never right, not even where an answer's normal form is empty.
    """
    if kind == "regex":
        return any(_matches_whole(pattern, prediction.strip()) for pattern in answers)
    return bool(prediction.strip()) and exact_match_normal(prediction) in map(exact_match_normal, answers)


def f1(prediction: str, answers: Sequence[str], kind: str = "string") -> float:
    """The best F1 of the words of the prediction and of an answer, both in normal form; for a `regex`, whose words are
    not known, 1 for an exact match and else 0."""
    if kind == "regex" or exact_match(prediction, answers, kind):
        return float(exact_match(prediction, answers, kind))
    return max((_f1(prediction, answer) for answer in answers), default=0.0)


def _f1(prediction: str, answer: str) -> float:
    found, sought = (exact_match_normal(side).split() for side in (prediction, answer))
    common = sum((Counter(found) & Counter(sought)).values())
    return 2 * common / (len(found) + len(sought)) if common else 0.0


def _matches_whole(pattern: str, prediction: str) -> bool:
    compiled = _compiled(pattern)
    return bool(prediction) and compiled is not None and compiled.fullmatch(nfd(prediction)) is not None


@lru_cache(maxsize=65_536)
def _compiled(pattern: str) -> regex.Pattern | None:
    """None for one that is no pattern in its NFD form, as in `text.has_answer`."""
    try:
        return regex.compile(nfd(pattern), _FLAGS)
    except (regex.error, ValueError, RecursionError):
        return None
