"""A collection's files become records: passages, questions, question sets and contexts.

Files are read row by row; `gathered` does what concerns whole tables. Memory grows with the pages of `gold_info` alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from eadpr.corpus.formats import dpr, gold, hotpot, own, ramdocs
from eadpr.corpus.formats.columns import NAMES, Columns
from eadpr.corpus.formats.entity_questions import read_entity_questions
from eadpr.corpus.formats.paq import Paq, sample_paq
from eadpr.corpus.formats.trex_facts import Facts, facts_reader
from eadpr.corpus.gathered import RECORDS, Gathered, gathering, write_records
from eadpr.corpus.pieces import cut_passages
from eadpr.corpus.rows import ROLES, GivenPassage, GivenQuestion, OddRows, RowError, check_passages, excerpt
from eadpr.corpus.sources import ASKS, File, Prepare, Source
from eadpr.runtime.files import new_folder, write_json
from eadpr.runtime.progress import progress
from eadpr.storage import engine, tables
from eadpr.storage.records import Context, Passage, Question, SetMember

TABLES = {"passages": Passage} | {name: record for name, (record, _) in RECORDS.items()}

_REPORT = f"""
SELECT m.question_set || '/' || m.split AS name, count(*) AS questions,
    count(*) FILTER (len(q.answers) = 0) AS without_answers,
    count(*) FILTER (coalesce(c.positive, 0) = 0) AS without_positive,
    count(*) FILTER ((len(q.answers) = 0 OR q.answer_kind = 'yes-no') AND coalesce(c.positive, 0) = 0)
        AS without_either,
    count(*) FILTER (c.with_gold) AS with_gold,
    {", ".join(f"coalesce(sum(c.{role}), 0)::BIGINT AS {role}" for role in ROLES)}
FROM question_sets m
JOIN questions q ON q.id = m.question_id
LEFT JOIN (
    SELECT question_id, bool_or(len(gold) > 0) AS with_gold,
        {", ".join(f"count(*) FILTER (role = '{role}') AS {role}" for role in ROLES)}
    FROM contexts GROUP BY question_id
) c ON c.question_id = q.id
GROUP BY name
"""

Asked = tuple[Question, list[tuple[str, str]], list[Context]]  # with (question set, split) pairs
Reader = Callable[[Path], Iterable[GivenQuestion]]
Files = list[tuple[File, Path]]
ColumnsOf = Mapping[Path, Columns]


def prepare(
    source: Source, settings: Prepare, *, sources: Path, raw: Path, out: Path, facts: Facts | None = None,
    paq: Paq | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Write `out`/: one Parquet file per record type and report.json; return the report.

    `facts` and `paq` are for sources with such files.

    Raises ValueError or FileNotFoundError for bad input, naming file, line, field and value; `out` is then as before.
    """
    files = [(file, file.local(sources=sources, raw=raw)) for file in source.files]
    own_format = source.format == "own"
    kinds = {"own": NAMES, "dpr": ("passages",)}.get(source.format, ())
    usual = {} if own_format else {name: name for name in NAMES["passages"]}  # DPR's passages have all columns
    columns = {path: Columns(file.kind, usual | file.columns) for file, path in files if file.kind in kinds}
    odd = OddRows(settings.odd_rows)
    with new_folder(out) as folder, engine.connect() as connection:
        _write_passages(settings, files, columns, odd, folder, connection)
        with gathering(connection, odd, own_format=own_format) as gathered:
            _gather(files, gathered, _readers(source.format, files, columns, facts, paq))
        report = write_records(connection, folder, settings, files, odd) | {"odd_rows": odd.report}
        if columns:
            report["columns"] = {path.name: {"read": c.read, "unread": c.unread} for path, c in columns.items()}
        return _write_report(connection, folder, report)


def write_generated(
    blocks: Iterable[tuple[Iterable[Passage], Iterable[Asked]]], *, out: Path, passages: int | None = None
) -> dict[str, Any]:
    """Write the records that a generator makes, block by block; `passages` is their number if it is known."""
    with new_folder(out) as folder, engine.connect() as connection:
        with ExitStack() as stack, progress("passages", passages, "passages") as advance:
            files = {record: tables.adding(folder / f"{name}.parquet", record) for name, record in TABLES.items()}
            add = {record: stack.enter_context(file) for record, file in files.items()}
            for passages_of_block, questions in blocks:
                for passage in passages_of_block:
                    add[Passage](passage)
                    advance(1)
                for question, sets, contexts in questions:
                    add[Question](question)
                    for name in sets:
                        add[SetMember](SetMember(*name, question.id))
                    for context in contexts:
                        add[Context](context)
        return _write_report(connection, folder, {})


