"""Stage `robustness`: retrieval metrics of an arm, or of BM25, as near-duplicates join the corpus (EADPR, Figure 5).

Of an arm only the near-duplicates and the positives beside them are encoded. Near-duplicates push passages of its
ranking down and are never hits themselves. One that was made for another question and holds an answer to this one stays
out of this question's ranking: it would be neither a hit nor a mistake.

`among_look_alikes` leaves the corpus aside: of a question's positives and its own near-duplicates alone, is a positive
first? It is 1 or 0 for the questions that have both.
"""

import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from eadpr import cache, files, machine, tables
from eadpr.config import Sets
from eadpr.evaluation import robustness_bm25
from eadpr.evaluation.config import AMONG, Evaluate, Robustness
from eadpr.evaluation.evaluate import judged_blocks, retrieval_values
from eadpr.evaluation.metrics import Judgements
from eadpr.evaluation.outcomes import MADE, MeasuredQuestions, Values, asked, members_of, write
from eadpr.evaluation.question_tables import DUPLICATES, Joined, RankedAmong, merged, ranking_among
from eadpr.machine import Machine
from eadpr.passages import PassageStore
from eadpr.progress import progress
from eadpr.records import NearDuplicate, Passage, Positive, Question, Ranked
from eadpr.search.config import Encode
from eadpr.search.displacement import Joins, displaced, displacements
from eadpr.search.encode import embed, encode
from eadpr.search.vectors import Vectors
from eadpr.supervision.bm25 import BM25
from eadpr.text import AnswerMatcher
from eadpr.training.encoder import load

BLOCK = 4_096  # candidates scored at a time
POSITIVE = -1  # in place of the number of a near-duplicate


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


class Questions(NamedTuple):
    """The measured questions, with the ids of the positives of each."""

    measured: MeasuredQuestions
    questions: list[Question]
    positives: dict[str, list[str]]


class Joining(NamedTuple):
    """Near-duplicates, those of one number side by side: as passages, with their numbers and the question of each."""

    passages: list[Passage]
    numbers: NDArray[np.int64]
    question_ids: list[str]

    def below(self, count: int) -> Self:
        end = int(np.searchsorted(self.numbers, count))
        return Joining(*(of[:end] for of in self))


class AmongNearDuplicates(NamedTuple):
    """What a ranking became: how it is judged, the outcomes of AMONG, and its rows."""

    judged: Judgements
    first: Values
    rows: Iterable[RankedAmong]


def run(inputs: RobustnessInputs, out: Path, settings: RobustnessSettings) -> int:
    """Write the folder `out`: for each count n a table n.parquet of `Outcome`s, with the first n near-duplicates of
    every question in the corpus, and for each but 0 the ranking itself; beside them, the near-duplicates and what their
    generator reports. Returns the number of near-duplicates joined.
    """
    measured = asked(inputs.records, members_of(inputs.records, settings.sets.evaluate))
    given = Questions(measured, list(measured.records(inputs.records)), _positives(inputs.positives, measured))
    counts = settings.robustness.counts
    added = _added(inputs.near_duplicates / DUPLICATES, counts[-1])
    among = _among_ranked_anew if inputs.model is None else _among_displaced
    with files.new_folder(out) as folder:
        for count, found in zip(counts, among(given, added, inputs, settings), strict=True):
            values = retrieval_values(found.judged, settings.evaluate) | {AMONG: found.first}
            write(folder / f"{count}.parquet", measured, values)
            if count:
                tables.write(ranking_among(folder, count), RankedAmong, found.rows)
        shutil.copyfile(inputs.near_duplicates / DUPLICATES, folder / DUPLICATES)
        shutil.copyfile(inputs.near_duplicates / "report.json", folder / MADE)
    return len(added.passages)


