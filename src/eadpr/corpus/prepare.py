"""A collection's files become records: passages, questions, question sets and contexts.

Files are read row by row; what concerns whole tables is in `gathered`. Memory does not grow with passages or questions,
but with the pages of `gold_info`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from eadpr.corpus import gathered
from eadpr.corpus.formats import columns, dpr, entities, hotpot, own, qa_files
from eadpr.corpus.formats.columns import Columns
from eadpr.corpus.formats.entities import Facts, Paq
from eadpr.corpus.formats.qa_files import GoldPages, gold_offsets
from eadpr.corpus.rows import ROLES, GivenPassages, GivenQuestion, in_columns, shown
from eadpr.corpus.sources import ASKS, File, Prepare, Source
from eadpr.runtime.files import new_folder, write_json
from eadpr.runtime.progress import progress
from eadpr.storage import engine, tables
from eadpr.storage.records import Context, Origin, Passage, Question, SetMember

__all__ = ["Prepare", "prepare", "write_generated"]

TABLES = {
    "passages": Passage,
    "questions": Question,
    "question_sets": SetMember,
    "contexts": Context,
    "origins": Origin,
}

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
Reader = Callable[[Path], Iterator[GivenQuestion]]


def prepare(
    source: Source,
    settings: Prepare,
    *,
    sources: Path,
    raw: Path,
    out: Path,
    facts: Facts | None = None,
    paq: Paq | None = None,
) -> dict[str, Any]:
    """Write `out`/: one Parquet file per record type and report.json, whose content is returned.

    `facts` and `paq` are for sources with files of these kinds.

    Raises ValueError or FileNotFoundError for bad input, naming file, line, field and value; `out` is then as before.
    """
    paths = {file.name: file.local(sources=sources, raw=raw) for file in source.files}
    of_own = [file for file in source.files if source.format == "own" and file.kind in columns.NAMES]
    named = {paths[file.name]: Columns(file.kind, file.columns) for file in of_own}
    if missing := own.missing_columns(named):
        raise ValueError("; ".join(missing))
    with new_folder(out) as folder, engine.connect() as connection:
        _write_passages(source, settings, paths, named, folder, connection)
        with gathered.gathering(connection, settings, own=source.format == "own") as found:
            _gather(source, paths, found, _readers(source, paths, named, facts, paq))
        files = [(file, paths[file.name]) for file in source.files]
        numbered = [
            path for file, path in files if file.kind == "passages" and path in named and "id" not in named[path].read
        ]
        counts = gathered.write(connection, folder, settings, files, numbered=numbered)
        counts |= {name: getattr(found, name) for name in ("answers_dropped", "patterns_that_never_match")}
        if named:
            counts["columns"] = {path.name: {"read": one.read, "unread": one.unread} for path, one in named.items()}
        return _reported(connection, folder, counts)


def write_generated(
    blocks: Iterable[tuple[Iterable[Passage], Iterable[Asked]]], *, out: Path, passages: int | None = None
) -> dict[str, Any]:
    """As `prepare`, for records made by a generator, block by block; `passages` is their number if it is known."""
    with new_folder(out) as folder, engine.connect() as connection:
        with ExitStack() as stack, progress("passages", passages, "passages") as advance:
            paths = {record: folder / f"{name}.parquet" for name, record in TABLES.items()}
            append = {record: stack.enter_context(tables.writing(path, record)) for record, path in paths.items()}
            for made, asked in blocks:
                rows: dict[type, list[tuple]] = {
                    Passage: list(made),
                    Question: [question for question, _, _ in asked],
                    SetMember: [SetMember(*of_set, question.id) for question, sets, _ in asked for of_set in sets],
                    Context: [context for _, _, contexts in asked for context in contexts],
                }
                for record, some in rows.items():
                    append[record](tables.as_table(record, some))
                advance(len(rows[Passage]))
        return _reported(connection, folder, {})


def _reported(connection: engine.Connection, folder: Path, counts: dict[str, Any]) -> dict[str, Any]:
    """report.json: how many passages and questions there are, and what each question set has."""
    for name in ("questions", "question_sets", "contexts"):
        engine.view(connection, name, folder / f"{name}.parquet", TABLES[name])
    counted = [row for batch in engine.batches(connection, _REPORT) for row in batch.to_pylist()]
    report = {
        "passages": tables.count(folder / "passages.parquet", Passage),
        "questions": tables.count(folder / "questions.parquet", Question),
        "sets": {row.pop("name"): _counts(row) for row in counted},
        **counts,
    }
    if not report["passages"]:
        raise ValueError(
            "the collection has no passages; add a file of kind passages, or set prepare.add_context_passages"
        )
    write_json(folder / "report.json", report)
    return report


def _counts(row: dict[str, Any]) -> dict[str, Any]:
    """Without `without_either` where it is 0, so that reports of before keep their bytes."""
    return {name: count for name, count in row.items() if count or name != "without_either"}


def _passages(
    source: Source, settings: Prepare, paths: dict[str, Path], named: dict[Path, Columns]
) -> Iterator[tuple[File, GivenPassages]]:
    """The passages of each file, some at a time."""
    files = [file for file in source.files if file.kind == "passages"]
    for number, file in enumerate(files, start=1):
        path = paths[file.name]
        if source.format == "dpr":
            yield from ((file, some) for some in in_columns(dpr.passages(path, strip_quotes=settings.strip_quotes)))
        elif source.format == "hotpot":
            yield from ((file, some) for some in in_columns(hotpot.passages(path), empty=True))
        else:
            words = settings.split_words
            for some in in_columns(own.passages(path, named[path], prefix=f"{number}:" if number > 1 else "")):
                yield file, own.in_pieces(some, words) if words else some


def _write_passages(
    source: Source,
    settings: Prepare,
    paths: dict[str, Path],
    named: dict[Path, Columns],
    folder: Path,
    connection: engine.Connection,
) -> None:
    rows = {file.name: 0 for file in source.files if file.kind == "passages"}
    path = folder / "passages.parquet"
    with tables.writing(path, Passage) as append, progress("passages", None, "passages") as advance:
        for file, (places, *fields) in _passages(source, settings, paths, named):
            append(tables.from_columns(Passage, fields))
            rows[file.name] += len(places)
            advance(len(places))
    engine.view(connection, "corpus", path, Passage)
    if twice := engine.find_duplicate(connection, "corpus", engine.POSITION):
        places = (where for _, given in _passages(source, settings, paths, named) for where in given.places)
        again = islice(places, twice["rows"][1] + 1)
        first, second = (where for row, where in enumerate(again) if row in twice["rows"])
        raise ValueError(
            f"{second}: passage id {shown(twice['id'])} stands twice (first in {first}); ids must be unique"
        )
    for file in source.files:
        if file.kind == "passages":
            _check_rows(file, rows[file.name], paths[file.name], "passages")


def _check_rows(file: File, found: int, path: Path, what: str) -> None:
    if not found:
        raise ValueError(f"{path} holds no {what}; fill it, or remove it from the files in data/collections")
    if file.rows is not None and found != file.rows:
        raise ValueError(
            f"{path} holds {found:,} {what}, expected rows: {file.rows:,}; the file is incomplete or another one"
        )


def _readers(
    source: Source, paths: Mapping[str, Path], named: dict[Path, Columns], facts: Facts | None, paq: Paq | None
) -> dict[str, Reader]:
    """By kind of file."""
    stated = [paths[file.name] for file in source.files if file.kind == "facts"]
    questions = {"own": lambda path: own.questions(path, named[path]), "hotpot": hotpot.questions}
    return {
        "training": dpr.training,
        "questions": questions.get(source.format, qa_files.qa_csv),
        "trec": qa_files.trec,
        "contexts": dpr.contexts,
        "ramdocs": qa_files.ramdocs,
        "entity_questions": entities.entity_questions,
        "paq": lambda path: iter(entities.sampled_paq(path, paq)),
        "facts": entities.trex_qa(stated, facts),
    }


def _gather(source: Source, paths: Mapping[str, Path], found: gathered.Gathered, readers: Mapping[str, Reader]) -> None:
    for file in source.files:
        if file.kind not in ASKS:
            continue
        first, path = found.questions, paths[file.name]
        beside = [other for other in source.files if other.annotates(file)]
        pages = [GoldPages(paths[other.name]) for other in beside if other.kind == "gold_info"]
        unnamed: list[str] = []  # questions of which nothing says a passage but their gold pages
        with progress(f"questions of {file.name}", file.rows, "questions") as advance:
            for given in readers[file.kind](path):
                found.question(given, file, pages)
                if pages and file.kind == "questions":
                    unnamed.append(given.question)
                advance(1)
        _check_rows(file, found.questions - first, path, "questions")
        for other in beside:
            if other.kind == "gold":
                found.annotations(gold_offsets(paths[other.name]), file)
        for page in pages if unnamed else ():
            found.pages(page, unnamed, file)
