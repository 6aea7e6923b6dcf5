"""An arm as near-duplicates join the corpus: these, and the questions' positives, are encoded alone and scored; where
their scores are higher they stand in the arm's ranking, of equal ones behind it. Nothing is ranked again.

Scores are computed as `exact.rescore` does: float32 of the inner product, in float64, of a float16 passage vector and
a float32 question vector. Shapes: Q questions, A added passages, C candidates among look-alikes, K ranks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from eadpr.evaluation.outcomes import MeasuredQuestions, Values
from eadpr.evaluation.question_tables import RankedAmong
from eadpr.robustness.evaluate import Joined, RobustnessInputs, RobustnessSettings
from eadpr.runtime import cache, files, machine
from eadpr.runtime.progress import progress
from eadpr.search.encode import embed, encode
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage, Ranked
from eadpr.training.encoder import load

BLOCK_QUESTIONS, BLOCK_ADDED = 1_024, 4_096  # scored at a time
POSITIVE = -1  # in place of the number of a near-duplicate


class Candidates(NamedTuple):
    """Near-duplicates and positives: the row of the question of each, its number (or POSITIVE), and its place
    among all that is encoded."""

    rows_C: NDArray[np.int64]
    numbers_C: NDArray[np.int64]
    places_C: NDArray[np.int64]


def rankings(joined: Joined, inputs: RobustnessInputs, settings: RobustnessSettings) -> Callable[[int, Path], Values]:
    """Return a function that ranks with an arm's vectors, a `robustness.Rankings`."""
    depth, added = settings.evaluate.depth, joined.added
    last_Q = _last_scores(inputs.ranking / "evaluate.parquet", joined.evaluated, depth)
    candidates, positives = _candidates(joined, inputs.records)
    standing: dict[str, list[RankedAmong]] = {}  # near-duplicates in a question's ranking, whose ranks depend on counts
    scores_C = np.empty(len(candidates.rows_C), np.float32)
    if added.passages:
        encoder = load(inputs.model, "question").to(machine.device())
        token_ids = encoder.question_ids([question.question for question in joined.questions])
        questions_QD = embed(encoder, token_ids, device=machine.device())
        key = cache.fingerprint(files.tree_sha256(inputs.model), files.tree_sha256(inputs.near_duplicates))
        # `encode` keeps vectors by content, so that other counts with the same highest one encode nothing.
        with cache.workspace("robustness", key) as folder:
            passages, vectors = folder / "passages.parquet", folder / "vectors"
            tables.write(passages, Passage, [*added.passages, *positives])
            encode(passages, inputs.model, vectors, settings=settings.encode, hardware=settings.hardware)
            for place, rows, scores in _scored(joined, Vectors(vectors), questions_QD, last_Q, candidates, scores_C):
                rows_of_question = standing.setdefault(question_id := joined.questions[place].id, [])
                for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
                    origin = added.question_ids[row], int(added.numbers[row])
                    rows_of_question.append(RankedAmong(question_id, None, *origin, 0, score))
            files.discard(folder)

    def rank(count: int, out: Path) -> Values:
        tables.write(out, RankedAmong, _merged(inputs.ranking, standing, count=count, depth=depth))
        return first_among(candidates, scores_C, count)

    return rank


def _scored(
    joined: Joined,
    vectors: Vectors,
    questions_QD: NDArray[np.float32],
    last_Q: NDArray[np.float32],
    candidates: Candidates,
    scores_C: NDArray[np.float32],
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.float32]]]:
    """Yield question, rows and scores of the near-duplicates that stand above its last rank; fills in `scores_C`."""
    rows_C, _, places_C = candidates
    count = len(joined.added.passages)
    with progress("robustness", len(questions_QD), "questions") as advance:
        for start in range(0, len(questions_QD), BLOCK_QUESTIONS):
            asked_DQ = torch.from_numpy(questions_QD[start : start + BLOCK_QUESTIONS]).double().T
            end = start + asked_DQ.shape[1]
            for first, block in vectors.blocks(BLOCK_ADDED):
                scores_QA = (torch.from_numpy(block.astype(np.float64)) @ asked_DQ).T.float().numpy()
                here_C = (rows_C >= start) & (rows_C < end) & (places_C >= first) & (places_C < first + len(block))
                scores_C[here_C] = scores_QA[rows_C[here_C] - start, places_C[here_C] - first]
                high_QA = scores_QA[:, : max(0, count - first)] > last_Q[start:end, None]  # no positive joins again
                for row in np.flatnonzero(high_QA.any(axis=1)).tolist():
                    columns = np.flatnonzero(high_QA[row])
                    columns = columns[joined.joins(start + row, columns + first)]
                    yield start + row, columns + first, scores_QA[row, columns]
            advance(end - start)