def _among_displaced(
    given: Questions, added: Joining, inputs: RobustnessInputs, settings: RobustnessSettings
) -> Iterator[AmongNearDuplicates]:
    """An arm's ranking for each count."""
    questions, depth, counts = given.questions, settings.evaluate.depth, settings.robustness.counts
    judged = judged_ranking(given.measured, inputs, inputs.ranking, depth)
    scores_QK = _scores(inputs.ranking / "evaluate.parquet", given.measured, depth)
    joined: dict[str, list[Joined]] = {}
    if not added.passages:
        for _ in counts:
            yield AmongNearDuplicates(
                judged, first_among([], [], [], 0), merged(inputs.ranking, {}, count=0, depth=depth)
            )
        return

    def stands(question: int, rows: NDArray[np.int64], scores: NDArray[np.float32]) -> None:
        found = zip(rows.tolist(), scores.tolist(), strict=True)
        own = [Joined(added.question_ids[row], int(added.numbers[row]), score) for row, score in found]
        joined.setdefault(questions[question].id, []).extend(own)

    encoder = load(inputs.model, "question").to(machine.device())
    questions_QD = embed(encoder, encoder.question_ids([q.question for q in questions]), device=machine.device())
    rows, numbers, places, beside = _candidates(given, added, inputs.records)
    everything = [*added.passages, *beside]
    joining = np.concatenate([added.numbers, np.full(len(beside), counts[-1])])  # a positive joins no ranking again
    joins = _joins(questions, added.passages)
    with _encoded(everything, inputs, settings) as folder, progress("robustness", len(questions), "questions") as on:
        vectors = Vectors(folder / "vectors")
        options = {"joins": joins, "stands": stands, "advance": on}
        shift_NQK = displacements(scores_QK, questions_QD, vectors, joining, counts, **options)
        scores = _inner_products(vectors, places, questions_QD, rows)
    for count, shift_QK in zip(counts, shift_NQK, strict=True):
        first = first_among(rows, numbers, scores, count)
        ranked = merged(inputs.ranking, joined, count=count, depth=depth)
        yield AmongNearDuplicates(_displaced(judged, shift_QK), first, ranked)


def _among_ranked_anew(
    given: Questions, added: Joining, inputs: RobustnessInputs, settings: RobustnessSettings
) -> Iterator[AmongNearDuplicates]:
    """BM25's ranking for each count."""
    questions, depth = given.questions, settings.evaluate.depth
    options = {"joins": _joins(questions, added.passages), "depth": depth, "bm25": settings.bm25}
    corpus = inputs.records / "passages.parquet"
    for count in settings.robustness.counts:
        joining = added.below(count)
        with tempfile.TemporaryDirectory() as temporary:
            ranking, first = inputs.ranking, first_among([], [], [], 0)
            rows = merged(ranking, {}, count=0, depth=depth)
            if joining.passages:
                ranking = Path(temporary)
                own: dict[str, list[int]] = {}
                for row, question_id in enumerate(joining.question_ids):
                    own.setdefault(question_id, []).append(row)
                sides = {
                    row: (given.positives[question.id], own[question.id])
                    for row, question in enumerate(questions)
                    if question.id in own and question.id in given.positives
                }
                table, of_corpus = ranking / "everything.parquet", ranking / "evaluate.parquet"
                found = robustness_bm25.rank(corpus, joining.passages, questions, table, sides=sides, **options)
                first = Values(np.array([*found], np.int64), np.array([*found.values()], np.float64))
                added_rows = dict(enumerate(zip(joining.question_ids, joining.numbers.tolist(), strict=True)))
                rows = robustness_bm25.split(table, of_corpus, added_rows)
            yield AmongNearDuplicates(judged_ranking(given.measured, inputs, ranking, depth), first, rows)


def judged_ranking(measured: MeasuredQuestions, inputs: RobustnessInputs, ranking: Path, depth: int) -> Judgements:
    """All blocks as one."""
    blocks = judged_blocks(measured, inputs.records, inputs.positives, ranking, depth)
    return Judgements(*map(np.concatenate, zip(*(judged for _, judged in blocks), strict=True)))


