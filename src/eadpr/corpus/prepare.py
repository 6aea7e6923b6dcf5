"""A collection's files become records: passages, questions, question sets and contexts.

Files are read row by row; what concerns whole tables is in `gathered`. Memory does not grow with passages or questions,
but with the pages of `gold_info`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from eadpr import engine, tables
from eadpr.corpus import dpr, entities, gathered, hotpot, own, qa_files
from eadpr.corpus.entities import Facts, Paq, trex_qa
from eadpr.corpus.given import ROLES, GivenPassages, GivenQuestion, never_matches, shown, usable_answers
from eadpr.corpus.gold import GoldPages, gold_offsets
from eadpr.corpus.sources import ASKS, File, Prepare, Source
from eadpr.files import new_folder, write_json
from eadpr.progress import progress
from eadpr.records import Context, Passage, Question, SetMember

__all__ = ["Prepare", "prepare", "write_generated"]

_REPORT = f"""
SELECT m.question_set || '/' || m.split AS name, count(*) AS questions,
    count(*) FILTER (len(q.answers) = 0) AS without_answers,
    count(*) FILTER (coalesce(c.positive, 0) = 0) AS without_positive,
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

_OF_SPLIT = "SELECT 1 FROM numbered WHERE split = $split AND n < $questions LIMIT 1"
Asked = tuple[Question, list[tuple[str, str]], list[Context]]  # with (question set, split) pairs
Reader = Callable[[Path, File], Iterator[GivenQuestion]]


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
    shares = {file.name: file.test_share for file in source.files if file.test_share is not None}
    with new_folder(out) as folder, engine.connect() as connection:
        _write_passages(source, settings, paths, folder, connection)
        counts, ends = _gather(source, settings, paths, connection, _readers(source, paths, facts, paq))
        counts |= gathered.write(connection, folder, settings, shares)
        for name, share in shares.items():
            _check_held_out(connection, paths[name], share, ends[name])
        return _reported(connection, folder, counts)


def write_generated(
    blocks: Iterable[tuple[Iterable[Passage], Iterable[Asked]]], *, out: Path, passages: int | None = None
) -> dict[str, Any]:
    """As `prepare`, for records made by a generator, block by block; `passages` is their number if it is known."""
    with new_folder(out) as folder, engine.connect() as connection:
        with ExitStack() as stack, progress("passages", passages, "passages") as advance:
            put = {name: stack.enter_context(_writing(folder, name)) for name in dpr.TABLES}
            for made, asked in blocks:
                for passage in made:
                    put["passages"](passage)
                    advance(1)
                for question, sets, contexts in asked:
                    put["questions"](question)
                    for name, split in sets:
                        put["question_sets"](SetMember(name, split, question.id))
                    for context in contexts:
                        put["contexts"](context)
        return _reported(connection, folder, {})


@contextmanager
def _writing(folder: Path, name: str) -> Iterator[Callable[[tuple], None]]:
    record = dpr.TABLES[name]
    with (
        tables.writing(folder / f"{name}.parquet", record) as append,
        tables.in_chunks(record, append) as put,
    ):
        yield put


def _reported(connection: engine.Connection, folder: Path, counts: dict[str, int]) -> dict[str, Any]:
    """report.json: how many passages and questions there are, and what each question set has."""
    for name in ("questions", "question_sets", "contexts"):
        engine.view(connection, name, folder / f"{name}.parquet", dpr.TABLES[name])
    counted = [row for batch in engine.batches(connection, _REPORT) for row in batch.to_pylist()]
    report = {
        "passages": tables.count(folder / "passages.parquet", Passage),
        "questions": tables.count(folder / "questions.parquet", Question),
        "sets": {row.pop("name"): row for row in counted},
        **counts,
    }
    if not report["passages"]:
        raise ValueError(
            "the collection has no passages; add a file of kind passages, or set prepare.add_context_passages"
        )
    write_json(folder / "report.json", report)
    return report


def _passages(source: Source, settings: Prepare, paths: dict[str, Path]) -> Iterator[tuple[str, GivenPassages]]:
    """With the names of their files."""
    files = [file.name for file in source.files if file.kind == "passages"]
    for number, name in enumerate(files, start=1):
        if source.format == "dpr":
            given = dpr.passages(paths[name], strip_quotes=settings.strip_quotes)
        elif source.format == "hotpot":
            given = hotpot.passages(paths[name])
        else:
            prefix = f"{number}:" if number > 1 else ""
            given = own.passages(paths[name], split_words=settings.split_words, prefix=prefix)
        yield from ((name, some) for some in given)


