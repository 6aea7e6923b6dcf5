"""Stage `robustness`: retrieval metrics of an arm, or of BM25, as near-duplicates join the corpus (EADPR, Figure 5).

Near-duplicates push passages of a ranking down and are never hits themselves. One that was made for another question
and holds an answer to this one stays out of this question's ranking: it would be neither a hit nor a mistake.

`among_look_alikes` leaves the corpus aside: of a question's positives and its own near-duplicates alone, is a positive
first? It is 1 or 0 for the questions that have both.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow.compute as pc

from eadpr.evaluation.config import Evaluate
from eadpr.evaluation.evaluate import COUNTS, ranking_values
from eadpr.evaluation.outcomes import MADE, MeasuredQuestions, Values, load_questions, read_members, write
from eadpr.evaluation.question_tables import DUPLICATES, RankedAmong, ranking_among
from eadpr.robustness.config import AMONG, Robustness
from eadpr.runtime import files
from eadpr.runtime.machine import Machine
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.search.config import Encode
from eadpr.storage import tables
from eadpr.storage.records import NearDuplicate, Positive, Question, Ranked
from eadpr.supervision.bm25 import BM25
from eadpr.text.answers import AnswerMatcher

BLOCK = 1_024  # questions ranked at a time
Hit = tuple[str | int, float]  # a passage's id, or the row of a near-duplicate; its score
Search = Callable[[Sequence[int], int], list[list[Hit]]]
LookAlikes = dict[int, tuple[list[str], list[int]]]
Result = TypeVar("Result")


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


class Joined(NamedTuple):
    """The near-duplicates that join the corpus, sorted by number, and the questions in the order of evaluation with the
    ids of their positives."""

    evaluated: MeasuredQuestions
    questions: list[Question]
    positives: dict[str, list[str]]
    added: list[NearDuplicate]

    def look_alikes(self, count: int) -> LookAlikes:
        """Return, by place, the positives and the rows of the own near-duplicates of the questions that have both."""
        own: dict[str, list[int]] = {}
        for row, near_duplicate in enumerate(self.added[:count]):
            own.setdefault(near_duplicate.question_id, []).append(row)
        return {
            place: (self.positives[question.id], own[question.id])
            for place, question in enumerate(self.questions)
            if question.id in own and question.id in self.positives
        }


class CorpusSearcher(NamedTuple):
    """The corpus with some near-duplicates, for questions by their places.

    `search` returns the best hits of each, at most so many; of equal scores the corpus's passage is first.
    `positive_first` tells, of questions with both, whether the best positive scores above all of their near-duplicates.
    """

    search: Search
    positive_first: Callable[[Sequence[int]], list[bool]]


OpenSearcher = Callable[[int], AbstractContextManager[CorpusSearcher]]  # from the number of near-duplicates that join


def run(
    inputs: RobustnessInputs,
    out: Path,
    settings: RobustnessSettings,
    prepare: Callable[[Joined, RobustnessInputs, RobustnessSettings], AbstractContextManager[OpenSearcher]],
) -> int:
    """Write the folder `out`: for each count n a table n.parquet of `Outcome`s, with the first n near-duplicates of
    every question in the corpus, and for each but 0 the ranking itself; then the near-duplicates and the report of
    their generator. Returns the number of near-duplicates joined.
    """
    joined = read_joined(inputs, settings)
    numbers = [near_duplicate.number for near_duplicate in joined.added]
    with (
        files.new_folder(out) as folder,
        tempfile.TemporaryDirectory() as temporary,
        prepare(joined, inputs, settings) as open_searcher,
    ):
        for count in settings.robustness.counts:
            ranking, first = inputs.ranking, Values(np.zeros(0, np.int64), np.zeros(0))
            if count:
                ranking, table = Path(temporary) / str(count), ranking_among(folder, count)
                rows = int(np.searchsorted(numbers, count))
                with open_searcher(rows) as searcher:
                    tables.write(table, RankedAmong, rank(joined, searcher, settings.evaluate.depth))
                    places = [*joined.look_alikes(rows)]
                    is_first = [value for block in _blocks(places) for value in searcher.positive_first(block)]
                    first = Values(np.array(places, np.int64), np.array(is_first, np.float64))
                tables.write(ranking / "evaluate.parquet", Ranked, _of_corpus(table))
            values = ranking_values(joined.evaluated, inputs.records, inputs.positives, ranking, settings.evaluate)
            quality = {metric: value for metric, value in values.items() if metric not in COUNTS}
            write(folder / f"{count}.parquet", joined.evaluated, quality | {AMONG: first})
        shutil.copyfile(inputs.near_duplicates / DUPLICATES, folder / DUPLICATES)
        shutil.copyfile(inputs.near_duplicates / "report.json", folder / MADE)
    return len(joined.added)


def read_joined(inputs: RobustnessInputs, settings: RobustnessSettings) -> Joined:
    evaluated = load_questions(inputs.records, read_members(inputs.records, settings.sets.evaluate))
    table = tables.read(inputs.positives / "positives.parquet", Positive, ["question_id", "passage_id"])
    table = table.filter(pc.is_in(table["question_id"], value_set=evaluated.ids)).to_pandas()
    positives = table.groupby("question_id")["passage_id"].agg(list).to_dict()
    rows = tables.rows(inputs.near_duplicates / DUPLICATES, NearDuplicate)
    most = settings.robustness.counts[-1]
    added = sorted((row for row in rows if row.number < most), key=attrgetter("number"))
    if not added:
        raise ValueError(
            f"{inputs.near_duplicates / DUPLICATES} is empty; take {inputs.near_duplicates.name} out of"
            " robustness.generators"
        )
    return Joined(evaluated, list(evaluated.records(inputs.records)), positives, added)


def rank(joined: Joined, searcher: CorpusSearcher, depth: int) -> Iterator[RankedAmong]:
    """Yield the first `depth` of the corpus and the near-duplicates, without those that hold an answer."""
    matcher = AnswerMatcher()

    def keep_joining(place: int, hits: list[Hit]) -> tuple[list[Hit], bool]:
        question = joined.questions[place]
        rows = [name for name, _ in hits if isinstance(name, int)]
        texts = [joined.added[row].text for row in rows]
        answering = matcher.matches(question.answers, texts, question.answer_kind).tolist()
        left_out = {row for row, answers in zip(rows, answering, strict=True) if answers}
        ranking = [hit for hit in hits if hit[0] not in left_out]
        return ranking, len(ranking) >= depth

    with progress("robustness", len(joined.questions), "questions") as advance:
        for places in _blocks(range(len(joined.questions))):
            rankings = deepen(searcher.search, places, depth, keep_joining)
            for place in places:
                for number, (name, score) in enumerate(rankings[place][:depth], start=1):
                    ids = (name, None, None)
                    if isinstance(name, int):
                        ids = (None, joined.added[name].question_id, joined.added[name].number)
                    yield RankedAmong(joined.questions[place].id, *ids, number, score)
            advance(len(places))


def _blocks(places: Sequence[int]) -> Iterator[Sequence[int]]:
    return (places[start : start + BLOCK] for start in range(0, len(places), BLOCK))


def deepen(
    search: Search,
    places: Sequence[int],
    depth: int,
    judge: Callable[[int, list[Hit]], tuple[Result, bool]],
) -> dict[int, Result]:
    """Return what `judge` makes of each question's hits. It also tells whether these are enough: if not, and there are
    more, twice as many are retrieved."""
    results: dict[int, Result] = {}
    while places:
        short = []
        for place, hits in zip(places, search(places, depth), strict=True):
            results[place], enough = judge(place, hits)
            if not enough and len(hits) == depth:
                short.append(place)
        places, depth = short, 2 * depth
    return results


def _of_corpus(table: Path) -> Iterator[Ranked]:
    """Yield the passages of the corpus in a ranking, with gaps in the ranks where near-duplicates stand."""
    for row in tables.rows(table, RankedAmong):
        if row.passage_id is not None:
            yield Ranked(row.question_id, row.passage_id, row.rank, row.score)
