"""Answer awareness (AA): does a retriever score a positive above the same passage without its answer or its evidence?
And its controls: above the same passage without a placebo, which says how much a cut alone lowers the score; and does
the passage without a placebo score above the one without answer or evidence, where both were cut?

Scores come from the stage `probe`. A pair in which one of the two texts equals the positive after truncation has a
variant ending in `_cut`; it says nothing about the retriever and is only counted, as are pairs without a placebo.
"""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eadpr.storage import tables
from eadpr.storage.records import PairScore
from eadpr.supervision.config import Strategy

POSITIVE = "positive"
SYMBOLS = dict.fromkeys(("distractor", *get_args(Strategy)), "p*") | {POSITIVE: "p⁺", "masked": "p′"}  # placebos: p°


class Compared(NamedTuple):
    """A table of awareness.toml, which explains the fields."""

    above: str
    below: str
    title: str
    meaning: str
    beyond: str = ""

    @property
    def formula(self) -> str:
        return f"s(q, {SYMBOLS.get(self.above, 'p°')}) > s(q, {SYMBOLS.get(self.below, 'p°')})"


TABLES = tomllib.loads(Path(__file__).with_name("awareness.toml").read_text(encoding="utf-8"))
AWARENESS = {metric: Compared(**table) for metric, table in TABLES.items()}
for _name in get_args(Strategy):
    _meaning = f"the positive scores above itself without what “{_name}” takes for evidence"
    AWARENESS[f"aa_{_name}"] = Compared(POSITIVE, _name, f"AA-{_name}", _meaning)
POINTING = ("evidence1", "evidence_top1")  # does the sentence that a question matches best hold the evidence?
CONTROLLED = [metric for metric, compared in AWARENESS.items() if compared.above != POSITIVE]
CUT, WITHOUT = "_cut", "_without"


class Differences(NamedTuple):
    """s(q, above) - s(q, below) of every pair of one metric, in the order of the scores, and s(q, above).

    `cut` are the questions of the pairs left out because one text equals the positive, `without` the questions of the
    pairs without a placebo, if any has one; one for each pair.
    """

    question_ids: NDArray[np.object_]
    values: NDArray[np.float64]
    above: NDArray[np.float64]
    cut: NDArray[np.object_]
    without: NDArray[np.object_]


def of_file(path: Path, questions: pa.Array) -> Iterator[tuple[str, Differences]]:
    """Yield each metric with the score differences of these questions' pairs (same question, same passage)."""
    import pandas as pd

    rows = tables.read(path, PairScore).to_pandas()
    if not np.isfinite(rows["score"]).all():
        raise ValueError(f"{path}: a score is not a finite number; train the arm again")
    pair = ["question_id", "passage_id"]
    scores = rows.set_index([*pair, "variant"])["score"].astype(np.float64).unstack()
    scores = scores.reindex(pd.MultiIndex.from_frame(rows[pair].drop_duplicates()))  # the order of the file
    present = set(scores.columns)
    scores = scores[scores.index.isin(questions.to_pylist(), level="question_id")]
    for metric, compared in AWARENESS.items():
        variants = compared.above, compared.below, compared.above + CUT, compared.below + CUT
        columns = scores.reindex(columns=variants).to_numpy().T
        if present.isdisjoint((compared.above, compared.above + CUT)):
            columns = np.full_like(columns, np.nan)
        yield metric, _compare(scores.index.get_level_values("question_id").to_numpy(), *columns)


def of_trainings(paths: Sequence[Path], questions: pa.Array) -> Iterator[tuple[str, Differences]]:
    """Yield each metric with the differences of all the files' pairs, one file after the other."""
    for by_file in zip(*(of_file(path, questions) for path in paths), strict=True):
        columns = zip(*(differences for _, differences in by_file), strict=True)
        yield by_file[0][0], Differences(*map(np.concatenate, columns))


def _compare(
    question_ids: NDArray[np.object_], above: NDArray, below: NDArray, above_cut: NDArray, below_cut: NDArray
) -> Differences:
    """Compare the scores of pairs, NaN where a variant does not exist."""
    cut = ~np.isnan(below_cut) | (~np.isnan(below) & ~np.isnan(above_cut))
    has_below = ~np.isnan(below) & ~cut
    counted, without = has_below & ~np.isnan(above), has_below & np.isnan(above)
    values, above = above[counted] - below[counted], above[counted]
    return Differences(question_ids[counted], values, above, question_ids[cut], question_ids[without])


def aware(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 where the first text scores higher, else 0: a tie counts against the retriever (EADPR, equation 9)."""
    return (values > 0).astype(np.float64)
