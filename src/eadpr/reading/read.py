"""The stage `read`: a reader's answers to the evaluated questions, from the passages or paths of a ranking."""

from __future__ import annotations

from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path

from eadpr import cache, files, tables
from eadpr import machine as machines
from eadpr.config import Sets
from eadpr.machine import Machine
from eadpr.passages import PassageStore
from eadpr.questions import select, selected
from eadpr.reading import answering, kinds, shards
from eadpr.reading.config import Read
from eadpr.reading.official import Titles, write_official
from eadpr.reading.records import Prediction
from eadpr.reading.selection import ranked, ranked_ids, ranked_table, rows_of, sampled
from eadpr.records import Question


def read(
    records: Path, ranking: Path, reader: Path, out: Path, *, settings: Read, sets: Sets, hardware: Machine
) -> int:
    """Write predictions.parquet and predictions.json, of a reader of paths HotpotQA's official file, to the folder
    `out`; returns the number of questions.

    A question without a ranked passage has no prediction. Where a ranking ends before the last of `top_k`, all of it is
    read. Finished shards stay in the cache until `out` is written. Raises ValueError for a ranked question that is not
    evaluated.
    """
    store = PassageStore(records / "passages.parquet")
    model = kinds.load(reader).to(machines.device())
    settings = settings.of(model.settings)
    answerer = answering.ANSWERING[model.settings.kind](model, store, settings, hardware)
    of_paths = model.settings.of_paths
    table = ranked_table(ranking, "evaluate", hops=of_paths)
    ids = _asked(records / "question_sets.parquet", table, settings, sets)
    questions = {question.id: question for question in selected(records / "questions.parquet", ids)}

    def answered(asked: tuple[str, list[list[str]]]) -> list[Prediction]:
        question_id, paths = asked
        return answerer(questions[question_id], rows_of(store, paths))

    with cache.workspace("readings", _fingerprint(records, table, reader, ids, settings, hardware)) as folder:
        asked = (one for one in ranked(table, settings.top_k[-1]) if one[0] in questions)
        made = shards.shards(folder, Prediction, asked, answered, label="read", total=len(ids))
        rows = [row for shard in made for row in tables.rows(shard, Prediction)]
        with files.new_folder(out) as temporary:
            tables.write(temporary / "predictions.parquet", Prediction, rows)
            if of_paths:
                last = [row for row in rows if row.top_k == settings.top_k[-1]]
                write_official(temporary / "predictions.json", last, Titles(records, ids))
            else:
                files.write_json(temporary / "predictions.json", _entries(questions, rows))
        files.discard(folder)
    return len({row.question_id for row in rows})


def _asked(question_sets: Path, table: Path, settings: Read, sets: Sets) -> list[str]:
    """The ranked questions that are read, in the order of the ranking."""
    members = {name: select(question_sets, [name]) for name in sets.evaluate}
    evaluated = frozenset(chain.from_iterable(members.values()))
    wanted = frozenset(chain.from_iterable(sampled(members, settings).values()))
    ids = ranked_ids(table)
    for question_id in ids:
        if question_id not in evaluated:
            raise ValueError(f"{table}: question_id {question_id!r} is in none of sets.evaluate; run `dvc repro`")
    return [question_id for question_id in ids if question_id in wanted]


def _fingerprint(records: Path, table: Path, reader: Path, ids: list[str], settings: Read, hardware: Machine) -> str:
    hashes = [files.sha256(path) for path in (records / "passages.parquet", records / "questions.parquet", table)]
    sections = [section.model_dump() for section in (settings, hardware)]
    made_with = [machines.libraries(), machines.device(), cache.code(__file__)]
    return cache.fingerprint(hashes, files.tree_sha256(reader), ids, sections, made_with)


def _entries(questions: dict[str, Question], rows: list[Prediction]) -> list[dict[str, object]]:
    """Every question with its predictions, as JSON has them: without what is None."""
    found = []
    for question_id, of_one in groupby(rows, key=attrgetter("question_id")):
        asked = questions[question_id]
        given = [row._asdict().items() for row in of_one]
        predictions = [{k: v for k, v in row if v is not None and k != "question_id"} for row in given]
        entry = {"id": asked.id, "question": asked.question, "answers": asked.answers, "predictions": predictions}
        found.append(entry)
    return found
