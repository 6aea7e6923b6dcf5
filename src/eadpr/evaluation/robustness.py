"""Stage `robustness`: retrieval metrics of an arm, or of BM25, as near-duplicates join the corpus (EADPR, Figure 5).

Of an arm only the near-duplicates are encoded. They push passages of its ranking down and are never hits themselves.
One that was made for another question and holds an answer to this one stays out of this question's ranking: it would be
neither a hit nor a mistake.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eadpr import cache, files, machine, tables
from eadpr.config import Sets
from eadpr.evaluation import robustness_bm25
from eadpr.evaluation.config import Evaluate, Robustness
from eadpr.evaluation.evaluate import judged_blocks, retrieval_values
from eadpr.evaluation.metrics import Judgements
from eadpr.evaluation.outcomes import MADE, MeasuredQuestions, asked, members_of, write
from eadpr.machine import Machine
from eadpr.progress import progress
from eadpr.records import NearDuplicate, Passage, Question, Ranked
from eadpr.search.config import Encode
from eadpr.search.displacement import Joins, displaced, displacements
from eadpr.search.encode import embed, encode
from eadpr.search.vectors import Vectors
from eadpr.supervision.bm25 import BM25
from eadpr.text import AnswerMatcher
from eadpr.training.encoder import load


class RobustnessInputs(NamedTuple):
    """Folders; `ranking` and `model` are the arm's. Without a model the ranking is that of BM25."""

    records: Path
    positives: Path
    ranking: Path
    model: Path | None
    near_duplicates: Path


class RobustnessSettings(NamedTuple):
    robustness: Robustness
    evaluate: Evaluate
    encode: Encode
    sets: Sets
    hardware: Machine
    bm25: BM25


def run(inputs: RobustnessInputs, out: Path, settings: RobustnessSettings) -> int:
    """Write the folder `out`: for each count n a table n.parquet of `Outcome`s, with the first n near-duplicates of
    every question in the corpus; beside them, what the generator reports. Returns the number of near-duplicates joined.
    """
    asked_ = asked(inputs.records, members_of(inputs.records, settings.sets.evaluate))
    counts = settings.robustness.counts
    passages, numbers_A = _added(inputs.near_duplicates / "near_duplicates.parquet", counts[-1])
    among = _among_ranked_anew if inputs.model is None else _among_displaced
    with files.new_folder(out) as folder:
        for count, judged in zip(counts, among(asked_, passages, numbers_A, inputs, settings), strict=True):
            write(folder / f"{count}.parquet", asked_, retrieval_values(judged, settings.evaluate))
        shutil.copyfile(inputs.near_duplicates / "report.json", folder / MADE)
    return len(passages)


def _among_displaced(
    asked_: MeasuredQuestions,
    passages: list[Passage],
    numbers_A: NDArray[np.int64],
    inputs: RobustnessInputs,
    settings: RobustnessSettings,
) -> Iterator[Judgements]:
    """What is judged of an arm's ranking for each count."""
    depth = settings.evaluate.depth
    questions, judged = judged_ranking(asked_, inputs.records, inputs.positives, inputs.ranking, depth)
    scores_QK = _scores(inputs.ranking / "evaluate.parquet", questions, depth)
    shift_NQK = np.zeros((len(settings.robustness.counts), *scores_QK.shape), np.int32)
    if passages:
        shift_NQK = _shifts(passages, numbers_A, questions, scores_QK, inputs, settings)
    return (_displaced(judged, shift_QK) for shift_QK in shift_NQK)


def _among_ranked_anew(
    asked_: MeasuredQuestions,
    passages: list[Passage],
    numbers_A: NDArray[np.int64],
    inputs: RobustnessInputs,
    settings: RobustnessSettings,
) -> Iterator[Judgements]:
    """What is judged of BM25's ranking for each count."""
    questions = list(asked_.records(inputs.records))
    options = {"joins": _joins(questions, passages), "depth": settings.evaluate.depth, "bm25": settings.bm25}
    for count in settings.robustness.counts:
        added = passages[: int(np.searchsorted(numbers_A, count))]
        with tempfile.TemporaryDirectory() as temporary:
            ranking = inputs.ranking
            if added:
                ranking = Path(temporary)
                table = ranking / "evaluate.parquet"
                robustness_bm25.rank(inputs.records / "passages.parquet", added, questions, table, **options)
            yield judged_ranking(asked_, inputs.records, inputs.positives, ranking, settings.evaluate.depth)[1]


