"""The stage `read`: a reader's answers to the evaluated questions, from the passages that a ranking gives them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from eadpr import files, machine, tables
from eadpr.machine import Machine
from eadpr.passages import PassageStore
from eadpr.progress import progress
from eadpr.questions import selected
from eadpr.reading import extractive_answering, fid_answering, kinds
from eadpr.reading.config import Read
from eadpr.reading.records import Prediction
from eadpr.records import Question, Ranked

ANSWERING = {"extractive": extractive_answering, "fid": fid_answering}


def read(records: Path, ranking: Path, reader: Path, out: Path, *, settings: Read, hardware: Machine) -> int:
    """Write predictions.parquet and predictions.json to the folder `out`; returns the number of questions.

    A question without a ranked passage has no prediction. Where a ranking ends before the last of `top_k`, all of it is
    read.
    """
    store = PassageStore(records / "passages.parquet")
    model = kinds.load(reader).to(machine.device())
    answerer = ANSWERING[model.settings.kind].Answerer(model, store, settings, hardware)
    ranked = ranking / "evaluate.parquet"
    ids = dict.fromkeys(tables.read(ranked, Ranked, columns=["question_id"])["question_id"].to_pylist())
    questions = {question.id: question for question in selected(records / "questions.parquet", ids)}
    found: list[list[Prediction]] = []
    with progress("read", len(ids), "questions") as advance:
        for question_id, passage_ids in ranked_passages(ranked, settings.top_k[-1]):
            if question_id not in questions:
                raise ValueError(f"{ranked}: question_id {question_id!r} is not in {records}; run `dvc repro`")
            found.append(answerer(questions[question_id], store.rows(passage_ids).tolist()))
            advance(1)
    with files.new_folder(out) as folder:
        tables.write(folder / "predictions.parquet", Prediction, (row for rows in found for row in rows))
        files.write_json(folder / "predictions.json", [_entry(questions[rows[0].question_id], rows) for rows in found])
    return len(found)


def ranked_passages(ranking: Path, depth: int) -> Iterator[tuple[str, list[str]]]:
    """Question id and the ids of its first passages, best first, question by question."""
    for question_id, rows in groupby(tables.rows(ranking, Ranked), key=attrgetter("question_id")):
        yield question_id, [row.passage_id for row in rows if row.rank <= depth]


def _entry(question: Question, rows: list[Prediction]) -> dict[str, object]:
    predictions = [row._asdict() for row in rows]
    for row in predictions:
        del row["question_id"]
    return {
        "id": question.id,
        "question": question.question,
        "answers": question.answers,
        "predictions": [{name: value for name, value in row.items() if value is not None} for row in predictions],
    }
