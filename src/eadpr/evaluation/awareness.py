"""Answer awareness (AA): does a retriever score a positive above the same passage without its answer or its evidence?

Scores come from the stage `probe`. Pairs whose two texts are equal after truncation carry a variant ending in `_cut`;
they say nothing about the retriever and are only counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eadpr import engine, tables
from eadpr.questions import select
from eadpr.records import PairScore
from eadpr.supervision.config import Strategy

# Metric -> variant of the pair scores; the last ones where probe.also names the strategy.
AWARENESS = {"aa": "masked", "aa_evidence": "distractor"} | {f"aa_{name}": name for name in get_args(Strategy)}
CUT = "_cut"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BESIDE_POSITIVES = f"""
    SELECT question_id, passage_id, less.variant = $cut AS cut, above.score::DOUBLE AS above, less.score::DOUBLE AS less
    FROM pairs less
    SEMI JOIN asked USING (question_id)
    LEFT JOIN (FROM pairs WHERE variant = 'positive') above USING (question_id, passage_id)
    WHERE less.variant IN ($variant, $cut)
    ORDER BY less.{engine.POSITION}
"""


class Differences(NamedTuple):
    """s(q, p+) - s(q, p') of every pair of one variant, in the order of the scores; `cut` are the questions of those
    left out, one per pair.

    `positives` are s(q, p+).
    """

    question_ids: pa.ChunkedArray
    values: NDArray[np.float64]
    positives: NDArray[np.float64]
    cut: pa.ChunkedArray


def of_file(path: Path, questions: pa.Array) -> dict[str, Differences]:
    """Of each metric that has pairs, of these questions: each score less than that of its positive (same question and
    passage).

    Raises ValueError where a positive's score is missing or a score is not a finite number.
    """
    found = {}
    with engine.connect() as connection:
        engine.view(connection, "pairs", path, PairScore)
        connection.from_arrow(pa.table({"question_id": questions})).create("asked")
        infinite = f"FROM pairs WHERE NOT isfinite(score) ORDER BY {engine.POSITION} LIMIT 1"
        if row := engine.first(connection, infinite):
            raise ValueError(
                f"pair scores: {row['variant']} of question {row['question_id']!r}, passage {row['passage_id']!r} is"
                f" {row['score']}, not a finite number; train the arm again"
            )
        for metric, variant in AWARENESS.items():
            asked = connection.execute(BESIDE_POSITIVES, {"variant": variant, "cut": variant + CUT})
            pairs = asked.to_arrow_reader(tables.ROW_GROUP).read_all()
            if pairs.num_rows:
                found[metric] = _differences(pairs, variant)
    return found


def of_arms(
    records: Path, pairs: Path, question_set: str, trainings: Mapping[str, Sequence[str]]
) -> dict[str, list[dict[str, Differences]]]:
    """As `of_file`, of the questions of a set, for each arm's trainings; the folder `pairs` holds their scores."""
    questions = pa.array(select(records / "question_sets.parquet", [question_set]), pa.string())
    return {arm: [of_file(pairs / f"{name}.parquet", questions) for name in names] for arm, names in trainings.items()}


def _differences(pairs: pa.Table, variant: str) -> Differences:
    cut = pairs.filter(pc.field("cut"))["question_id"]
    pairs = pairs.filter(~pc.field("cut"))
    for row in pairs.filter(pc.field("above").is_null()).slice(0, 1).to_pylist():
        raise ValueError(
            f"pair scores: question {row['question_id']!r}, passage {row['passage_id']!r} has a {variant} but no"
            " positive; run `dvc repro` to rebuild them (stage probe)"
        )
    above, less = pairs["above"].to_numpy(), pairs["less"].to_numpy()
    return Differences(pairs["question_id"], above - less, above, cut)


def aware(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 where the positive scores higher, else 0: a tie counts against the retriever (EADPR, equation 9)."""
    return (values > 0).astype(np.float64)


def quantiles(values: NDArray[np.float64]) -> dict[str, float]:
    """`QUANTILES` of at least one score difference by name (q05, q25, ...), in units of the score (dot product)."""
    found = zip(QUANTILES, np.quantile(values, QUANTILES).tolist(), strict=True)
    return {f"q{round(100 * share):02d}": value for share, value in found}
