"""A collection's files become records: passages, questions, question sets and contexts.

Streams: in memory are one question, the digests of `Known`, question ids as digests, and annotated offsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from eadpr.corpus import answers, dpr, entity_questions, hotpot, own, qa_files, ramdocs
from eadpr.corpus.contexts import ContextRecords
from eadpr.corpus.facts import Facts, trex_qa
from eadpr.corpus.given import GivenPassage, GivenQuestion, shown
from eadpr.corpus.gold import Gold, GoldOffsets, GoldPages
from eadpr.corpus.known import Known, digest, refuse_duplicates
from eadpr.corpus.origin import item_key
from eadpr.corpus.paq import Paq, sampled
from eadpr.corpus.record_files import RecordFiles, record_files
from eadpr.corpus.sources import ASKS, File, Prepare, Source
from eadpr.files import new_folder, write_json
from eadpr.progress import progress
from eadpr.records import Context, Origin, Passage, Question

__all__ = ["Prepare", "prepare", "write_generated"]

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
    with new_folder(out) as folder:
        with record_files(folder) as records:
            known = _write_passages(source, settings, paths, records)
            readers = _readers(source, paths, facts, paq)
            counts = _write_questions(source, settings, paths, records, known, readers)
        report = _report(records, counts)
        write_json(folder / "report.json", report)
    return report


def write_generated(
    blocks: Iterable[tuple[Iterable[Passage], Iterable[Asked]]], *, out: Path, passages: int | None = None
) -> dict[str, Any]:
    """As `prepare`, for records made by a generator, block by block; `passages` is their number if it is known."""
    with new_folder(out) as folder:
        with record_files(folder) as records, progress("passages", passages, "passages") as advance:
            for made, asked in blocks:
                before = records.passages
                for passage in made:
                    records.passage(passage)
                for question, sets, contexts in asked:
                    records.question(question, sets, contexts)
                advance(records.passages - before)
        report = _report(records, Counter())
        write_json(folder / "report.json", report)
    return report


def _report(records: RecordFiles, counts: Counter[str]) -> dict[str, Any]:
    if not records.passages:
        raise ValueError(
            "the collection has no passages; add a file of kind passages, or set prepare.add_context_passages"
        )
    return {"passages": records.passages, "questions": records.questions, "sets": records.sets, **counts}


def _read_passages(source: Source, settings: Prepare, paths: dict[str, Path]) -> Iterator[tuple[File, GivenPassage]]:
    number = 0
    for file in source.files:
        if file.kind != "passages":
            continue
        number += 1
        if source.format == "dpr":
            given = dpr.passages(paths[file.name], strip_quotes=settings.strip_quotes)
        elif source.format == "hotpot":
            given = hotpot.passages(paths[file.name])
        else:
            prefix = f"{number}:" if number > 1 else ""
            given = own.passages(paths[file.name], split_words=settings.split_words, prefix=prefix)
        yield from ((file, passage) for passage in given)


def _write_passages(source: Source, settings: Prepare, paths: dict[str, Path], records: RecordFiles) -> Known:
    known = Known(titles=any(file.test_share for file in source.files))
    rows: Counter[str] = Counter({file.name: 0 for file in source.files if file.kind == "passages"})
    with progress("passages", None, "passages") as advance:
        for file, (_, passage) in _read_passages(source, settings, paths):
            known.add(passage.id, passage.title, passage.text)
            records.passage(passage)
            rows[file.name] += 1
            advance(1)
    known.freeze()
    if suspects := known.suspects():
        refuse_duplicates(suspects, (given for _, given in _read_passages(source, settings, paths)))
    for file in source.files:
        if file.name in rows:
            _check_rows(file, rows[file.name], paths[file.name], "passages")
    return known


def _check_rows(file: File, found: int, path: Path, what: str) -> None:
    if not found:
        raise ValueError(f"{path} holds no {what}; fill it, or remove it from the collection's files in params.yaml")
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
        "ramdocs": ramdocs.questions,
        "entity_questions": lambda path, _: entity_questions.questions(path),
    }
    if stated := [paths[file.name] for file in source.files if file.kind == "facts"]:
        ask = trex_qa(stated, facts)
        readers["facts"] = lambda path, _: ask(path)
    samples = {paths[file.name]: sampled(paths[file.name], paq) for file in source.files if file.kind == "paq"}
    readers["paq"] = lambda path, _: iter(samples[path])
    return readers


def _write_questions(
    source: Source,
    settings: Prepare,
    paths: dict[str, Path],
    records: RecordFiles,
    known: Known,
    readers: dict[str, Reader],
) -> Counter[str]:
    counts: Counter[str] = Counter()
    contexts = ContextRecords(known, records, settings, counts)
    ids = _Ids()
    for file in source.files:
        if file.kind not in ASKS:
            continue
        gold = _gold(source, file, paths)
        rows = 0
        with progress(f"questions of {file.name}", file.rows, "questions") as advance:
            for given in readers[file.kind](paths[file.name], file):
                _write_question(given, file, settings, records, contexts, gold, ids, counts)
                rows += 1
                advance(1)
        _check_rows(file, rows, paths[file.name], "questions")
        for annotation in gold:
            annotation.finish()
        _check_held_out(file, records, paths[file.name])
    return counts


def _gold(source: Source, file: File, paths: dict[str, Path]) -> list[Gold]:
    if file.kind != "training":
        return []
    kinds = {"gold": GoldOffsets, "gold_info": GoldPages}
    beside = [other for other in source.files if (other.set, other.split) == (file.set, file.split)]
    return [kinds[other.kind](paths[other.name]) for other in beside if other.kind in kinds]


def _write_question(
    given: GivenQuestion,
    file: File,
    settings: Prepare,
    records: RecordFiles,
    contexts: ContextRecords,
    gold: list[Gold],
    ids: _Ids,
    counts: Counter[str],
) -> None:
    if given.test_share is not None:
        given = given._replace(split="test" if contexts.held_out(given) else given.split)
    kept = answers.usable(given, drop_empty=settings.drop_empty_answers)
    counts["answers_dropped"] += len(given.answers) - len(kept)
    if given.answer_kind == "regex":
        counts["patterns_that_never_match"] += sum(map(answers.never_matches, kept))
    question_id = ids.of(given)
    question = Question(
        id=question_id,
        question=given.question,
        answers=kept,
        answer_kind=given.answer_kind,
        subject=given.subject,
        relation=given.relation,
        type=given.type,
        hops=given.hops,
    )
    item = "" if given.item is None else item_key(given.item, answers_kept=kept == given.answers)
    origin = Origin(question_id, file.name, given.row, item)
    sets = [(given.set, given.split), *given.also]
    records.question(question, sets, contexts.of(given, question_id, gold), origin)


class _Ids:
    """Ids of questions: their own, else `set/split:n` with n counted from 1; 8 bytes of each are kept."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()
        self._seen: set[int] = set()

    def of(self, given: GivenQuestion) -> str:
        name = f"{given.set}/{given.split}"
        self._count[name] += 1
        found = given.id if given.id is not None else f"{name}:{self._count[name]}"
        if digest(found) in self._seen:
            raise ValueError(f"{given.where}: question id {shown(found)} stands twice; ids must be unique")
        self._seen.add(digest(found))
        return found


def _check_held_out(file: File, records: RecordFiles, path: Path) -> None:
    if file.test_share is None:
        return
    for split in ("train", "test"):
        if not any(name.endswith(f"/{split}") for name in records.sets):
            raise ValueError(
                f"{path}: test_share {file.test_share} left no question for {split}, because whole titles are held out;"
                " give a file with test questions, or another share"
            )
