"""The rankings that a page can show; `eadpr+removed-5` had five near-duplicates of each question in the corpus."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from eadpr.evaluation.outcomes import MeasuredQuestions
from eadpr.evaluation.question_tables import DUPLICATES, RankedAmong, ranking_among
from eadpr.explorer import words
from eadpr.report.config import ReportArms
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import NearDuplicate, Ranked


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
    that its encoders give the forms of positives.

    `description` explains a ranking that is not just an arm's. Those `by_default` are shown where none is chosen.
    """

    name: str
    table: Path
    outcomes: Path
    pairs: Path
    description: str
    by_default: bool
    generator: str = ""


class AddedPassage(NamedTuple):
    """A near-duplicate; it stands where a ranking has a passage's id."""

    generator: str
    made_for: str
    number: int


RankedPassages = dict[str, list[tuple[str | AddedPassage, float]]]  # by question: passages and scores, best first


def list_rankings(inputs: ExploreInputs, settings: ReportArms, counts: Sequence[int]) -> Iterator[ShownRanking]:
    """Yield the rankings of the report's rows, then those with near-duplicates for each of `counts` but 0."""
    for names in settings.rows.values():
        for name in names:
            table, outcomes = inputs.rankings / name / "evaluate.parquet", inputs.outcomes / f"{name}.parquet"
            description, pairs = words.describe_ranking(name, settings), inputs.pairs / f"{name}.parquet"
            yield ShownRanking(name, table, outcomes, pairs, description, name == names[0])
    joined = [count for count in counts if count]
    for generator, names in product(settings.robustness.by, settings.robustness.trainings.values()):
        for name, count in product(names, joined):
            folder = inputs.outcomes / "robustness" / generator / name
            yield ShownRanking(
                f"{name}+{generator}-{count}",
                ranking_among(folder, count),
                folder / f"{count}.parquet",
                inputs.pairs / f"{name}.parquet",
                words.describe_near_duplicates(name, generator, count),
                by_default=name == names[0] and count == joined[0],
                generator=generator,
            )


def read_ranking(ranking: ShownRanking, questions: MeasuredQuestions, depth: int) -> RankedPassages:
    """Read the first `depth` ranks; raises ValueError for a ranking without these questions, another collection's."""
    tables.count(ranking.table, RankedAmong if ranking.generator else Ranked)
    rows = pq.read_table(ranking.table, filters=[("rank", "<=", depth)])
    rows = rows.filter(pc.is_in(rows["question_id"], value_set=questions.ids))
    if not rows.num_rows:
        raise ValueError(
            f"{ranking.table} has no passages for the {len(questions.ids):,} questions of the chosen sets: it ranks"
            " another collection's, or other sets; name a set of sets.evaluate, or run `dvc repro`"
        )
    ranked = defaultdict(list)
    for row in rows.to_pylist():
        passage = row["passage_id"]
        if passage is None:
            passage = AddedPassage(ranking.generator, row["made_for"], row["number"])
        ranked[row["question_id"]].append((passage, float(f"{row['score']:.4g}")))
    return ranked


def read_texts(
    passages: Iterable[str | AddedPassage], store: PassageStore, shown: Sequence[ShownRanking]
) -> Iterator[list[str]]:
    """Yield id, title and text; of a near-duplicate also its positive and its question."""
    added = {}
    for generator, path in {ranking.generator: ranking.outcomes.with_name(DUPLICATES) for ranking in shown}.items():
        for row in tables.rows(path, NearDuplicate) if generator else ():
            name = f"{generator} {row.number + 1} for {row.question_id}"
            key = AddedPassage(generator, row.question_id, row.number)
            added[key] = [name, row.title, row.text, row.passage_id, row.question_id]
    for passage in passages:
        if isinstance(passage, AddedPassage):
            yield added[passage]
        else:
            row = store.rows([passage])
            yield [passage, *store.titles(row), *store.texts(row)]
