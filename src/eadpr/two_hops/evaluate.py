"""Metrics of the paths that a two-hop ranking was made of (MDR: Xiong et al., 2021), for questions with hops.

`all<k>` (R@k, P-EM), `pr<k>`, `path_recall<k>` and `hop1_recall<k>` look at the k/2 best paths, not at k passages.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from eadpr.evaluation.outcomes import MeasuredQuestions, Values
from eadpr.storage import tables
from eadpr.storage.records import Question, RankedPath

METRICS = ("all", "pr", "path_recall", "hop1_recall")


def path_metrics(paths: Sequence[Sequence[str]], hops: set[str]) -> tuple[bool, bool, bool, bool]:
    """Return `METRICS` of one question's paths, which are passage ids; `hops` are its supporting passages.

    all: the paths hold all supporting passages; pr: they hold any; path_recall: one path is just the supporting
    passages, in any order; hop1_recall: one path begins with a supporting passage.
    """
    passages = {passage_id for path in paths for passage_id in path}
    return (
        hops <= passages,
        bool(hops & passages),
        any(hops == set(path) for path in paths),
        any(path[0] in hops for path in paths),
    )


def measure_paths(path: Path, questions: MeasuredQuestions, records: Path, all_at: Sequence[int]) -> dict[str, Values]:
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
    best: defaultdict[str, list[list[str]]] = defaultdict(list)
    for path in paths:
        best[path.question_id].append(path.passage_ids)
    scores = {}
    for k in all_at:
        cut = [(best[questions[i].id][: k // 2], set(questions[i].hops)) for i in rows]
        scores[k] = np.array([path_metrics(*of_question) for of_question in cut], dtype=np.float64)
    return {f"{name}{k}": Values(rows, scores[k][:, i]) for i, name in enumerate(METRICS) for k in all_at}
