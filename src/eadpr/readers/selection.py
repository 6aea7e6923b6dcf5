"""What readers learn from and read: questions, and the passages or paths that a ranking gives them. A passage is a path
of one."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from eadpr.readers.config import NegativesPerQuestion, Read
from eadpr.runtime import files
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.records import Fold, Positive, Question, Ranked, RankedPath

PathRows = tuple[int, ...]  # rows of passages.parquet, in the order of the hops


class QuestionPaths(NamedTuple):
    """A training question, the paths ranked for it, best first, and the titles of its given positives."""

    question: Question
    paths: list[PathRows]
    gold_titles: frozenset[str]

    @property
    def rows(self) -> list[int]:
        return list(chain.from_iterable(self.paths))


class Selected(NamedTuple):
    """Places in a ranking, in its order."""

    positives: list[int]
    negatives: list[int]


def select(
    holds: Sequence[bool], gold_page: Sequence[bool], *, positives: int, negatives: NegativesPerQuestion
) -> Selected:
    """Positives hold an answer: those of a gold page where any of them does, else all, at most `positives`. Negatives
    are the first that hold none (DPR's rules). Parallel sequences over the ranks; no positive, no negative."""
    held = [i for i, hit in enumerate(holds) if hit]
    chosen = ([i for i in held if gold_page[i]] or held)[:positives]
    others = [i for i, hit in enumerate(holds) if not hit] if chosen else []
    return Selected(chosen, others[: negatives.count(len(chosen))])


def ranked_table(ranking: Path, part: str, *, hops: bool) -> Path:
    """The file of a ranking's part, `train` or `evaluate`: with `hops` that of its paths, where it has any."""
    paths = ranking / "paths" / f"{part}.parquet"
    return paths if hops and paths.exists() else ranking / f"{part}.parquet"


def ranked_ids(table: Path) -> list[str]:
    """The questions that a ranking of passages or paths ranks, in its order."""
    record = _record(table)
    return list(dict.fromkeys(tables.read(table, record, columns=["question_id"])["question_id"].to_pylist()))


def ranked(table: Path, depth: int | None = None) -> Iterator[tuple[str, list[list[str]]]]:
    """Question id and its first `depth` paths, None for all, as passage ids, best first, question by question."""
    record = _record(table)
    for question_id, rows in groupby(tables.rows(table, record), key=attrgetter("question_id")):
        first = (row for row in rows if depth is None or row.rank <= depth)
        yield question_id, [row.passage_ids if record is RankedPath else [row.passage_id] for row in first]


def _record(table: Path) -> type:
    return RankedPath if table.parent.name == "paths" else Ranked


def rows_of(store: PassageStore, paths: Sequence[Sequence[str]]) -> list[PathRows]:
    rows = iter(store.rows([passage_id for path in paths for passage_id in path]).tolist())
    return [tuple(next(rows) for _ in path) for path in paths]


def asked(
    records: Path, positives: Path, table: Path, store: PassageStore, *, depth: int, half: int | None = None
) -> Iterator[QuestionPaths]:
    """The questions of the fold `train`, or of a half of it, that the ranking has, with its first `depth` paths."""
    folds = tables.rows(positives / "folds.parquet", Fold)
    learnt = {fold.question_id for fold in folds if fold.role == "train" and half in (None, fold.half)}
    questions = {question.id: question for question in read_questions(records / "questions.parquet", learnt)}
    titles = _gold_titles(positives / "positives.parquet", learnt, store)
    for question_id, paths in ranked(table, depth):
        if question_id in learnt:
            check_known(question_id, questions, table, records)
            yield QuestionPaths(questions[question_id], rows_of(store, paths), titles.get(question_id, frozenset()))


def check_known(question_id: str, known: Collection[str], table: Path, records: Path) -> None:
    if question_id not in known:
        raise ValueError(f"{table}: question_id {question_id!r} is not in {records}; run `dvc repro`")


def _gold_titles(positives: Path, wanted: Collection[str], store: PassageStore) -> dict[str, frozenset[str]]:
    """By question the titles of the positives that the source gave; BM25's are no gold pages."""
    given = tables.read(positives, Positive, ["question_id", "passage_id", "source"]).to_pandas()
    given = given[(given["source"] == "given") & given["question_id"].isin(wanted)]
    given = given.assign(title=store.titles(store.rows(given["passage_id"].tolist())))
    return given[given["title"] != ""].groupby("question_id")["title"].agg(frozenset).to_dict()


def sampled(members: Mapping[str, Sequence[str]], settings: Read) -> dict[str, list[str]]:
    """Which of the evaluated questions are read: the same for every reader and every ranking. Question ids by question
    set, in the order given: all, or of each set the first `questions` by a hash of seed and id, so that fewer are among
    more."""

    def drawn(question_id: str) -> bytes:
        return hashlib.sha256(f"{settings.seed}\0{question_id}".encode()).digest()

    found = {}
    for name, ids in members.items():
        kept = frozenset(sorted(ids, key=drawn)[: settings.questions])
        found[name] = [question_id for question_id in ids if question_id in kept]
    return found


def write_gold(records: Path, positives: Path, out: Path, *, sets: Sets) -> int:
    """The stage `gold_ranking`: the given positives of the evaluated questions as a ranking, from which a reader
    answers what it can where retrieval misses nothing.

    Writes evaluate.parquet (`Ranked`) to the folder `out`: a question's positives in their order, scored 1 / rank.
    Where questions have hops, paths/evaluate.parquet (`RankedPath`) beside it: the hops as one path, else each positive
    as one.

    Returns the number of questions; those that the source gave no positive, whose positive BM25 found, are not ranked.
    Raises ValueError where that are all of them.
    """
    given: dict[str, list[str]] = {i: [] for i in read_question_ids(records / "question_sets.parquet", sets.evaluate)}
    for row in tables.rows(positives / "positives.parquet", Positive):
        if row.source == "given" and row.question_id in given:
            given[row.question_id].append(row.passage_id)
    rows = [
        Ranked(question_id, passage_id, rank, 1 / rank)
        for question_id, ids in given.items()
        for rank, passage_id in enumerate(ids, start=1)
    ]
    if not rows:
        raise ValueError(
            f"{positives}: the source gives none of the questions of {', '.join(sets.evaluate)} a positive; take gold"
            " out of reading.rankings and reading.gold"
        )
    hops = {
        question.id: question.hops for question in read_questions(records / "questions.parquet", given) if question.hops
    }
    with files.new_folder(out) as folder:
        tables.write(folder / "evaluate.parquet", Ranked, rows)
        if hops:
            (folder / "paths").mkdir()
            paths = ((i, [hops[i]] if i in hops else [[one] for one in ids]) for i, ids in given.items() if ids)
            tables.write(folder / "paths" / "evaluate.parquet", RankedPath, [
                RankedPath(question_id, rank, path, [1 / rank / len(path)] * len(path), 1 / rank)
                for question_id, of_one in paths for rank, path in enumerate(of_one, start=1)
            ])  # fmt: skip
    return sum(map(bool, given.values()))
