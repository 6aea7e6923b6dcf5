"""Stage `robustness`: retrieval metrics of an arm, or of BM25, as near-duplicates join the corpus (EADPR, Figure 5).

Near-duplicates push passages of a ranking down and are never hits themselves. One that was made for another question
and holds an answer to this one stays out of this question's ranking: it would be neither a hit nor a mistake.

`among_look_alikes` leaves the corpus aside: of a question's positives and its own near-duplicates alone, is a positive
first? It is 1 or 0 for the questions that have both.
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from eadpr import files, tables
from eadpr.evaluation import robustness_bm25, robustness_dense
from eadpr.evaluation.config import AMONG
from eadpr.evaluation.evaluate import COUNTS, ranking_values
from eadpr.evaluation.outcomes import MADE, Values, write
from eadpr.evaluation.question_tables import DUPLICATES, RankedAmong, ranking_among
from eadpr.evaluation.robustness_given import RobustnessInputs, RobustnessSettings, joined
from eadpr.records import Ranked


def run(inputs: RobustnessInputs, out: Path, settings: RobustnessSettings) -> int:
    """Write the folder `out`: for each count n a table n.parquet of `Outcome`s, with the first n near-duplicates of
    every question in the corpus, and for each but 0 the ranking itself; beside them, the near-duplicates and what their
    generator reports. Returns the number of near-duplicates joined.
    """
    given = joined(inputs, settings)
    rankings = robustness_bm25.rankings if inputs.model is None else robustness_dense.rankings
    rank = rankings(given, inputs, settings)
    with files.new_folder(out) as folder, tempfile.TemporaryDirectory() as temporary:
        for count in settings.robustness.counts:
            ranking, first = inputs.ranking, Values(np.zeros(0, np.int64), np.zeros(0))
            if count:
                ranking, table = Path(temporary) / str(count), ranking_among(folder, count)
                first = rank(count, table)
                tables.write(ranking / "evaluate.parquet", Ranked, _of_corpus(table))
            values = ranking_values(given.measured, inputs.records, inputs.positives, ranking, settings.evaluate)
            own = {metric: of for metric, of in values.items() if metric not in COUNTS}
            write(folder / f"{count}.parquet", given.measured, own | {AMONG: first})
        shutil.copyfile(inputs.near_duplicates / DUPLICATES, folder / DUPLICATES)
        shutil.copyfile(inputs.near_duplicates / "report.json", folder / MADE)
    return len(given.added.passages)


def _of_corpus(table: Path) -> Iterator[Ranked]:
    """With gaps in the ranks where near-duplicates stand."""
    for row in tables.rows(table, RankedAmong):
        if row.passage_id is not None:
            yield Ranked(row.question_id, row.passage_id, row.rank, row.score)
