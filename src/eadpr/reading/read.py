"""The stage `read`: a reader's answers to the evaluated questions, from the passages that a ranking gives them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path

from eadpr import cache, files, tables
from eadpr import machine as machines
from eadpr.config import Sets
from eadpr.machine import Machine
from eadpr.passages import PassageStore
from eadpr.questions import select, selected
from eadpr.reading import extractive_answering, fid_answering, kinds, shards
from eadpr.reading.config import Read
from eadpr.reading.records import Prediction
from eadpr.reading.sample import sampled
from eadpr.records import Question, Ranked

ANSWERING = {"extractive": extractive_answering, "fid": fid_answering}


def read(
    records: Path, ranking: Path, reader: Path, out: Path, *, settings: Read, sets: Sets, hardware: Machine
) -> int:
    """Write predictions.parquet and predictions.json to the folder `out`; returns the number of questions.

    A question without a ranked passage has no prediction. Where a ranking ends before the last of `top_k`, all of it is
    read. Finished shards stay in the cache until `out` is written. Raises ValueError for a ranked question that is not
    evaluated.
    """
    store = PassageStore(records / "passages.parquet")
    model = kinds.load(reader).to(machines.device())
    answerer = ANSWERING[model.settings.kind].Answerer(model, store, settings, hardware)
    ranked = ranking / "evaluate.parquet"
    ids = _asked(records / "question_sets.parquet", ranked, settings, sets)
    questions = {question.id: question for question in selected(records / "questions.parquet", ids)}

    def answered(asked: tuple[str, list[str]]) -> list[Prediction]:
        question_id, passage_ids = asked
        return answerer(questions[question_id], store.rows(passage_ids).tolist())

    with cache.workspace("readings", _fingerprint(records, ranked, reader, ids, settings, hardware)) as folder:
        asked = (one for one in ranked_passages(ranked, settings.top_k[-1]) if one[0] in questions)
        made = shards.shards(folder, Prediction, asked, answered, label="read", total=len(ids))
        rows = [row for shard in made for row in tables.rows(shard, Prediction)]
        found = [list(of_one) for _, of_one in groupby(rows, key=attrgetter("question_id"))]
        with files.new_folder(out) as temporary:
            tables.write(temporary / "predictions.parquet", Prediction, rows)
            entries = [_entry(questions[of_one[0].question_id], of_one) for of_one in found]
            files.write_json(temporary / "predictions.json", entries)
        files.discard(folder)
    return len(found)


def _asked(question_sets: Path, ranked: Path, settings: Read, sets: Sets) -> list[str]:
    """The ranked questions that are read, in the order of the ranking."""
    members = {name: select(question_sets, [name]) for name in sets.evaluate}
    evaluated = frozenset(chain.from_iterable(members.values()))
    wanted = frozenset(chain.from_iterable(sampled(members, settings).values()))
    ids = dict.fromkeys(tables.read(ranked, Ranked, columns=["question_id"])["question_id"].to_pylist())
    for question_id in ids:
        if question_id not in evaluated:
            raise ValueError(f"{ranked}: question_id {question_id!r} is in none of sets.evaluate; run `dvc repro`")
    return [question_id for question_id in ids if question_id in wanted]


def ranked_passages(ranking: Path, depth: int) -> Iterator[tuple[str, list[str]]]:
    """Question id and the ids of its first passages, best first, question by question."""
    for question_id, rows in groupby(tables.rows(ranking, Ranked), key=attrgetter("question_id")):
        yield question_id, [row.passage_id for row in rows if row.rank <= depth]


def _fingerprint(records: Path, ranked: Path, reader: Path, ids: list[str], settings: Read, hardware: Machine) -> str:
    hashes = [files.sha256(path) for path in (records / "passages.parquet", records / "questions.parquet", ranked)]
    sections = [section.model_dump() for section in (settings, hardware)]
    made_with = [machines.libraries(), machines.device(), cache.code(__file__)]
    return cache.fingerprint(hashes, files.tree_sha256(reader), ids, sections, made_with)


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
