"""Which rankings a page can show, what it takes of them, and the passages in them, near-duplicates too.

A ranking among near-duplicates is named after the arm, their generator and how many of each question joined:
`eadpr+removed-5`.
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
from eadpr.report.plan import make_plan
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import NearDuplicate, Ranked

DIGITS = 4  # of a score that are kept


class ExploreInputs(NamedTuple):
    """Folders, the table `evidence`, and the folder `report` that the stage of that name wrote."""

    records: Path
    positives: Path
    evidence: Path
    distractors: Path
    negatives: Path
    training: Path
    pairs: Path
    rankings: Path
    outcomes: Path
    report: Path


class ShownRanking(NamedTuple):
    """A table of Ranked or, where a `generator` made near-duplicates, of RankedAmong; what was measured of it; the
    scores that its encoders give the forms of positives. `said`: what it is, where its name does not tell."""

    name: str
    table: Path
    outcomes: Path
    pairs: Path
    said: str
    generator: str = ""


class AddedPassage(NamedTuple):
    """A near-duplicate: it takes the place of a passage's id."""

    generator: str
    made_for: str
    number: int


class RankingColumns(NamedTuple):
    """Of one ranking, by question: the passages, best first, and their scores as integers, `decimals` digits of which
    stand behind the point."""

    passages: dict[str, list[str | AddedPassage]]
    scores: dict[str, list[int]]
    decimals: int


def known(inputs: ExploreInputs, settings: ReportArms, counts: Sequence[int]) -> dict[str, ShownRanking]:
    """By name: those of the report's rows, then those among near-duplicates for each of `counts` but 0."""
    found = {}
    for name in (name for names in make_plan(settings, ()).rows.values() for name in names):
        table = inputs.rankings / name / "evaluate.parquet"
        measured, pairs = (folder / f"{name}.parquet" for folder in (inputs.outcomes, inputs.pairs))
        found[name] = ShownRanking(name, table, measured, pairs, words.made_of(name, settings))
    for generator in settings.robustness.active:
        for name in (name for names in settings.robustness.trainings.values() for name in names):
            folder = inputs.outcomes / "robustness" / generator / name
            for count in filter(None, counts):
                own, said = among(name, generator, count), words.among(name, generator, count)
                table, measured = ranking_among(folder, count), folder / f"{count}.parquet"
                found[own] = ShownRanking(own, table, measured, inputs.pairs / f"{name}.parquet", said, generator)
    return found


def usual(settings: ReportArms, counts: Sequence[int]) -> tuple[list[str], list[str]]:
    """The first training of each row of the report; of each row among near-duplicates, with the fewest of these."""
    first = [names[0] for names in make_plan(settings, ()).rows.values()]
    fewest = [count for count in counts if count][:1]
    rows = settings.robustness.trainings.values()
    by = [(names[0], generator) for generator in settings.robustness.active for names in rows]
    return first, [among(*one, count) for one in by for count in fewest]


def among(name: str, generator: str, count: int) -> str:
    return f"{name}+{generator}-{count}"


def columns(shown: ShownRanking, asked: MeasuredQuestions, depth: int) -> RankingColumns:
    """Raises ValueError where it has no question of these: it is another collection's."""
    tables.count(shown.table, RankedAmong if shown.generator else Ranked)
    found = pq.read_table(shown.table, filters=[("rank", "<=", depth)])
    found = found.filter(pc.is_in(found["question_id"], value_set=asked.ids))
    if not found.num_rows:
        raise ValueError(
            f"{shown.table} has no passages for the {len(asked.ids):,} questions of the chosen sets: it ranks"
            " another collection's, or other sets; name a set of sets.evaluate, or run `dvc repro`"
        )
    scores = found["score"].to_numpy()
    decimals = max(0, DIGITS - 1 - int(np.floor(np.log10(max(1e-9, np.abs(scores).max())))))
    whole = np.rint(scores.astype(np.float64) * 10**decimals).astype(np.int64)
    ids: list[str | AddedPassage] = found["passage_id"].to_pylist()
    if shown.generator:
        near = zip(found["made_for"].to_pylist(), found["number"].to_pylist(), strict=True)
        ids = [AddedPassage(shown.generator, *of) if one is None else one for one, of in zip(ids, near, strict=True)]
    ranked = pd.DataFrame({"passages": ids, "scores": whole})
    lists = ranked.groupby(found["question_id"].to_pandas()).agg(list)
    return RankingColumns(lists["passages"].to_dict(), lists["scores"].to_dict(), decimals)


class Numbering:
    """Numbers passages by first use; `texts` gives their rows in that order."""

    def __init__(self) -> None:
        self._places: dict[str | AddedPassage, int] = {}

    def __call__(self, passage: str | AddedPassage) -> int:
        return self._places.setdefault(passage, len(self._places))

    def texts(self, store: PassageStore, shown: Sequence[ShownRanking] = ()) -> Iterator[list[str]]:
        """Id, title and text; of a near-duplicate the positive too that it is like, and the question."""
        near = _near_duplicates(shown, self._places)
        every = list(self._places)
        for start in range(0, len(every), 4096):
            part = every[start : start + 4096]
            ids = [one for one in part if isinstance(one, str)]
            rows = store.rows(ids)
            of_corpus = zip(ids, store.titles(rows), store.texts(rows), strict=True)
            yield from (near[one] if isinstance(one, AddedPassage) else [*next(of_corpus)] for one in part)


def _near_duplicates(
    shown: Sequence[ShownRanking], wanted: dict[str | AddedPassage, int]
) -> dict[AddedPassage, list[str]]:
    paths = {one.generator: one.outcomes.with_name(DUPLICATES) for one in shown if one.generator}
    found = {}
    for generator, path in paths.items():
        for row in tables.rows(path, NearDuplicate):
            key = AddedPassage(generator, row.question_id, row.number)
            if key in wanted:
                own = f"{generator} {row.number + 1} for {row.question_id}"
                found[key] = [own, row.title, row.text, row.passage_id, row.question_id]
    return found
