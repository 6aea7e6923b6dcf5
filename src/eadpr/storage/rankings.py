"""Rankings of the questions trained on and of those evaluated on, by whatever ranks."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pyarrow as pa

from eadpr.runtime import files
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.records import Question

# Ranked passages that a reader took for positives (stage `denoise`), beside the ranking and what is mined from it.
PROMOTED = "positives.parquet"


def write_rankings(
    records: Path,
    out: Path,
    rank: Callable[[list[Question], str], Sequence[pa.Table]],
    record_types: Mapping[str, type],
    *,
    sets: Sets,
    block: int,
) -> int:
    """Write train.parquet and evaluate.parquet to each of the folders in `out` that `record_types` names.

    `rank` gets a block of questions and the name of the part; it makes a table of each type. Questions to validate with
    are in the part train. Returns the number of questions.
    """
    count = 0
    with files.new_folder(out) as folder:
        for part, names in (("train", sets.learnt), ("evaluate", sets.evaluate)):
            ids = read_question_ids(records / "question_sets.parquet", names)
            questions = read_questions(records / "questions.parquet", ids)
            with ExitStack() as stack:
                parts = ((folder / name / f"{part}.parquet", record) for name, record in record_types.items())
                appends = [stack.enter_context(tables.writing(*one)) for one in parts]
                while asked := list(islice(questions, block)):
                    for append, table in zip(appends, rank(asked, part), strict=True):
                        append(table)
                    count += len(asked)
    return count
