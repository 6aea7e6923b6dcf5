"""Metrics of the paths that a two-hop ranking was made of (MDR: Xiong et al., 2021), for questions with hops.

`all<k>` (R@k, P-EM), `pr<k>`, `path_recall<k>` and `hop1_recall<k>` look at the k/2 best paths, and not at the k best
passages. Q questions x K paths, best first, x H hops: an entry is the number of the question's supporting passage at
that hop, counted from 0, or -1 for another passage or no path.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eadpr.evaluation.outcomes import MeasuredQuestions, Values
from eadpr.storage import tables
from eadpr.storage.records import Question, RankedPath

Hops = NDArray[np.int64]

METRICS = ("all", "pr", "path_recall", "hop1_recall")


def path_metrics(hops_QKH: Hops, needed_Q: NDArray[np.integer], paths: int) -> dict[str, NDArray[np.float64]]:
    """Return `METRICS` over the first paths, each 1 or 0.

    all: the paths hold all supporting passages, `needed_Q` many; pr: they hold any; path_recall: one path is just the
    supporting passages, in any order; hop1_recall: one path begins with a supporting passage.
    """
    cut = hops_QKH[:, :paths]
    supporting = cut >= 0
    complete_QK = (_occurs(cut, axes=(2,)).sum(2) == needed_Q[:, None]) & supporting.all(axis=2)
    values = (
        _occurs(cut, axes=(1, 2)).sum(1) == needed_Q,
        supporting.any(axis=(1, 2)),
        complete_QK.any(axis=1),
        supporting[:, :, 0].any(axis=1),
    )
    return {name: column.astype(np.float64) for name, column in zip(METRICS, values, strict=True)}


def _occurs(hops: Hops, *, axes: tuple[int, ...]) -> NDArray[np.bool_]:
    """Replace `axes` by a last axis over supporting passages: whether each occurs along them."""
    numbers = np.arange(hops.max(initial=-1) + 1)
    return (hops[..., None] == numbers).any(axis=axes)


def measure_paths(path: Path, questions: MeasuredQuestions, records: Path, all_at: Sequence[int]) -> dict[str, Values]:
    """Return every metric of the table of paths `path`."""
    return path_values(tables.rows(path, RankedPath), list(questions.records(records)), all_at)


def path_values(paths: Iterable[RankedPath], questions: Sequence[Question], all_at: Sequence[int]) -> dict[str, Values]:
    """Return every metric of paths over the questions with hops; a question without paths counts as wrong.

    Raises ValueError for an odd cut-off, and if no question has hops.
    """
    if odd := [k for k in all_at if k % 2]:
        raise ValueError(f"evaluate.all_at: {odd[0]} is odd, but a path has two passages; give even cut-offs")
    rows = np.array([i for i, question in enumerate(questions) if question.hops], dtype=np.int64)
    if not len(rows):
        raise ValueError("no question of sets.evaluate has hops; evaluate paths on a set of multi-hop questions")
    hops_QKH = _number_hops(paths, questions, max(all_at, default=2) // 2)
    needed = np.array([len(set(questions[i].hops)) for i in rows])
    metrics = {k: path_metrics(hops_QKH[rows], needed, k // 2) for k in all_at}
    return {f"{name}{k}": Values(rows, metrics[k][name]) for name in METRICS for k in all_at}


def _number_hops(paths: Iterable[RankedPath], questions: Sequence[Question], most: int) -> Hops:
    """Return (Q, most, 2): the number of the supporting passage at each hop of the first `most` paths, or -1."""
    numbers = {
        question.id: {hop: i for i, hop in enumerate(dict.fromkeys(question.hops or ()))} for question in questions
    }
    row_of = {question.id: i for i, question in enumerate(questions)}
    hops_QKH = np.full((len(questions), most, 2), -1, dtype=np.int64)
    for path in paths:
        if path.rank <= most:
            number = numbers[path.question_id]
            hops_QKH[row_of[path.question_id], path.rank - 1] = [number.get(hop, -1) for hop in path.passage_ids]
    return hops_QKH
