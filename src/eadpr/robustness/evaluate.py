"""Stage `robustness`: retrieval metrics of an arm, or of BM25, as near-duplicates join the corpus (EADPR, Figure 5).

Near-duplicates push passages of a ranking down and are never hits themselves. One that was made for another question
and holds an answer to this one stays out of this question's ranking: it would be neither a hit nor a mistake.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from eadpr.evaluation.config import Evaluate
from eadpr.evaluation.evaluate import COUNTS, ranking_values
from eadpr.evaluation.outcomes import MADE, MeasuredQuestions, load_questions, read_members, write
from eadpr.robustness.config import Robustness
from eadpr.runtime import files
from eadpr.runtime.machine import Machine
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.search.config import Encode
from eadpr.storage import tables
from eadpr.storage.records import NearDuplicate, Question, Ranked
from eadpr.supervision.bm25 import BM25
from eadpr.text.answers import AnswerMatcher

BLOCK = 1_024  # questions ranked at a time
Hit = tuple[str | int, float]  # a passage's id, or the row of a near-duplicate; its score


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
    """The near-duplicates that join the corpus, sorted by number, and the questions in the order of evaluation."""

    evaluated: MeasuredQuestions
    questions: list[Question]
    added: list[NearDuplicate]

    def sizes(self, counts: Sequence[int]) -> list[int]:
        """Return how many near-duplicates join for each count but 0."""
        return [sum(row.number < count for row in self.added) for count in counts if count]


# The best hits of the questions at these places, at most so many; of equal scores the corpus's passage is first.
Search = Callable[[Sequence[int], int], list[list[Hit]]]


def run(
    inputs: RobustnessInputs,
    out: Path,
    settings: RobustnessSettings,
    open_searches: Callable[[Joined, RobustnessInputs, RobustnessSettings], Iterator[Search]],
) -> int:
    """Write the folder `out`: for each count n a table n.parquet of `Outcome`s, with the first n near-duplicates of
    every question in the corpus, and the report of their generator. Return the number of near-duplicates joined.

    `open_searches` yields a search of the corpus with the near-duplicates of each count but 0, one after the other.
    """
    joined = read_joined(inputs, settings)
    with (
        files.new_folder(out) as folder,
        tempfile.TemporaryDirectory() as temporary,
        closing(open_searches(joined, inputs, settings)) as searches,
    ):
        for count in settings.robustness.counts:
            ranking = inputs.ranking
            if count:
                ranking = Path(temporary) / str(count)
                rows = rank(joined, next(searches), settings.evaluate.depth)
                tables.write(ranking / "evaluate.parquet", Ranked, rows)
            values = ranking_values(joined.evaluated, inputs.records, inputs.positives, ranking, settings.evaluate)
            quality = {metric: value for metric, value in values.items() if metric not in COUNTS}
            write(folder / f"{count}.parquet", joined.evaluated, quality)
        shutil.copyfile(inputs.near_duplicates / "report.json", folder / MADE)
    return len(joined.added)


def read_joined(inputs: RobustnessInputs, settings: RobustnessSettings) -> Joined:
    evaluated = load_questions(inputs.records, read_members(inputs.records, settings.sets.evaluate))
    table = inputs.near_duplicates / "near_duplicates.parquet"
    rows = tables.rows(table, NearDuplicate)
    most = settings.robustness.counts[-1]
    added = sorted((row for row in rows if row.number < most), key=attrgetter("number"))
    if not added:
        raise ValueError(f"{table} is empty; take {inputs.near_duplicates.name} out of robustness.generators")
    return Joined(evaluated, list(evaluated.records(inputs.records)), added)


def rank(joined: Joined, search: Search, depth: int) -> Iterator[Ranked]:
    """Yield the passages among the first `depth` of the corpus and the near-duplicates, with gaps in the ranks where
    near-duplicates stand. Those that hold an answer are left out; so where fewer than `depth` remain, twice as many are
    retrieved."""
    matcher = AnswerMatcher()

    def leave_out_answers(place: int, hits: list[Hit]) -> list[Hit]:
        question = joined.questions[place]
        rows = [name for name, _ in hits if isinstance(name, int)]
        texts = [joined.added[row].text for row in rows]
        answering = matcher.matches(question.answers, texts, question.answer_kind).tolist()
        left_out = {row for row, answers in zip(rows, answering, strict=True) if answers}
        return [hit for hit in hits if hit[0] not in left_out]

    with progress("robustness", len(joined.questions), "questions") as advance:
        for start in range(0, len(joined.questions), BLOCK):
            places = range(start, min(start + BLOCK, len(joined.questions)))
            rankings: dict[int, list[Hit]] = {}
            short, size = list(places), depth
            while short:
                found = dict(zip(short, search(short, size), strict=True))
                rankings |= {place: leave_out_answers(place, hits) for place, hits in found.items()}
                short = [i for i in short if len(rankings[i]) < depth and len(found[i]) == size]
                size *= 2
            for place in places:
                for number, (name, score) in enumerate(rankings[place][:depth], start=1):
                    if isinstance(name, str):
                        yield Ranked(joined.questions[place].id, name, number, score)
            advance(len(places))