def _merged(
    ranking: Path, standing: Mapping[str, Sequence[RankedAmong]], *, count: int, depth: int
) -> Iterator[RankedAmong]:
    """Yield the first `depth` of a folder's ranking and near-duplicates of a number below `count`; of equal scores the
    corpus's passage is first."""
    ranked = tables.rows(ranking / "evaluate.parquet", Ranked)
    for question_id, passages in groupby(ranked, key=attrgetter("question_id")):
        rows = [RankedAmong(question_id, row.passage_id, None, None, 0, row.score) for row in passages]
        rows += [added for added in standing.get(question_id, ()) if added.number < count]
        rows.sort(key=attrgetter("score"), reverse=True)  # keeps the order of equals
        yield from (row._replace(rank=rank) for rank, row in enumerate(rows[:depth], start=1))


def _candidates(joined: Joined, records: Path) -> tuple[Candidates, list[Passage]]:
    """Return the near-duplicates and, behind them, the positives; then the positives' passages."""
    row_of = {question.id: row for row, question in enumerate(joined.questions)}
    added = joined.added
    candidates = [
        (row_of[question_id], number, place)
        for place, (question_id, number) in enumerate(zip(added.question_ids, added.numbers, strict=True))
        if question_id in row_of
    ]
    places: dict[str, int] = {}
    for question_id in {joined.questions[row].id: None for row, *_ in candidates}:
        for passage_id in joined.positives.get(question_id, ()):
            place = len(added.passages) + places.setdefault(passage_id, len(places))
            candidates.append((row_of[question_id], POSITIVE, place))
    store = PassageStore(records / "passages.parquet")
    rows = store.rows([*places])
    texts = zip(places, store.titles(rows), store.texts(rows), strict=True)
    columns = np.array(candidates, dtype=np.int64).reshape(-1, 3).T
    return Candidates(*columns), [Passage(*fields, None) for fields in texts]


def first_among(candidates: Candidates, scores_C: NDArray[np.float32], count: int) -> Values:
    """Return, for the questions with a positive and near-duplicates of numbers below `count`, 1 if the best positive
    scores above all of them, else 0; a tie counts against the retriever, as in AA."""
    rows_C, numbers_C, _ = candidates
    best = np.full((2, int(rows_C.max(initial=-1)) + 1), -np.inf)
    for side, of_side in enumerate((numbers_C == POSITIVE, (numbers_C != POSITIVE) & (numbers_C < count))):
        np.maximum.at(best[side], rows_C[of_side], scores_C[of_side])
    rows = np.flatnonzero(np.isfinite(best).all(axis=0))
    return Values(rows, (best[0] > best[1])[rows].astype(np.float64))


def _last_scores(ranking: Path, evaluated: MeasuredQuestions, depth: int) -> NDArray[np.float32]:
    """Return the scores (Q,) at rank `depth`; -inf where a ranking ends before."""
    table = tables.read(ranking, Ranked, ["question_id", "rank", "score"])
    table = table.filter(pc.field("rank") <= depth)
    scores_QK = np.full((evaluated.table.num_rows, depth), -np.inf, np.float32)
    rows = pc.index_in(table["question_id"], value_set=evaluated.ids).to_numpy()
    scores_QK[rows, table["rank"].to_numpy() - 1] = table["score"].to_numpy()
    return scores_QK[:, -1]
