"""Answer awareness (AA): does a retriever score a positive above the same passage without its answer or its evidence?
And its controls: above the same passage without a placebo, which says how much a cut alone lowers the score; and does
the passage without a placebo score above the one without answer or evidence, where both were cut?

Scores come from the stage `probe`. A pair in which one of the two texts equals the positive after truncation has a
variant ending in `_cut`; it says nothing about the retriever and is only counted, as are pairs without a placebo.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eadpr.storage import engine, tables
from eadpr.storage.records import PairScore
from eadpr.supervision.config import Strategy

POSITIVE = "positive"


def symbol(form: str) -> str:
    return {POSITIVE: "p⁺", "masked": "p′", "distractor": "p*"}.get(form, "p°")


class Compared(NamedTuple):
    """Two variants of the pair scores; a pair counts for its retriever where the first scores above the second.

    `title`, `meaning` and `beyond`, the reason why pairs are left out, are texts of the report and the explorer.
    """

    above: str
    below: str
    title: str
    meaning: str
    beyond: str = ""

    @property
    def formula(self) -> str:
        return f"s(q, {symbol(self.above)}) > s(q, {symbol(self.below)})"


# By metric. The last ones are there where probe.also names the strategy.
AWARENESS = {
    "aa": Compared(POSITIVE, "masked", "AA", "the positive scores above itself without the answer",
        "the answer being beyond the encoder's cut"),
    "placebo_words": Compared(POSITIVE, "placebo_words", "placebo (words)",
        "the positive scores above itself without as many words elsewhere; need not be high"),
    "controlled_aa": Compared("placebo_words", "masked", "controlled AA",
        "the positive without as many words elsewhere scores above the positive without the answer; chance is 50",
        "answer or placebo being beyond the cut"),
    "placebo_inside": Compared(POSITIVE, "placebo_inside", "placebo (words inside)",
        "the positive scores above itself without as many other words of the evidence; need not be high"),
    "controlled_aa_inside": Compared("placebo_inside", "masked", "controlled AA (inside)",
        "the positive without other words of the evidence scores above the positive without the answer; chance is 50",
        "answer or placebo being beyond the cut"),
    "aa_evidence": Compared(POSITIVE, "distractor", "AA-evidence",
        "the positive scores above itself without its evidence", "the evidence being beyond the cut"),
    "placebo": Compared(POSITIVE, "placebo", "placebo (sentence)",
        "the positive scores above itself without another sentence of like length; need not be high"),
    "placebo_second": Compared(POSITIVE, "placebo_second", "placebo (second sentence)",
        "the positive scores above itself without yet another sentence of like length; need not be high"),
    "controlled_aa_evidence": Compared("placebo", "distractor", "controlled AA-evidence",
        "the positive without another sentence scores above the positive without its evidence; chance is 50",
        "evidence or placebo being beyond the cut"),
}  # fmt: skip
for _name in get_args(Strategy):
    _meaning = f"the positive scores above itself without what “{_name}” takes for evidence"
    AWARENESS[f"aa_{_name}"] = Compared(POSITIVE, _name, f"AA-{_name}", _meaning)
CONTROLLED = [metric for metric, compared in AWARENESS.items() if compared.above != POSITIVE]
CUT, WITHOUT = "_cut", "_without"
SIDE_BY_SIDE = f"""
    SELECT question_id, passage_id, above.score::DOUBLE AS above, below.score::DOUBLE AS below,
        below.variant = $below_cut OR coalesce(above.variant = $above_cut, false) AS cut
    FROM pairs below
    SEMI JOIN asked USING (question_id)
    LEFT JOIN (FROM pairs WHERE variant IN ($above, $above_cut)) above USING (question_id, passage_id)
    WHERE below.variant IN ($below, $below_cut)
        AND ($above = '{POSITIVE}' OR EXISTS (FROM pairs WHERE variant IN ($above, $above_cut)))
    ORDER BY below.{engine.POSITION}
"""


class Differences(NamedTuple):
    """s(q, above) - s(q, below) of every pair of one metric, in the order of the scores, and s(q, above).

    `cut` are the questions of the pairs left out because one text equals the positive, `without` the questions of the
    pairs without a placebo, if any has one; one for each pair.
    """

    question_ids: pa.ChunkedArray
    values: NDArray[np.float64]
    above: NDArray[np.float64]
    cut: pa.ChunkedArray
    without: pa.ChunkedArray


def of_file(path: Path, questions: pa.Array, metrics: Collection[str] = AWARENESS) -> Iterator[tuple[str, Differences]]:
    """Yield each metric with the score differences of these questions' pairs (same question, same passage), one metric
    at a time, as all together may not fit in memory.

    Raises ValueError where a positive's score is missing or a score is not a finite number.
    """
    with engine.connect() as connection:
        engine.view(connection, "pairs", path, PairScore)
        connection.from_arrow(pa.table({"question_id": questions})).create("asked")
        infinite = f"FROM pairs WHERE NOT isfinite(score) ORDER BY {engine.POSITION} LIMIT 1"
        if row := engine.first(connection, infinite):
            raise ValueError(
                f"pair scores: {row['variant']} of question {row['question_id']!r}, passage {row['passage_id']!r} is"
                f" {row['score']}, not a finite number; train the arm again"
            )
        for metric in metrics:
            variants = {"above": AWARENESS[metric].above, "below": AWARENESS[metric].below}
            parameters = variants | {f"{side}_cut": variant + CUT for side, variant in variants.items()}
            pairs = connection.execute(SIDE_BY_SIDE, parameters).to_arrow_reader(tables.ROW_GROUP).read_all()
            yield metric, _differences(pairs, AWARENESS[metric])


def of_trainings(
    paths: Sequence[Path], questions: pa.Array, metrics: Collection[str] = AWARENESS
) -> Iterator[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield each metric with `above` and `values` of all the files' pairs, one file after the other."""
    for by_file in zip(*(of_file(path, questions, metrics) for path in paths), strict=True):
        above = np.concatenate([differences.above for _, differences in by_file])
        values = np.concatenate([differences.values for _, differences in by_file])
        yield by_file[0][0], above, values


def _differences(pairs: pa.Table, compared: Compared) -> Differences:
    cut = pairs.filter(pc.field("cut"))["question_id"]
    pairs = pairs.filter(~pc.field("cut"))
    without = pairs.filter(pc.field("above").is_null())
    if without.num_rows and compared.above == POSITIVE:
        (row,) = without.slice(0, 1).to_pylist()
        raise ValueError(
            f"pair scores: question {row['question_id']!r}, passage {row['passage_id']!r} has a {compared.below} but no"
            " positive; run `dvc repro` to rebuild them (stage probe)"
        )
    pairs = pairs.filter(pc.field("above").is_valid())
    above, below = pairs["above"].to_numpy(), pairs["below"].to_numpy()
    return Differences(pairs["question_id"], above - below, above, cut, without["question_id"])


def aware(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 where the first text scores higher, else 0: a tie counts against the retriever (EADPR, equation 9)."""
    return (values > 0).astype(np.float64)
