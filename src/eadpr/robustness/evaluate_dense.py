"""An arm as near-duplicates join the corpus: these, and the positives beside them, are encoded alone and scored; where
their scores are higher they stand in the arm's ranking, of equal ones behind it. Nothing is ranked anew.

Scores are those of `exact.rescore`: float32 of the inner product, in float64, of a float16 passage vector and a float32
question vector. Shapes: Q questions, A added passages, C candidates among look-alikes, K ranks.
"""

from collections import Counter
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
KEPT = 4_096  # near-duplicates above a question's last rank, before those that no ranking has room for go
POSITIVE = -1  # in place of the number of a near-duplicate


class Candidates(NamedTuple):
    """Near-duplicates and the positives beside them: the row of the question of each, its number (or POSITIVE), and its
    place among all that is encoded."""

    rows_C: NDArray[np.int64]
    numbers_C: NDArray[np.int64]
    places_C: NDArray[np.int64]


def rankings(given: Joined, inputs: RobustnessInputs, settings: RobustnessSettings) -> Callable[[int, Path], Values]:
    """As `robustness.Rankings`."""
    depth, added = settings.evaluate.depth, given.added
    last_Q = _last_scores(inputs.ranking / "evaluate.parquet", given.measured, depth)
    candidates, beside = _candidates(given, inputs.records)
    standing: dict[str, list[RankedAmong]] = {}  # near-duplicates in a question's ranking, whose ranks depend on counts
    scores_C = np.empty(len(candidates.rows_C), np.float32)
    if added.passages:
        encoder = load(inputs.model, "question").to(machine.device())
        asked = encoder.question_ids([question.question for question in given.questions])
        questions_QD = embed(encoder, asked, device=machine.device())
        key = cache.fingerprint(files.tree_sha256(inputs.model), files.tree_sha256(inputs.near_duplicates))
        # `encode` keeps vectors by content, so that other counts with the same highest one encode nothing.
        with cache.workspace("robustness", key) as folder:
            passages, vectors = folder / "passages.parquet", folder / "vectors"
            tables.write(passages, Passage, [*added.passages, *beside])
            encode(passages, inputs.model, vectors, settings=settings.encode, hardware=settings.hardware)
            for place, rows, scores in _scored(given, Vectors(vectors), questions_QD, last_Q, candidates, scores_C):
                own = standing.setdefault(question_id := given.questions[place].id, [])
                for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
                    made = added.question_ids[row], int(added.numbers[row])
                    own.append(RankedAmong(question_id, None, *made, 0, score))
                if len(own) > KEPT:
                    own[:] = _best(own, depth)
            files.discard(folder)

    def rank(count: int, out: Path) -> Values:
        tables.write(out, RankedAmong, _merged(inputs.ranking, standing, count=count, depth=depth))
        return first_among(candidates, scores_C, count)

    return rank


def _scored(
    given: Joined,
    vectors: Vectors,
    questions_QD: NDArray[np.float32],
    last_Q: NDArray[np.float32],
    candidates: Candidates,
    scores_C: NDArray[np.float32],
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.float32]]]:
    """Question, rows and scores of the near-duplicates that stand above its last rank; fills in `scores_C`."""
    rows_C, _, places_C = candidates
    count = len(given.added.passages)
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
                    columns = columns[given.joins(start + row, columns + first)]
                    yield start + row, columns + first, scores_QA[row, columns]
            advance(end - start)


def _best(standing: Sequence[RankedAmong], depth: int) -> list[RankedAmong]:
    """The `depth` best of each number: no count shows more. Equals keep their order."""
    found: list[RankedAmong] = []
    numbers: Counter[int | None] = Counter()
    for one in sorted(standing, key=attrgetter("score"), reverse=True):
        numbers[one.number] += 1
        if numbers[one.number] <= depth:
            found.append(one)
    return found


def _merged(
    ranking: Path, standing: Mapping[str, Sequence[RankedAmong]], *, count: int, depth: int
) -> Iterator[RankedAmong]:
    """The first `depth` of a folder's ranking and near-duplicates of a number below `count`; of equal scores the
    corpus's passage is first."""
    ranked = tables.rows(ranking / "evaluate.parquet", Ranked)
    for question_id, of_one in groupby(ranked, key=attrgetter("question_id")):
        rows = [RankedAmong(question_id, row.passage_id, None, None, 0, row.score) for row in of_one]
        rows += [one for one in standing.get(question_id, ()) if one.number < count]
        rows.sort(key=attrgetter("score"), reverse=True)  # keeps the order of equals
        yield from (row._replace(rank=rank) for rank, row in enumerate(rows[:depth], start=1))


def _candidates(given: Joined, records: Path) -> tuple[Candidates, list[Passage]]:
    """With the positives, which stand behind the near-duplicates."""
    row_of = {question.id: row for row, question in enumerate(given.questions)}
    added = given.added
    found = [
        (row_of[question_id], number, place)
        for place, (question_id, number) in enumerate(zip(added.question_ids, added.numbers, strict=True))
        if question_id in row_of
    ]
    beside: dict[str, int] = {}
    for question_id in {given.questions[row].id: None for row, *_ in found}:
        for passage_id in given.positives.get(question_id, ()):
            place = len(added.passages) + beside.setdefault(passage_id, len(beside))
            found.append((row_of[question_id], POSITIVE, place))
    store = PassageStore(records / "passages.parquet")
    rows = store.rows([*beside])
    texts = zip(beside, store.titles(rows), store.texts(rows), strict=True)
    columns = np.array(found, dtype=np.int64).reshape(-1, 3).T
    return Candidates(*columns), [Passage(*of_one, None) for of_one in texts]


def first_among(candidates: Candidates, scores_C: NDArray[np.float32], count: int) -> Values:
    """Of the questions with a candidate of number POSITIVE and one of a number below `count`: 1 where the best of the
    former scores above all of the latter, else 0; a tie counts against the retriever, as in AA."""
    rows_C, numbers_C, _ = candidates
    best = np.full((2, int(rows_C.max(initial=-1)) + 1), -np.inf)
    for side, of_side in enumerate((numbers_C == POSITIVE, (numbers_C != POSITIVE) & (numbers_C < count))):
        np.maximum.at(best[side], rows_C[of_side], scores_C[of_side])
    rows = np.flatnonzero(np.isfinite(best).all(axis=0))
    return Values(rows, (best[0] > best[1])[rows].astype(np.float64))


def _last_scores(ranking: Path, measured: MeasuredQuestions, depth: int) -> NDArray[np.float32]:
    """(Q,): the score at rank `depth`; -inf where a ranking ends before. Raises ValueError where scores rise."""
    table = tables.read(ranking, Ranked, ["question_id", "rank", "score"])
    table = table.filter(pc.field("rank") <= depth)
    scores_QK = np.full((measured.table.num_rows, depth), -np.inf, np.float32)
    found = pc.index_in(table["question_id"], value_set=measured.ids)
    if found.null_count:
        question = table.filter(pc.is_null(found))["question_id"][0].as_py()
        raise ValueError(f"{ranking}: question {question!r} is in none of sets.evaluate; run `dvc repro`")
    rows = found.to_numpy()
    scores_QK[rows, table["rank"].to_numpy() - 1] = table["score"].to_numpy()
    falls = (scores_QK[:, 1:] <= scores_QK[:, :-1]).all(axis=1)
    if not falls.all():
        question = measured.ids[int(np.argmin(falls))].as_py()
        raise ValueError(f"{ranking}: the scores of question {question!r} rise along the ranks; run `dvc repro`")
    return scores_QK[:, -1]
