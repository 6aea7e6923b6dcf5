"""Which questions a stage works on: question sets are named `set/split`, as in params.yaml."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from eadpr import tables
from eadpr.records import Question, SetMember


def select(question_sets: Path, names: Collection[str]) -> list[str]:
    """Ids of the questions of the named sets, each once, in the order of questions.parquet beside `question_sets`.

    Raises ValueError for a set that does not exist, naming those that do, and for a member that is not a question.
    """
    members = tables.read(question_sets, SetMember)
    named = pc.binary_join_element_wise(members["question_set"], members["split"], "/")
    available = sorted(pc.unique(named).to_pylist())
    for name in names:
        if name not in available:
            raise ValueError(
                f"question set {name!r} is not in {question_sets} (it holds {', '.join(available) or 'none'});"
                " mend `sets` in params.yaml, or run `dvc repro prepare`"
            )
    wanted = members["question_id"].filter(pc.is_in(named, value_set=pa.array(list(names), pa.string())))
    return _in_order(question_sets, pc.unique(wanted))


def _in_order(question_sets: Path, wanted: pa.Array) -> list[str]:
    questions = question_sets.with_name("questions.parquet")
    ids = tables.read(questions, Question, columns=["id"])["id"]
    unknown = wanted.filter(pc.invert(pc.is_in(wanted, value_set=ids.combine_chunks())))
    if len(unknown):
        raise ValueError(
            f"{question_sets}: question_id {unknown[0].as_py()!r} is not in {questions}; run `dvc repro prepare`"
        )
    return ids.filter(pc.is_in(ids, value_set=wanted)).to_pylist()


def selected(questions: Path, ids: Collection[str]) -> Iterator[Question]:
    """Stream the questions with these ids, in the order of the file."""
    wanted = frozenset(ids)
    return (question for question in tables.rows(questions, Question) if question.id in wanted)
