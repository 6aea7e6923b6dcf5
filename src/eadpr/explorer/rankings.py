"""The rankings that a page can show, and the passages in them, near-duplicates too.

A ranking of the corpus with near-duplicates is named after the arm, their generator and how many of each question
joined: `eadpr+removed-5`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eadpr.evaluation.outcomes import MeasuredQuestions
from eadpr.evaluation.question_tables import DUPLICATES, RankedAmong, ranking_among
from eadpr.explorer import words
from eadpr.report.config import ReportArms
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import NearDuplicate, Ranked

DIGITS = 4  # of a score that the page has


class ExploreInputs(NamedTuple):
    """Folders, the table `evidence`, and the folder `report` that the stage of that name wrote."""

    records: Path
    positives: Path
    evidence: Path
    distractors: Path
    pairs: Path
    rankings: Path
    outcomes: Path
    report: Path


class ShownRanking(NamedTuple):
    """A table of Ranked or, if a `generator` made near-duplicates, of RankedAmong; its outcomes, and the scores `pairs`
    that its encoders give the forms of positives. `description` explains a ranking that is not just an arm's."""

    name: str
    table: Path
    outcomes: Path
    pairs: Path
    description: str
    generator: str = ""


class AddedPassage(NamedTuple):
    """A near-duplicate; it stands where a ranking has a passage's id."""

    generator: str
    made_for: str
    number: int


class RankingColumns(NamedTuple):
    """One ranking by question: the passages, best first, and their scores as integers, in units of 10 ** -decimals."""

    passages: dict[str, list[str | AddedPassage]]
    scores: dict[str, list[int]]
    decimals: int


def list_rankings(inputs: ExploreInputs, settings: ReportArms, counts: Sequence[int]) -> dict[str, ShownRanking]:
    """Return by name the rankings of the report's rows, then those with near-duplicates for each of `counts` but 0."""
    rankings = []
    for names in settings.rows.values():
        for name in names:
            table, outcomes = inputs.rankings / name / "evaluate.parquet", inputs.outcomes / f"{name}.parquet"
            description = words.describe_ranking(name, settings)
            rankings.append(ShownRanking(name, table, outcomes, inputs.pairs / f"{name}.parquet", description))
    for generator in settings.robustness.active:
        for name in (name for names in settings.robustness.trainings.values() for name in names):
            folder, pairs = inputs.outcomes / "robustness" / generator / name, inputs.pairs / f"{name}.parquet"
            for count in filter(None, counts):
                rankings.append(
                    ShownRanking(
                        name_with_near_duplicates(name, generator, count),
                        ranking_among(folder, count),
                        folder / f"{count}.parquet",
                        pairs,
                        words.describe_near_duplicates(name, generator, count),
                        generator,
                    )
                )
    return {ranking.name: ranking for ranking in rankings}


def choose_default(settings: ReportArms, counts: Sequence[int]) -> tuple[list[str], list[str]]:
    """Return the first training of each row of the report, and its rankings with the fewest near-duplicates."""
    first = [names[0] for names in settings.rows.values()]
    with_near_duplicates = []
    for count in [count for count in counts if count][:1]:
        for generator in settings.robustness.active:
            for names in settings.robustness.trainings.values():
                with_near_duplicates.append(name_with_near_duplicates(names[0], generator, count))
    return first, with_near_duplicates


def name_with_near_duplicates(name: str, generator: str, count: int) -> str:
    return f"{name}+{generator}-{count}"


def read_columns(ranking: ShownRanking, questions: MeasuredQuestions, depth: int) -> RankingColumns:
    """Read the first `depth` ranks; raises ValueError for a ranking without these questions, another collection's."""
    tables.count(ranking.table, RankedAmong if ranking.generator else Ranked)
    rows = pq.read_table(ranking.table, filters=[("rank", "<=", depth)])
    rows = rows.filter(pc.is_in(rows["question_id"], value_set=questions.ids))
    if not rows.num_rows:
        raise ValueError(
            f"{ranking.table} has no passages for the {len(questions.ids):,} questions of the chosen sets: it ranks"
            " another collection's, or other sets; name a set of sets.evaluate, or run `dvc repro`"
        )
    scores = rows["score"].to_numpy()
    decimals = max(0, DIGITS - 1 - int(np.floor(np.log10(max(1e-9, np.abs(scores).max())))))
    integers = np.rint(scores.astype(np.float64) * 10**decimals).astype(np.int64)
    passages: list[str | AddedPassage] = rows["passage_id"].to_pylist()
    if ranking.generator:
        made_for, numbers = rows["made_for"].to_pylist(), rows["number"].to_pylist()
        for i, passage_id in enumerate(passages):
            if passage_id is None:
                passages[i] = AddedPassage(ranking.generator, made_for[i], numbers[i])
    frame = pd.DataFrame({"passages": passages, "scores": integers})
    lists = frame.groupby(rows["question_id"].to_pandas()).agg(list)
    return RankingColumns(lists["passages"].to_dict(), lists["scores"].to_dict(), decimals)


class Numbering:
    """Numbers passages by first use; `texts` yields them in that order."""

    def __init__(self) -> None:
        self._places: dict[str | AddedPassage, int] = {}

    def __call__(self, passage: str | AddedPassage) -> int:
        return self._places.setdefault(passage, len(self._places))

    def texts(self, store: PassageStore, shown: Sequence[ShownRanking] = ()) -> Iterator[list[str]]:
        """Yield id, title and text; of a near-duplicate also its positive and its question."""
        near_duplicates = self._read_near_duplicates(shown)
        passages = list(self._places)
        for start in range(0, len(passages), 4096):
            part = passages[start : start + 4096]
            ids = [passage for passage in part if isinstance(passage, str)]
            rows = store.rows(ids)
            of_corpus = zip(ids, store.titles(rows), store.texts(rows), strict=True)
            for passage in part:
                yield near_duplicates[passage] if isinstance(passage, AddedPassage) else [*next(of_corpus)]

    def _read_near_duplicates(self, shown: Sequence[ShownRanking]) -> dict[AddedPassage, list[str]]:
        texts = {}
        paths = {ranking.generator: ranking.outcomes.with_name(DUPLICATES) for ranking in shown if ranking.generator}
        for generator, path in paths.items():
            for row in tables.rows(path, NearDuplicate):
                passage = AddedPassage(generator, row.question_id, row.number)
                if passage in self._places:
                    name = f"{generator} {row.number + 1} for {row.question_id}"
                    texts[passage] = [name, row.title, row.text, row.passage_id, row.question_id]
        return texts
