"""Stage `robustness`: retrieval metrics of an arm, or of BM25, as near-duplicates join the corpus (EADPR, Figure 5).

Near-duplicates push passages of a ranking down and are never hits themselves. One that was made for another question
and holds an answer to this one stays out of this question's ranking: it would be neither a hit nor a mistake.

`among_look_alikes` leaves the corpus aside: of a question's positives and its own near-duplicates alone, is a positive
first? It is 1 or 0 for the questions that have both.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from eadpr.evaluation.config import Evaluate
from eadpr.evaluation.evaluate import COUNTS, ranking_values
from eadpr.evaluation.outcomes import MADE, MeasuredQuestions, Values, load_questions, read_members, write
from eadpr.evaluation.question_tables import DUPLICATES, RankedAmong, ranking_among
from eadpr.robustness.config import AMONG, Robustness
from eadpr.runtime import files
from eadpr.runtime.machine import Machine
from eadpr.runtime.section import Sets
from eadpr.search.config import Encode
from eadpr.storage import tables
from eadpr.storage.records import NearDuplicate, Passage, Positive, Question, Ranked
from eadpr.supervision.bm25 import BM25
from eadpr.text.answers import AnswerMatcher

Joins = Callable[[int, NDArray[np.int64]], NDArray[np.bool_]]


class RobustnessInputs(NamedTuple):
    """Folders; `ranking` and `model` are the arm's. Without a model the ranking is BM25's."""

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


class Joining(NamedTuple):
    """Near-duplicates, sorted by number: as passages, with their numbers and the question of each."""

    passages: list[Passage]
    numbers: NDArray[np.int64]
    question_ids: list[str]

    def below(self, count: int) -> Self:
        end = int(np.searchsorted(self.numbers, count))
        return Joining(*(column[:end] for column in self))


class Joined(NamedTuple):
    """The near-duplicates that join the corpus, and the questions in the order of evaluation with the ids of their
    positives. `joins(question, rows)` tells which rows of near-duplicates join that question's ranking at all."""

    evaluated: MeasuredQuestions
    questions: list[Question]
    positives: dict[str, list[str]]
    added: Joining
    joins: Joins


# Returns a function of a count and a path: it writes there the ranking (`RankedAmong`) with so many near-duplicates of
# each question in the corpus, and returns the outcomes of AMONG.
Rankings = Callable[[Joined, RobustnessInputs, RobustnessSettings], Callable[[int, Path], Values]]


def run(inputs: RobustnessInputs, out: Path, settings: RobustnessSettings, rankings: Rankings) -> int:
    """Write the folder `out`: for each count n a table n.parquet of `Outcome`s, with the first n near-duplicates of
    every question in the corpus, and for each but 0 the ranking itself; then the near-duplicates and the report of
    their generator. Returns the number of near-duplicates joined.
    """
    additions = joined(inputs, settings)
    rank = rankings(additions, inputs, settings)
    with files.new_folder(out) as folder, tempfile.TemporaryDirectory() as temporary:
        for count in settings.robustness.counts:
            ranking, first = inputs.ranking, Values(np.zeros(0, np.int64), np.zeros(0))
            if count:
                ranking, table = Path(temporary) / str(count), ranking_among(folder, count)
                first = rank(count, table)
                tables.write(ranking / "evaluate.parquet", Ranked, _of_corpus(table))
            values = ranking_values(additions.evaluated, inputs.records, inputs.positives, ranking, settings.evaluate)
            quality = {metric: value for metric, value in values.items() if metric not in COUNTS}
            write(folder / f"{count}.parquet", additions.evaluated, quality | {AMONG: first})
        shutil.copyfile(inputs.near_duplicates / DUPLICATES, folder / DUPLICATES)
        shutil.copyfile(inputs.near_duplicates / "report.json", folder / MADE)
    return len(additions.added.passages)


def _of_corpus(table: Path) -> Iterator[Ranked]:
    """Yield the passages of the corpus in a ranking, with gaps in the ranks where near-duplicates stand."""
    for row in tables.rows(table, RankedAmong):
        if row.passage_id is not None:
            yield Ranked(row.question_id, row.passage_id, row.rank, row.score)


def joined(inputs: RobustnessInputs, settings: RobustnessSettings) -> Joined:
    evaluated = load_questions(inputs.records, read_members(inputs.records, settings.sets.evaluate))
    questions = list(evaluated.records(inputs.records))
    added = _added(inputs.near_duplicates / DUPLICATES, settings.robustness.counts[-1])
    positives = _positives(inputs.positives, evaluated)
    return Joined(evaluated, questions, positives, added, _joins(questions, added.passages))


def _positives(folder: Path, evaluated: MeasuredQuestions) -> dict[str, list[str]]:
    table = tables.read(folder / "positives.parquet", Positive, ["question_id", "passage_id"])
    table = table.filter(pc.is_in(table["question_id"], value_set=evaluated.ids)).to_pandas()
    return table.groupby("question_id")["passage_id"].agg(list).to_dict()


def _added(path: Path, most: int) -> Joining:
    """Read the near-duplicates of a number below `most`."""
    rows = sorted((row for row in tables.rows(path, NearDuplicate) if row.number < most), key=attrgetter("number"))
    passages = [Passage(f"{row.question_id}#{row.number}", row.title, row.text, None) for row in rows]
    return Joining(passages, np.array([row.number for row in rows], dtype=np.int64), [row.question_id for row in rows])


def _joins(questions: Sequence[Question], added: Sequence[Passage]) -> Joins:
    matcher = AnswerMatcher()

    def joins(question: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        query, texts = questions[question], [added[row].text for row in rows.tolist()]
        return ~matcher.matches(query.answers, texts, query.answer_kind)

    return joins
