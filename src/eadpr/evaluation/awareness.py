"""Answer awareness (AA): does a retriever score a positive above the same passage without its answer or its evidence?

Scores come from the stage `probe`. Pairs whose two texts are equal after truncation carry a variant ending in `_cut`;
they say nothing about the retriever and are only counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eadpr import tables
from eadpr.records import PairScore
from eadpr.supervision.config import Strategy

# Metric -> variant of the pair scores; the last ones where probe.also names the strategy.
AWARENESS = {"aa": "masked", "aa_evidence": "distractor"} | {f"aa_{name}": name for name in get_args(Strategy)}
CUT = "_cut"
BLOCK = 2**18  # scores read at a time; limits memory and decides nothing
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


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
    """Of each metric that has pairs, of these questions. The file is read in blocks; it holds the pairs of a question
    side by side, as `probe` writes them."""
    found: dict[str, list[Differences]] = {}
    for block in _blocks(path):
        for metric, variant in AWARENESS.items():
            of_block = differences(block, variant, questions)
            if len(of_block.values) or len(of_block.cut):
                found.setdefault(metric, []).append(of_block)
    return {metric: _joined(found[metric]) for metric in AWARENESS if metric in found}


def _blocks(path: Path) -> Iterator[pa.Table]:
    """Tables of whole questions."""
    waiting = tables.schema(PairScore).empty_table()
    for batch in tables.batches(path, PairScore, size=BLOCK):
        waiting = pa.concat_tables([waiting, pa.table(batch)])
        ids = waiting["question_id"]
        others = np.flatnonzero(pc.not_equal(ids, ids[-1]).to_numpy())
        if len(others):
            whole = int(others[-1]) + 1
            yield waiting.slice(0, whole)
            waiting = waiting.slice(whole)
    yield waiting


def _joined(parts: Sequence[Differences]) -> Differences:
    ids, values, positives, cut = zip(*parts, strict=True)
    ids, cut = (
        pa.chunked_array([chunk for part in found for chunk in part.chunks], pa.string()) for found in (ids, cut)
    )
    return Differences(ids, np.concatenate(values), np.concatenate(positives), cut)


def differences(pairs: pa.Table, variant: str, questions: pa.Array | None = None) -> Differences:
    """Subtract each `variant` score from that of its positive (same question and passage); all questions by default.

    Raises ValueError where a positive's score is missing or a score is not a finite number.
    """
    pairs = pairs.combine_chunks()
    scores = pairs["score"].to_numpy().astype(np.float64)
    if len(wrong := np.flatnonzero(~np.isfinite(scores))):
        row, pair = _row(pairs, wrong[0])
        raise ValueError(
            f"pair scores: {row['variant']} of {pair} is {row['score']}, not a finite number; train the arm again"
        )
    less, cut = (np.flatnonzero(_is(pairs, name)) for name in (variant, variant + CUT))
    if questions is not None and (len(less) or len(cut)):
        asked = pc.is_in(pairs["question_id"], value_set=questions).to_numpy()
        less, cut = less[asked[less]], cut[asked[cut]]
    above = np.zeros(0)
    if len(less):
        keys, positive = _keys(pairs), np.flatnonzero(_is(pairs, "positive"))
        order = positive[np.argsort(keys[positive], kind="stable")]
        place = np.searchsorted(keys[order], keys[less])
        found = np.append(keys[order], -1)[place] == keys[less]
        if not found.all():
            _, pair = _row(pairs, less[~found][0])
            raise ValueError(
                f"pair scores: {pair} has a {variant} but no positive; run `dvc repro` to rebuild them (stage probe)"
            )
        above = scores[order[place]]
    ids = pc.take(pairs["question_id"], pa.array(np.concatenate([less, cut])))
    return Differences(ids[: len(less)], above - scores[less], above, ids[len(less) :])


def _is(pairs: pa.Table, variant: str) -> NDArray[np.bool_]:
    return pc.equal(pairs["variant"], variant).to_numpy()


def _row(pairs: pa.Table, row: int) -> tuple[dict[str, Any], str]:
    (found,) = pairs.slice(int(row), 1).to_pylist()
    return found, f"question {found['question_id']!r}, passage {found['passage_id']!r}"


def _keys(pairs: pa.Table) -> NDArray[np.int64]:
    """A number for each pair of question and passage."""
    questions, passages = (
        pairs[name].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
        for name in ("question_id", "passage_id")
    )
    return questions * (passages.max(initial=0) + 1) + passages


def aware(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 where the positive scores higher, else 0: a tie counts against the retriever (EADPR, equation 9)."""
    return (values > 0).astype(np.float64)


def quantiles(values: NDArray[np.float64]) -> dict[str, float]:
    """`QUANTILES` of at least one score difference by name (q05, q25, ...), in units of the score (dot product)."""
    found = zip(QUANTILES, np.quantile(values, QUANTILES).tolist(), strict=True)
    return {f"q{round(100 * share):02d}": value for share, value in found}
