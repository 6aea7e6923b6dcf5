"""Rankings of the training and the evaluation questions, by any ranker."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eadpr.runtime import files
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.records import Context, Question, Ranked

SENTENCES = Path("sentences", "evaluate.parquet")  # in a ranking's folder: a table of MatchedSentence


class MatchedSentence(NamedTuple):
    """The sentence of a ranked passage that the question matches best, in characters of its text."""

    question_id: str
    passage_id: str
    rank: int
    start: int
    end: int
    score: float


Rank = Callable[[list[Question], str], Sequence[pa.Table]]


def write_rankings(
    records: Path, out: Path, rank: Rank, record_types: Mapping[str, type], *, sets: Sets, block: int
) -> int:
    """Write train.parquet and evaluate.parquet to each of the folders in `out` that `record_types` names.

    `rank` takes a block of questions and the name of the part, train or evaluate, and returns a table of each record
    type. Validation questions belong to train. A question's own document is left out. Returns the number of questions.
    """
    contexts = tables.read(records / "contexts.parquet", Context, ["question_id", "passage_id", "role"])
    contexts = contexts.filter(pc.equal(contexts["role"], "own"))
    excluded = set(zip(contexts["question_id"].to_pylist(), contexts["passage_id"].to_pylist(), strict=True))
    count = 0
    with files.new_folder(out) as folder:
        for part, names in (("train", sets.learnt), ("evaluate", sets.evaluate)):
            ids = read_question_ids(records / "question_sets.parquet", names)
            questions = read_questions(records / "questions.parquet", ids)
            with ExitStack() as stack:
                writers = [
                    stack.enter_context(tables.writing(folder / name / f"{part}.parquet", record))
                    for name, record in record_types.items()
                ]
                while chunk := list(islice(questions, block)):
                    parts = rank(chunk, part)
                    for append, table in zip(writers, _leave_out(parts, excluded) if excluded else parts, strict=True):
                        append(table)
                    count += len(chunk)
    return count


def _leave_out(parts: Sequence[pa.Table], excluded: set[tuple[str, str]]) -> Iterator[pa.Table]:
    """Yield the tables without rows of the pairs `excluded`, and with ranks that are counted without them.

    The first table has every rank; another may leave ranks out. A table without passages stays as it is.
    """
    rows = parts[0].select(["question_id", "passage_id", "rank"]).to_pylist()
    remaining = [row for row in rows if (row["question_id"], row["passage_id"]) not in excluded]
    new_ranks = {}
    for _, of_question in groupby(remaining, key=itemgetter("question_id")):
        new_ranks |= {(row["question_id"], row["rank"]): rank for rank, row in enumerate(of_question, 1)}
    for table in parts:
        if "passage_id" in table.column_names:
            places = zip(table["question_id"].to_pylist(), table["rank"].to_pylist(), strict=True)
            ranks = pa.array([new_ranks.get(place) for place in places], pa.int32())
            table = table.set_column(table.column_names.index("rank"), table.schema.field("rank"), ranks)
            table = table.filter(ranks.is_valid())
        yield table


def read_rankings(path: Path, ids: Iterable[str]) -> Iterator[list[Ranked]]:
    """Yield the rows of each question, none without a ranking. Other questions, or another order, are refused."""
    groups = groupby(tables.rows(path, Ranked), key=attrgetter("question_id"))
    ranked_id, rows = next(groups, (None, ()))
    for question_id in ids:
        if question_id == ranked_id:
            yield list(rows)
            ranked_id, rows = next(groups, (None, ()))
        else:
            yield []
    if ranked_id is not None:
        raise ValueError(f"{path}: question {ranked_id!r} is in none of the sets, or not in order; run `dvc repro`")