def judged_ranking(
    asked_: MeasuredQuestions, records: Path, positives: Path, ranking: Path, depth: int
) -> tuple[list[Question], Judgements]:
    """All blocks as one."""
    blocks = list(judged_blocks(asked_, records, positives, ranking, depth))
    questions = [question for block, _ in blocks for question in block]
    return questions, Judgements(*map(np.concatenate, zip(*(judged for _, judged in blocks), strict=True)))


def _added(path: Path, most: int) -> tuple[list[Passage], NDArray[np.int64]]:
    """Near-duplicates of a number below `most` as passages, and their numbers; those of one number side by side."""
    rows = sorted((row for row in tables.rows(path, NearDuplicate) if row.number < most), key=attrgetter("number"))
    passages = [Passage(f"{row.question_id}#{row.number}", row.title, row.text, None) for row in rows]
    return passages, np.array([row.number for row in rows], dtype=np.int64)


def _scores(ranking: Path, questions: Sequence[Question], depth: int) -> NDArray[np.float32]:
    """(Q, depth) scores, best first; -inf beyond a ranking's end."""
    place = {question.id: i for i, question in enumerate(questions)}
    scores = np.full((len(questions), depth), -np.inf, np.float32)
    for question_id, group in groupby(tables.rows(ranking, Ranked), key=attrgetter("question_id")):
        for row in group:
            if row.rank <= depth:
                scores[place[question_id], row.rank - 1] = row.score
    falls = (scores[:, 1:] <= scores[:, :-1]).all(axis=1)
    if not falls.all():
        question = questions[int(np.argmin(falls))].id
        raise ValueError(f"{ranking}: the scores of question {question!r} rise along the ranks; run `dvc repro`")
    return scores


def _shifts(
    passages: list[Passage],
    numbers_A: NDArray[np.int64],
    questions: list[Question],
    scores_QK: NDArray[np.float32],
    inputs: RobustnessInputs,
    settings: RobustnessSettings,
) -> NDArray[np.int32]:
    encoder = load(inputs.model, "question").to(machine.device())
    questions_QD = embed(encoder, encoder.question_ids([q.question for q in questions]), device=machine.device())
    with _encoded(passages, inputs, settings) as folder, progress("robustness", len(questions), "questions") as on:
        return displacements(
            scores_QK,
            questions_QD,
            Vectors(folder / "vectors"),
            numbers_A,
            settings.robustness.counts,
            joins=_joins(questions, passages),
            advance=on,
        )


@contextmanager
def _encoded(passages: list[Passage], inputs: RobustnessInputs, settings: RobustnessSettings) -> Iterator[Path]:
    """A folder of passages.parquet and vectors/ in the cache, for the length of the block; `encode` keeps the vectors
    themselves by content, so that other counts with the same highest one encode nothing."""
    key = cache.fingerprint(files.tree_sha256(inputs.model), files.tree_sha256(inputs.near_duplicates))
    with cache.workspace("robustness", key) as folder:
        tables.write(folder / "passages.parquet", Passage, passages)
        encode(
            folder / "passages.parquet", inputs.model, folder / "vectors",
            settings=settings.encode, hardware=settings.hardware,
        )  # fmt: skip
        yield folder
        files.discard(folder)


def _joins(questions: Sequence[Question], added: Sequence[Passage]) -> Joins:
    matcher = AnswerMatcher()

    def joins(question: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        asked, texts = questions[question], [added[row].text for row in rows.tolist()]
        return ~matcher.matches(asked.answers, texts, asked.answer_kind)

    return joins


def _displaced(judged: Judgements, shift_QK: NDArray[np.int32]) -> Judgements:
    return judged._replace(
        answer_QK=displaced(judged.answer_QK, shift_QK),
        relevant_QK=displaced(judged.relevant_QK, shift_QK),
        supporting_QK=displaced(judged.supporting_QK, shift_QK),
    )
