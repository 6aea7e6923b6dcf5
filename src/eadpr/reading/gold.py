"""The stage `gold_ranking`: the given positives of the evaluated questions as a ranking, from which a reader answers
what it can where retrieval misses nothing."""

from __future__ import annotations

from pathlib import Path

from eadpr import files, tables
from eadpr.config import Sets
from eadpr.questions import select
from eadpr.records import Positive, Ranked


def write_gold(records: Path, positives: Path, out: Path, *, sets: Sets) -> int:
    """Write evaluate.parquet (`Ranked`) to the folder `out`: a question's positives in their order, scored 1 / rank.

    Returns the number of questions; those that the source gave no positive, whose positive BM25 found, are not ranked.
    Raises ValueError where that are all of them.
    """
    given: dict[str, list[str]] = {i: [] for i in select(records / "question_sets.parquet", sets.evaluate)}
    for row in tables.rows(positives / "positives.parquet", Positive):
        if row.source == "given" and row.question_id in given:
            given[row.question_id].append(row.passage_id)
    rows = [
        Ranked(question_id, passage_id, rank, 1 / rank)
        for question_id, ids in given.items()
        for rank, passage_id in enumerate(ids, start=1)
    ]
    if not rows:
        raise ValueError(
            f"{positives}: the source gives none of the questions of {', '.join(sets.evaluate)} a positive; take gold"
            " out of reading.rankings and reading.gold"
        )
    with files.new_folder(out) as folder:
        tables.write(folder / "evaluate.parquet", Ranked, rows)
    return sum(map(bool, given.values()))
