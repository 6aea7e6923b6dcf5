"""The rankings that a page can show."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from eadpr.evaluation.outcomes import MeasuredQuestions
from eadpr.explorer import words
from eadpr.report.config import ReportArms
from eadpr.storage import tables
from eadpr.storage.records import Ranked


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
    """A table of Ranked, its outcomes, and the scores `pairs` that its encoders give the forms of positives.

    `description` explains a ranking that is not just an arm's. Those `by_default` are shown where none is chosen.
    """

    name: str
    table: Path
    outcomes: Path
    pairs: Path
    description: str
    by_default: bool


RankedPassages = dict[str, list[tuple[str, float]]]  # by question: passages and scores, best first


def list_rankings(inputs: ExploreInputs, settings: ReportArms) -> Iterator[ShownRanking]:
    """Yield the rankings of the report's rows."""
    for names in settings.rows.values():
        for name in names:
            table, outcomes = inputs.rankings / name / "evaluate.parquet", inputs.outcomes / f"{name}.parquet"
            description, pairs = words.describe_ranking(name, settings), inputs.pairs / f"{name}.parquet"
            yield ShownRanking(name, table, outcomes, pairs, description, name == names[0])


def read_ranking(ranking: ShownRanking, questions: MeasuredQuestions, depth: int) -> RankedPassages:
    """Read the first `depth` ranks; raises ValueError for a ranking without these questions, another collection's."""
    tables.count(ranking.table, Ranked)
    rows = pq.read_table(ranking.table, filters=[("rank", "<=", depth)])
    rows = rows.filter(pc.is_in(rows["question_id"], value_set=questions.ids))
    if not rows.num_rows:
        raise ValueError(
            f"{ranking.table} has no passages for the {len(questions.ids):,} questions of the chosen sets: it ranks"
            " another collection's, or other sets; name a set of sets.evaluate, or run `dvc repro`"
        )
    ranked = defaultdict(list)
    for row in rows.to_pylist():
        ranked[row["question_id"]].append((row["passage_id"], float(f"{row['score']:.4g}")))
    return ranked
