"""What is right about the paths that a two-hop ranking was made of (MDR: Xiong et al., 2021), per question with hops.

`all<k>` (R@k, P-EM) looks at the k/2 best paths in place of the k best passages, and so do `pr<k>`, `path_recall<k>`
and `hop1_recall<k>`. Metrics take Q questions x K paths, best first, x H hops: an entry says which of the question's
supporting passages stands there, counted from 0, or -1 for another passage or where there is no path; `needed_Q` counts
the supporting passages.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eadpr.evaluation.outcomes import MeasuredQuestions, Values
from eadpr.storage import tables
from eadpr.storage.records import Question, RankedPath

Places = NDArray[np.int64]
Floats = NDArray[np.float64]


METRICS = ("all", "pr", "path_recall", "hop1_recall")


def path_metrics(places_QKH: Places, needed_Q: NDArray[np.integer], paths: int) -> dict[str, Floats]:
    """Of `METRICS` over the first paths, 1 or 0: they hold all supporting passages between them (P-EM; R@k over the
    first k/2 paths); any of these (PR); one of them is just these, in any order; one begins with one of these."""
    cut = places_QKH[:, :paths]
    supporting = cut >= 0
    whole_QK = (_found(cut, axes=(2,)).sum(2) == needed_Q[:, None]) & supporting.all(axis=2)
    found = (
        _found(cut, axes=(1, 2)).sum(1) == needed_Q,
        supporting.any(axis=(1, 2)),
        whole_QK.any(axis=1),
        supporting[:, :, 0].any(axis=1),
    )
    return dict(zip(METRICS, (of.astype(np.float64) for of in found), strict=True))


def _found(places: Places, *, axes: tuple[int, ...]) -> NDArray[np.bool_]:
    """Whether each supporting passage occurs along `axes`, which a last axis of the passages takes the place of."""
    numbers = np.arange(places.max(initial=-1) + 1)
    return (places[..., None] == numbers).any(axis=axes)


def measured(path: Path, questions: MeasuredQuestions, records: Path, all_at: Sequence[int]) -> dict[str, Values]:
    """Every metric of the table of paths `path`."""
    return path_values(tables.rows(path, RankedPath), list(questions.records(records)), all_at)


def path_values(paths: Iterable[RankedPath], questions: Sequence[Question], all_at: Sequence[int]) -> dict[str, Values]:
    """Every metric of paths, over the questions with hops; one without paths has found nothing.

    Raises ValueError for an odd cut-off, paths of a question twice or not in the order of their ranks, and where no
    question has hops.
    """
    if odd := [k for k in all_at if k % 2]:
        raise ValueError(f"evaluate.all_at: {odd[0]} is odd, but a path has two passages; give even cut-offs")
    hops = np.array([i for i, question in enumerate(questions) if question.hops], dtype=np.int64)
    if not len(hops):
        raise ValueError("no question of sets.evaluate has hops; evaluate paths on a set of multi-hop questions")
    places = _places(paths, questions, max(all_at, default=2) // 2)
    needed = np.array([len(set(questions[i].hops)) for i in hops])
    found = {k: path_metrics(places[hops], needed, k // 2) for k in all_at}
    return {f"{name}{k}": Values(hops, found[k][name]) for name in METRICS for k in all_at}


def _places(paths: Iterable[RankedPath], questions: Sequence[Question], most: int) -> Places:
    """(Q, most, 2): the number of the supporting passage at each place, -1 for another or none."""
    place = {question.id: i for i, question in enumerate(questions)}
    places = np.full((len(questions), most, 2), -1, dtype=np.int64)
    seen: set[str] = set()
    for question_id, group in groupby(paths, key=attrgetter("question_id")):
        own = list(group)
        if question_id not in place:
            raise ValueError(f"paths: question {question_id!r} is in none of sets.evaluate; run `dvc repro`")
        if question_id in seen or [path.rank for path in own] != list(range(1, len(own) + 1)):
            raise ValueError(f"paths: question {question_id!r} stands in two places, or its ranks are not 1, 2, 3, …")
        seen.add(question_id)
        number = {passage_id: i for i, passage_id in enumerate(dict.fromkeys(questions[place[question_id]].hops or ()))}
        for k, path in enumerate(own[:most]):
            places[place[question_id], k] = [number.get(passage_id, -1) for passage_id in path.passage_ids]
    return places
