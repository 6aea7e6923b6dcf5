"""Whether the paths that a two-hop ranking was made of hold all supporting passages (MDR: Xiong et al., 2021).

`all<k>` (R@k, P-EM) looks at the k/2 best paths of a question with hops, not at k passages.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from eadpr.evaluation.outcomes import MeasuredQuestions, Values
from eadpr.storage import tables
from eadpr.storage.records import Question
from eadpr.two_hops.config import RankedPath


def measure_paths(path: Path, questions: MeasuredQuestions, records: Path, all_at: Sequence[int]) -> dict[str, Values]:
    return path_values(tables.rows(path, RankedPath), list(questions.records(records)), all_at)


def path_values(paths: Iterable[RankedPath], questions: Sequence[Question], all_at: Sequence[int]) -> dict[str, Values]:
    """Return `all<k>` over the questions with hops, 1 where the best paths, if any, hold all supporting passages.

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
    values = {}
    for k in all_at:
        hits = [{*chain(*best[questions[i].id][: k // 2])}.issuperset(questions[i].hops) for i in rows]
        values[f"all{k}"] = Values(rows, np.array(hits, dtype=np.float64))
    return values
