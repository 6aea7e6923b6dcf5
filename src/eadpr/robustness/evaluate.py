"""Stage `robustness`: retrieval metrics of an arm as near-duplicates join the corpus (EADPR, Figure 5).

Near-duplicates push passages of a ranking down and are never hits themselves. One that was made for another question
and holds an answer to this one stays out of this question's ranking: it would be neither a hit nor a mistake.

Near-duplicates are encoded alone and scored as `exact` scores passages. They join the arm's ranking, of equal scores
behind it.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import NamedTuple

from eadpr.evaluation.config import Evaluate
from eadpr.evaluation.evaluate import COUNTS, ranking_values
from eadpr.evaluation.outcomes import MADE, MeasuredQuestions, load_questions, read_members, write
from eadpr.robustness.config import Robustness
from eadpr.runtime import files, machine
from eadpr.runtime.machine import Machine
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.search import exact
from eadpr.search.config import Encode
from eadpr.search.encode import embed, encode
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.records import NearDuplicate, Passage, Question, Ranked
from eadpr.text.answers import AnswerMatcher
from eadpr.training.encoder import load

BLOCK = 1_024  # questions ranked at a time
Hit = tuple[str | int, float]  # a passage's id, or the row of a near-duplicate; its score


class RobustnessInputs(NamedTuple):
    """Folders; `ranking` and `model` are the arm's."""

    records: Path
    positives: Path
    ranking: Path
    model: Path
    near_duplicates: Path


class RobustnessSettings(NamedTuple):
    robustness: Robustness
    evaluate: Evaluate
    encode: Encode
    sets: Sets
    hardware: Machine


class Joined(NamedTuple):
    """The near-duplicates that join the corpus, sorted by number, and the questions in the order of evaluation."""

    evaluated: MeasuredQuestions
    questions: list[Question]
    added: list[NearDuplicate]


# The best hits of the questions at these places, at most so many; of equal scores the corpus's passage is first.
Search = Callable[[Sequence[int], int], list[list[Hit]]]


def run(inputs: RobustnessInputs, out: Path, settings: RobustnessSettings) -> int:
    """Write the folder `out`: for each count n a table n.parquet of `Outcome`s, with the first n near-duplicates of
    every question in the corpus, and the report of their generator. Return the number of near-duplicates joined.
    """
    joined = read_joined(inputs, settings)
    with (
        files.new_folder(out) as folder,
        tempfile.TemporaryDirectory() as temporary,
        closing(search_dense(joined, inputs, settings)) as searches,
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


def search_dense(joined: Joined, inputs: RobustnessInputs, settings: RobustnessSettings) -> Iterator[Search]:
    """Encode the near-duplicates; yield the arm's search with those of each count but 0, one after the other."""
    texts = [Passage(f"{row.question_id}#{row.number}", row.title, row.text, None) for row in joined.added]
    encoder = load(inputs.model, "question").to(machine.device())
    token_ids = encoder.question_ids([question.question for question in joined.questions])
    questions_QD = embed(encoder, token_ids)
    ranked = read_scores(inputs.ranking / "evaluate.parquet")
    with tempfile.TemporaryDirectory() as folder:  # `encode` keeps the vectors by content
        passages, vectors = Path(folder) / "passages.parquet", Path(folder) / "vectors"
        tables.write(passages, Passage, texts)
        encode(passages, inputs.model, vectors, settings=settings.encode, hardware=settings.hardware)
        stored = Vectors(vectors)

        def search(count: int, places: Sequence[int], depth: int) -> list[list[Hit]]:
            size, asked_QD = min(depth, count), questions_QD[list(places)]
            rows, scores = exact.search(stored.head(count), asked_QD, size, devices=machine.devices())
            results = []
            for place, near_duplicates in zip(places, map(zip, rows.tolist(), scores.tolist()), strict=True):
                hits = [*ranked.get(joined.questions[place].id, ()), *near_duplicates]
                results.append(sorted(hits, key=itemgetter(1), reverse=True)[:depth])  # keeps the order of equals
            return results

        for count in settings.robustness.counts:
            if count:
                yield partial(search, sum(row.number < count for row in joined.added))


def read_scores(ranking: Path) -> dict[str, list[Hit]]:
    groups = groupby(tables.rows(ranking, Ranked), key=attrgetter("question_id"))
    return {question_id: [(row.passage_id, row.score) for row in rows] for question_id, rows in groups}


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