def _write_report(connection: engine.Connection, folder: Path, counts: dict[str, Any]) -> dict[str, Any]:
    """Write report.json: how many passages and questions there are, and what each question set has."""
    for name in ("questions", "question_sets", "contexts"):
        engine.view(connection, name, folder / f"{name}.parquet", TABLES[name])
    sets = {row.pop("name"): row for batch in engine.batches(connection, _REPORT) for row in batch.to_pylist()}
    for row in sets.values():
        if not row["without_either"]:
            del row["without_either"]
    numbers = {name: tables.count(folder / f"{name}.parquet", TABLES[name]) for name in ("passages", "questions")}
    report = numbers | {"sets": sets, **counts}
    if not report["passages"]:
        raise ValueError(
            "the collection has no passages; add a file of kind passages, or set prepare.add_context_passages"
        )
    write_json(folder / "report.json", report)
    return report


def _read_passages(
    settings: Prepare, files: Files, columns: ColumnsOf, odd: OddRows, rows: Counter[Path]
) -> Iterator[GivenPassage]:
    """Yield the passages of all files, and count the rows of each file in `rows`."""

    def counted(path: Path, passages: Iterable[GivenPassage]) -> Iterator[GivenPassage]:
        for passage in passages:
            rows[path] += 1
            yield passage

    for number, path in enumerate(path for file, path in files if file.kind == "passages"):
        prefix = f"{number + 1}:" if number else ""
        in_columns = path in columns
        passages = own.read_passages(path, columns[path], prefix=prefix) if in_columns else hotpot.read_passages(path)
        passages = check_passages(counted(path, passages), partial(odd.add, "passages left out"))
        yield from cut_passages(passages, settings.split_words) if in_columns and settings.split_words else passages


def _write_passages(
    settings: Prepare, files: Files, columns: ColumnsOf, odd: OddRows, folder: Path, connection: engine.Connection
) -> None:
    rows: Counter[Path] = Counter()
    read, path = partial(_read_passages, settings, files, columns, odd, rows), folder / "passages.parquet"
    with tables.adding(path, Passage) as add, progress("passages", None, "passages") as advance:
        for _, *fields in read():
            add(fields)
            advance(1)
    odd.check("passages left out", rows.total())
    for file, file_path in files:
        if file.kind == "passages":
            _check_count(file, rows[file_path], file_path, "passages")
    engine.view(connection, "corpus", path, Passage)
    if twice := engine.find_duplicate(connection, "corpus", engine.POSITION):
        first, second = (place for row, (place, *_) in enumerate(read()) if row in twice["rows"])
        reason = f"stands twice (first in {first}); ids must be unique"
        raise RowError(second, f"passage id {excerpt(twice['id'])}", reason)


def _check_count(file: File, count: int, path: Path, kind: str) -> None:
    if not count:
        raise ValueError(f"{path} holds no {kind}; fill it, or remove it from the files in data/collections")
    if file.rows not in (None, count):
        expected = f"expected rows: {file.rows:,}; the file is incomplete or another one"
        raise ValueError(f"{path} holds {count:,} {kind}, {expected}")


def _readers(format: str, files: Files, columns: ColumnsOf, facts: Facts | None, paq: Paq | None) -> dict[str, Reader]:
    """Return the reader of each kind of file that asks questions."""
    questions = {"own": lambda path: own.read_questions(path, columns[path]), "hotpot": hotpot.read_questions}
    return {
        "training": dpr.read_questions,
        "questions": questions.get(format, dpr.read_qa_csv),
        "contexts": dpr.read_questions,
        "ramdocs": ramdocs.read_ramdocs,
        "entity_questions": read_entity_questions,
        "paq": lambda path: sample_paq(path, paq),
        "facts": facts_reader([path for file, path in files if file.kind == "facts"], facts),
    }


def _gather(files: Files, gathered: Gathered, readers: Mapping[str, Reader]) -> None:
    for file, path in files:
        if file.kind not in ASKS:
            continue
        start = gathered.rows["asked"]
        annotations = [(note.kind, note_path) for note, note_path in files if note.annotates(file)]
        pages = [gold.GoldPages(note_path) for kind, note_path in annotations if kind == "gold_info"]
        unnamed: list[str] = []  # questions that have a passage only through their gold pages
        with progress(f"questions of {path.name}", file.rows, "questions") as advance:
            for question in readers[file.kind](path):
                gathered.add_question(question, file, pages)
                if pages and file.kind == "questions":
                    unnamed.append(question.question)
                advance(1)
        _check_count(file, gathered.rows["asked"] - start, path, "questions")
        for kind, note_path in annotations:
            if kind == "gold":
                gathered.add_annotations(gold.read_gold_offsets(note_path), file)
        for page in pages if unnamed else ():
            gathered.locate_pages(page, unnamed, file)
