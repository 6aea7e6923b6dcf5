"""Stage `robustness`: retrieval metrics of an arm as near-duplicates join the corpus (EADPR, Figure 5).

Near-duplicates push passages of a ranking down and are never hits themselves. One that was made for another question
and holds an answer to this one stays out of this question's ranking: it would be neither a hit nor a mistake.

Near-duplicates are encoded alone and scored as `exact` scores passages, and where sentences or tokens are the unit, the
best candidates of these as `late` does. They join the arm's ranking, last among equals.
"""

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, groupby
from operator import attrgetter, itemgetter
from pathlib import Path

import numpy as np

from eadpr.evaluation.config import Evaluate
from eadpr.evaluation.evaluate import COUNTS, ranking_values
from eadpr.evaluation.outcomes import MADE, load_questions, write
from eadpr.robustness.config import Measurement, NearDuplicate
from eadpr.runtime import files, machine
from eadpr.runtime.machine import Machine
from eadpr.runtime.section import Sets
from eadpr.search import exact, late
from eadpr.search.config import Encode
from eadpr.search.encode import embed, encode
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.records import Passage, Question, Ranked
from eadpr.text.answers import AnswerMatcher
from eadpr.training.config import AUTO, settings_of
from eadpr.training.encoder import load, load_pair

EQUAL = 1e-3  # the batch around a text changes its score by parts by less, in bfloat16 (MiniLM) by up to 8e-4
Hit = tuple[str | int, float]  # a passage's id, or the row of a near-duplicate; its score


def run(
    robustness: Measurement, evaluate: Evaluate, encoding: Encode, sets: Sets, hardware: Machine, *, records: Path,
    positives: Path, ranking: Path, model: Path, near_duplicates: Path, out: Path,
) -> int:  # fmt: skip
    """Write the folder `out`: for each count n a table n.parquet of `Outcome`s, with the first n near-duplicates of
    every question in the corpus, and their generator's report; return their number. `ranking`, `model` are the arm's.
    """
    evaluated = load_questions(records, sets.evaluate)
    with files.new_folder(out) as folder, tempfile.TemporaryDirectory() as temporary:
        joined = Joined(list(evaluated.records(records)), ranking, model, evaluate.depth)
        joined.add(near_duplicates, robustness, Path(temporary), encoding, hardware)
        for count in robustness.counts:
            changed = Path(temporary) / str(count) if count else ranking
            if count:
                tables.write(changed / "evaluate.parquet", Ranked, joined.rank(count))
            values = ranking_values(evaluated, records, positives, changed, evaluate)
            quality = {metric: value for metric, value in values.items() if metric not in COUNTS}
            write(folder / f"{count}.parquet", evaluated, quality)
        shutil.copyfile(near_duplicates / "report.json", folder / MADE)
    return len(joined.added)