def _positives(folder: Path, measured: MeasuredQuestions) -> dict[str, list[str]]:
    table = tables.read(folder / "positives.parquet", Positive, ["question_id", "passage_id"])
    table = table.filter(pc.is_in(table["question_id"], value_set=measured.ids))
    found: dict[str, list[str]] = {}
    for question_id, passage_id in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found.setdefault(question_id, []).append(passage_id)
    return found


def _added(path: Path, most: int) -> Joining:
    """The near-duplicates of a number below `most`."""
    rows = sorted((row for row in tables.rows(path, NearDuplicate) if row.number < most), key=attrgetter("number"))
    passages = [Passage(f"{row.question_id}#{row.number}", row.title, row.text, None) for row in rows]
    return Joining(passages, np.array([row.number for row in rows], dtype=np.int64), [row.question_id for row in rows])


def _candidates(
    given: Questions, added: Joining, records: Path
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], list[Passage]]:
    """Of every near-duplicate and of every positive beside one: the row of its question, its number (or POSITIVE) and
    its place among the passages added with those returned, the positives, behind them."""
    row_of = {question.id: row for row, question in enumerate(given.questions)}
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
    return *columns, [Passage(*of_one, None) for of_one in texts]


def _inner_products(
    vectors: Vectors, places: NDArray[np.int64], questions_QD: NDArray[np.float32], rows: NDArray[np.int64]
) -> NDArray[np.float32]:
    """(C,): of the vectors at these places and the questions of these rows, as displacements have them."""
    found = np.empty(len(places), np.float32)
    for start in range(0, len(places), BLOCK):
        part = slice(start, start + BLOCK)
        vectors_CD, questions_CD = vectors.take(places[part]), questions_QD[rows[part]]
        found[part] = np.einsum("cd,cd->c", vectors_CD.astype(np.float64), questions_CD.astype(np.float64))
    return found


def first_among(questions_C: Sequence[int], numbers_C: Sequence[int], scores_C: Sequence[float], count: int) -> Values:
    """Of the questions with a candidate of number POSITIVE and one of a number below `count`: 1 where the best of the
    former scores above all of the latter, else 0; a tie counts against the retriever, as in AA."""
    questions_C, numbers_C, scores_C = map(np.asarray, (questions_C, numbers_C, scores_C))
    best = np.full((2, int(questions_C.max(initial=-1)) + 1), -np.inf)
    for side, of_side in enumerate((numbers_C == POSITIVE, (numbers_C != POSITIVE) & (numbers_C < count))):
        np.maximum.at(best[side], questions_C[of_side].astype(np.int64), scores_C[of_side])
    rows = np.flatnonzero(np.isfinite(best).all(axis=0))
    return Values(rows, (best[0] > best[1])[rows].astype(np.float64))


def _scores(ranking: Path, measured: MeasuredQuestions, depth: int) -> NDArray[np.float32]:
    """(Q, depth) scores, best first; -inf beyond a ranking's end."""
    table = tables.read(ranking, Ranked, ["question_id", "rank", "score"])
    table = table.filter(pc.field("rank") <= depth)
    scores = np.full((measured.table.num_rows, depth), -np.inf, np.float32)
    rows = pc.index_in(table["question_id"], value_set=measured.ids).to_numpy()
    scores[rows, table["rank"].to_numpy() - 1] = table["score"].to_numpy()
    falls = (scores[:, 1:] <= scores[:, :-1]).all(axis=1)
    if not falls.all():
        question = measured.ids[int(np.argmin(falls))].as_py()
        raise ValueError(f"{ranking}: the scores of question {question!r} rise along the ranks; run `dvc repro`")
    return scores


@contextmanager
def _encoded(passages: Collection[Passage], inputs: RobustnessInputs, settings: RobustnessSettings) -> Iterator[Path]:
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
        given, texts = questions[question], [added[row].text for row in rows.tolist()]
        return ~matcher.matches(given.answers, texts, given.answer_kind)

    return joins


def _displaced(judged: Judgements, shift_QK: NDArray[np.int32]) -> Judgements:
    moved = ("answer_QK", "relevant_QK", "supporting_QK")
    return judged._replace(**{name: displaced(getattr(judged, name), shift_QK) for name in moved})
