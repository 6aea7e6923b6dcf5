"""The table of outcomes: a value per question of every metric, written by each measure and read by the report."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eadpr.storage import tables
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.records import Outcome, Question
from eadpr.text.question_types import question_type

MADE = "near_duplicates.json"  # beside outcomes with near-duplicates: counts of these
GROUPS = ("type", "hop_type", "relation")  # columns with kinds of questions


class Values(NamedTuple):
    """A metric's values; `rows` are indices into the questions and repeat where a question has several pairs."""

    rows: NDArray[np.int64]
    values: NDArray[np.float64]


class MeasuredQuestions(NamedTuple):
    """The questions that are measured, in the order of questions.parquet.

    `table` has the columns question_id and `GROUPS`, `members` the rows of each question set.
    """

    table: pa.Table
    members: dict[str, NDArray[np.int64]]

    @property
    def ids(self) -> pa.Array:
        return self.table["question_id"].chunk(0)

    def records(self, folder: Path) -> Iterator[Question]:
        """Stream the whole records from the folder of questions.parquet."""
        return read_questions(folder / "questions.parquet", self.ids.to_pylist())

    @property
    def counts(self) -> dict[str, int]:
        return {name: len(rows) for name, rows in self.members.items()}


def load_questions(records: Path, names: Sequence[str]) -> MeasuredQuestions:
    """Load the questions of the sets with these names."""
    members = {name: read_question_ids(records / "question_sets.parquet", [name]) for name in names}
    ids = {name: pa.array(set_ids, pa.string()) for name, set_ids in members.items()}
    table = tables.read(records / "questions.parquet", Question, ["id", "question", "type", "relation"])
    table = table.filter(pc.is_in(table["id"], value_set=pa.concat_arrays(ids.values()))).combine_chunks()
    types = pa.array(map(question_type, table["question"].to_pylist()), pa.string())
    table = pa.table([table["id"], types, table["type"], table["relation"]], names=["question_id", *GROUPS])
    order = table["question_id"].chunk(0)
    return MeasuredQuestions(
        table, {name: np.sort(pc.index_in(set_ids, value_set=order).to_numpy()) for name, set_ids in ids.items()}
    )


def write(path: Path, questions: MeasuredQuestions, values: Mapping[str, Values]) -> None:
    with tables.writing(path, Outcome) as append:
        for name, members in questions.members.items():
            inside = np.zeros(questions.table.num_rows, dtype=np.bool_)
            inside[members] = True
            for metric, (rows, numbers) in values.items():
                selected = inside[rows]
                part = questions.table.take(rows[selected])
                columns = [pa.repeat(name, len(part)), part["question_id"], *(part[group] for group in GROUPS)]
                columns += [pa.repeat(metric, len(part)), pa.array(numbers[selected], pa.float32())]
                append(pa.table(columns, schema=tables.schema(Outcome)))


class Outcomes:
    """The tables of an arm's trainings. Metrics are read one by one: all together may not fit in memory."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)
        for path in self.paths:
            tables.count(path, Outcome)  # raises where it is missing or another table

    def of_training(self, training: int, question_set: str, metric: str) -> pd.DataFrame:
        """Return by question id, in file order, `sums` of values and `counts` (pairs, else 1); empty without metric."""
        filters = [("question_set", "=", question_set), ("metric", "=", metric)]  # skips all else on disk
        columns = ["question_id", "value"]
        rows = pq.read_table(self.paths[training], columns=columns, filters=filters, memory_map=True).to_pandas()
        values = rows["value"].astype(np.float64).groupby(rows["question_id"], sort=False)
        return values.agg(sums="sum", counts="size")

    def of_trainings(self, question_set: str, metric: str) -> list[pd.DataFrame]:
        return [self.of_training(i, question_set, metric) for i in range(len(self.paths))]


def together(trainings: Sequence[pd.DataFrame]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return sums, shape (N, Q), and counts, shape (Q,), of the questions with as many values in each of N trainings,
    in the order of the first; only in AA, where arms truncate differently, can the number differ."""
    sums, counts = (
        pd.concat([training[name] for training in trainings], axis=1, join="inner").to_numpy()
        for name in ("sums", "counts")
    )
    same = (counts == counts[:, :1]).all(axis=1)
    return np.ascontiguousarray(sums[same].T), counts[same, 0]