class Joined:
    """An arm's rankings of the questions with the near-duplicates, sorted by number, that join the corpus."""

    def __init__(self, questions: list[Question], ranking: Path, model: Path, depth: int) -> None:
        ranked = groupby(tables.rows(ranking / "evaluate.parquet", Ranked), key=attrgetter("question_id"))
        self._ranked = {question_id: [(row.passage_id, row.score) for row in rows] for question_id, rows in ranked}
        self._questions, self._model, self._depth, self._matcher = questions, model, depth, AnswerMatcher()
        encoder = load(model, "question", AUTO).to(machine.device())
        self._question_ids = encoder.question_ids([question.question for question in questions])
        self._questions_QD, self._unit = embed(encoder, self._question_ids), settings_of(model).unit

    def add(self, source: Path, settings: Measurement, folder: Path, encoding: Encode, hardware: Machine) -> None:
        """Encode the first near-duplicates of every question, as many as the largest count, in a folder for that."""
        table = source / "near_duplicates.parquet"
        rows = (row for row in tables.rows(table, NearDuplicate) if row.number < settings.counts[-1])
        self.added = sorted(rows, key=attrgetter("number"))
        if not self.added:
            raise ValueError(f"{table} is empty; take {source.name} out of robustness.generators")
        texts = [Passage(f"{row.question_id}#{row.number}", row.title, row.text, None) for row in self.added]
        tables.write(folder / "passages.parquet", Passage, texts)
        encode(folder / "passages.parquet", self._model, folder / "vectors", settings=encoding, hardware=hardware)
        self._vectors = Vectors(folder / "vectors")
        if self._unit != "passage":
            self._score_by_parts(settings, hardware)

    def _score_by_parts(self, settings: Measurement, hardware: Machine) -> None:
        """Score each question's candidates at all counts by sentences or tokens; each text is encoded once."""
        if settings.candidates is None:
            raise ValueError(f"{self._model} matches by {self._unit}; add the arm to robustness.arms")
        everyone, encoders = range(len(self._questions)), load_pair(self._model).place(hardware)
        self._proposed = {n: self._propose(everyone, settings.candidates, n).rows for n in settings.counts if n}
        candidates = np.concatenate([*self._proposed.values()], axis=1)  # some twice
        with machine.autocast(hardware, inference=True):
            hits = late.rescore(
                exact.Hits(candidates, np.empty(0)), encoders, self._question_ids,
                lambda rows: encoders.passage.passage_ids(*zip(*(self.added[row][-2:] for row in rows), strict=True)),
                depth=candidates.shape[1], label=f"near-duplicates by {self._unit}",
            )  # fmt: skip
        self._scores = [dict(zip(*lists, strict=True)) for lists in zip(*(v.tolist() for v in hits), strict=True)]

    def rank(self, count: int) -> Iterator[Ranked]:
        """Yield the passages among the best of the corpus and the first `count` near-duplicates of every question, with
        gaps where these stand. Those that hold an answer are left out; where too few remain, twice as many are read."""
        rankings: dict[int, list[Hit]] = {}
        short, size = list(range(len(self._questions))), self._depth
        while short:
            best = dict(zip(short, self._search(short, size, count), strict=True))
            rankings |= {place: self._leave_out_answers(place, hits) for place, hits in best.items()}
            short = [i for i in short if len(rankings[i]) < self._depth and len(best[i]) == size]
            size *= 2
        for place, question in enumerate(self._questions):
            for rank, (name, score) in enumerate(rankings[place][: self._depth], start=1):
                if isinstance(name, str):
                    yield Ranked(question.id, name, rank, score)

    def _search(self, places: Sequence[int], depth: int, count: int) -> Iterator[list[Hit]]:
        """Yield the best `depth` hits of the questions at these places; of equal scores the passage is first."""
        if self._unit == "passage":
            added: Iterable[Iterable[Hit]] = map(zip, *(v.tolist() for v in self._propose(places, depth, count)))
        else:
            added = ([(row, self._scores[i][row] - EQUAL) for row in self._proposed[count][i].tolist()] for i in places)
        for place, near_duplicates in zip(places, added, strict=True):
            hits = [*self._ranked.get(self._questions[place].id, ()), *near_duplicates]
            yield sorted(hits, key=itemgetter(1), reverse=True)[:depth]  # keeps the order of equals

    def _propose(self, places: Sequence[int], depth: int, count: int) -> exact.Hits:
        """Return the best `depth` by vectors of the first `count` near-duplicates of every question."""
        vectors = self._vectors.head(sum(row.number < count for row in self.added))
        questions_QD = self._questions_QD[list(places)]
        return exact.search(vectors, questions_QD, min(depth, vectors.rows), devices=machine.devices())

    def _leave_out_answers(self, place: int, hits: list[Hit]) -> list[Hit]:
        question = self._questions[place]
        rows = [name for name, _ in hits if isinstance(name, int)]
        texts = [self.added[row].text for row in rows]
        left_out = set(compress(rows, self._matcher.matches(question.answers, texts, question.answer_kind)))
        return [hit for hit in hits if hit[0] not in left_out]