def _write_passages(
    source: Source, settings: Prepare, paths: dict[str, Path], folder: Path, connection: engine.Connection
) -> None:
    rows: Counter[str] = Counter()
    path = folder / "passages.parquet"
    with tables.writing(path, Passage) as append, progress("passages", None, "passages") as advance:
        for name, (places, *columns) in _passages(source, settings, paths):
            append(tables.from_columns(Passage, columns))
            rows[name] += len(places)
            advance(len(places))
    engine.view(connection, "corpus", path, Passage)
    if twice := engine.twice(connection, "corpus", engine.POSITION):
        places = (where for _, given in _passages(source, settings, paths) for where in given.places)
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


def _readers(source: Source, paths: dict[str, Path], facts: Facts | None, paq: Paq | None) -> dict[str, Reader]:
    """By kind of file."""
    readers: dict[str, Reader] = {
        "training": dpr.training,
        "questions": {"own": own.questions, "hotpot": hotpot.questions}.get(source.format, qa_files.qa_csv),
        "trec": qa_files.trec,
        "contexts": qa_files.contexts,
        "ramdocs": qa_files.ramdocs,
        "entity_questions": lambda path, _: entities.entity_questions(path),
        "paq": lambda path, _: iter(entities.sampled_paq(path, paq)),
    }
    if stated := [paths[file.name] for file in source.files if file.kind == "facts"]:
        ask = trex_qa(stated, facts)
        readers["facts"] = lambda path, _: ask(path)
    return readers


def _gather(
    source: Source,
    settings: Prepare,
    paths: dict[str, Path],
    connection: engine.Connection,
    readers: dict[str, Reader],
) -> tuple[dict[str, int], dict[str, int]]:
    """Counts for the report, and by file how many questions there are up to its end."""
    counts = dict.fromkeys(("answers_dropped", "patterns_that_never_match"), 0)
    ends: dict[str, int] = {}
    with gathered.Gathered(connection) as gathering:
        for file in source.files:
            if file.kind not in ASKS:
                continue
            first = gathering.questions
            beside = _beside(source, file, paths)
            pages = [GoldPages(path) for kind, path in beside if kind == "gold_info"]
            with progress(f"questions of {file.name}", file.rows, "questions") as advance:
                for given in readers[file.kind](paths[file.name], file):
                    _gather_question(gathering, given, file, pages, settings, counts)
                    advance(1)
            ends[file.name] = gathering.questions
            _check_rows(file, gathering.questions - first, paths[file.name], "questions")
            for number, path in enumerate(path for kind, path in beside if kind == "gold"):
                gathering.annotations(gold_offsets(path), file=number, first=first)
    return counts, ends


def _beside(source: Source, file: File, paths: dict[str, Path]) -> list[tuple[str, Path]]:
    """Kind and path of the files that annotate a file of training questions."""
    if file.kind != "training":
        return []
    same = [other for other in source.files if (other.set, other.split) == (file.set, file.split)]
    return [(other.kind, paths[other.name]) for other in same if other.kind in ("gold", "gold_info")]


def _gather_question(
    gathering: gathered.Gathered,
    given: GivenQuestion,
    file: File,
    pages: list[GoldPages],
    settings: Prepare,
    counts: dict[str, int],
) -> None:
    kept = usable_answers(given, drop_empty=settings.drop_empty_answers)
    counts["answers_dropped"] += len(given.answers) - len(kept)
    if given.answer_kind == "regex":
        counts["patterns_that_never_match"] += sum(map(never_matches, kept))
    item = "" if given.item is None else dpr.item_key(given.item, answers_kept=kept == given.answers)
    gold = [
        [*(context.gold or ()), *(span for page in pages for span in page.spans(given, context))]
        if context.role == "positive"
        else []
        for context in given.contexts
    ]
    gathering.question(given, file.name, kept, item, gold)


def _check_held_out(connection: engine.Connection, path: Path, share: float, questions: int) -> None:
    """There must be some of either split among the first `questions`."""
    for split in ("train", "test"):
        if not engine.first(connection, _OF_SPLIT, {"split": split, "questions": questions}):
            raise ValueError(
                f"{path}: test_share {share} left no question for {split}, because whole titles are held out;"
                " give a file with test questions, or another share"
            )
