"""Answer awareness (AA): does a retriever score a positive above the same passage without its answer or its evidence?

Scores come from the stage `probe`. Pairs whose two texts are equal after truncation carry a variant ending in `_cut`;
they say nothing about the retriever and are only counted.
"""

from __future__ import annotations

from typing import NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eadpr.records import PairScore
from eadpr.supervision.config import Strategy

# Metric -> variant of the pair scores; the last ones where probe.also names the strategy.
AWARENESS = {"aa": "masked", "aa_evidence": "distractor"} | {f"aa_{name}": name for name in get_args(Strategy)}
CUT = "_cut"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Differences(NamedTuple):
    """s(q, p+) - s(q, p') of every pair of one variant, in the order of the scores; `cut` counts those left out.

    `positives` are s(q, p+).
    """

    question_ids: list[str]
    values: NDArray[np.float64]
    positives: NDArray[np.float64]
    cut: int


def differences(pairs: pa.Table, variant: str, questions: frozenset[str] | None = None) -> Differences:
    """Subtract each `variant` score from that of its positive (same question and passage); all questions by default.

    Raises ValueError where a positive's score is missing or a score is not a finite number.
    """
    rows = list(zip(*(pairs.column(name).to_pylist() for name in PairScore._fields), strict=True))
    positives: dict[tuple[str, str], float] = {}
    for question_id, passage_id, kind, score in rows:
        if not np.isfinite(score):
            pair = f"question {question_id!r}, passage {passage_id!r}"
            raise ValueError(f"pair scores: {kind} of {pair} is {score}, not a finite number; train the arm again")
        if kind == "positive":
            positives[question_id, passage_id] = score
    question_ids, above, below, cut = [], [], [], 0
    for question_id, passage_id, kind, score in rows:
        if questions is not None and question_id not in questions:
            continue
        if kind == variant + CUT:
            cut += 1
        elif kind == variant:
            if (question_id, passage_id) not in positives:
                raise ValueError(
                    f"pair scores: question {question_id!r}, passage {passage_id!r} has a {variant} but no positive;"
                    " run `dvc repro` to rebuild them (stage probe)"
                )
            question_ids.append(question_id)
            above.append(positives[question_id, passage_id])
            below.append(score)
    scores = np.array(above, dtype=np.float64)
    return Differences(question_ids, scores - np.array(below, dtype=np.float64), scores, cut)


def aware(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 where the positive scores higher, else 0: a tie counts against the retriever (EADPR, equation 9)."""
    return (values > 0).astype(np.float64)


def quantiles(values: NDArray[np.float64]) -> dict[str, float]:
    """`QUANTILES` of at least one score difference by name (q05, q25, ...), in units of the score (dot product)."""
    found = zip(QUANTILES, np.quantile(values, QUANTILES).tolist(), strict=True)
    return {f"q{round(100 * share):02d}": value for share, value in found}
