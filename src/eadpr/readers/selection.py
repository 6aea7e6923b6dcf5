"""Questions with the passages or paths that a ranking gives them, to train readers on and to read."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_questions
from eadpr.storage.records import Fold, Positive, Question, Ranked
from eadpr.two_hops.config import RankedPath

POSITIVES = 20  # of a question, at most; like the negatives as in DPR's code
LEAST_NEGATIVES, MOST_NEGATIVES = 50, 150  # and ten for each positive

PathRows = tuple[int, ...]  # rows of passages.parquet, in the order of the hops


class QuestionPaths(NamedTuple):
    """A training question, its ranked paths, best first, and the titles of its gold pages."""

    question: Question
    paths: list[PathRows]
    gold_titles: frozenset[str]


def select_passages(holds: Sequence[bool], gold_page: Sequence[bool]) -> tuple[list[int], list[int]]:
    """Return the places of positives and negatives in a ranking by DPR's rules; both arguments are in its order.

    Positives are the first passages with an answer, only those of a gold page if there are any. Negatives are the first
    passages without an answer; without a positive there are none.
    """
    hits = [i for i, hit in enumerate(holds) if hit]
    chosen = ([i for i in hits if gold_page[i]] or hits)[:POSITIVES]
    misses = [i for i, hit in enumerate(holds) if not hit] if chosen else []
    return chosen, misses[: min(max(10 * len(chosen), LEAST_NEGATIVES), MOST_NEGATIVES)]


def ranking_table(ranking: Path, part: str, *, hops: bool) -> Path:
    """Return the file of a ranking's part, `train` or `evaluate`; with `hops` the file of its paths, if it has any."""
    paths = ranking / "paths" / f"{part}.parquet"
    return paths if hops and paths.exists() else ranking / f"{part}.parquet"


def read_ranked_paths(table: Path, depth: int | None = None) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield each question id with its first `depth` paths, or all, as lists of passage ids, the best first."""
    record = RankedPath if table.parent.name == "paths" else Ranked
    for question_id, rows in groupby(tables.rows(table, record), key=attrgetter("question_id")):
        first = (row for row in rows if depth is None or row.rank <= depth)
        yield question_id, [row.passage_ids if record is RankedPath else [row.passage_id] for row in first]


def path_rows(store: PassageStore, paths: Sequence[Sequence[str]]) -> list[PathRows]:
    rows = iter(store.rows([passage_id for path in paths for passage_id in path]).tolist())
    return [tuple(next(rows) for _ in path) for path in paths]


def read_training_questions(
    records: Path, positives: Path, table: Path, store: PassageStore, *, depth: int
) -> Iterator[QuestionPaths]:
    """Yield the ranked questions of the fold `train` with their first `depth` paths."""
    ids = {fold.question_id for fold in tables.rows(positives / "folds.parquet", Fold) if fold.role == "train"}
    questions = {question.id: question for question in read_questions(records / "questions.parquet", ids)}
    # Of the source's positives; BM25's are no gold pages.
    gold = tables.read(positives / "positives.parquet", Positive, ["question_id", "passage_id", "source"]).to_pandas()
    gold = gold[(gold["source"] == "given") & gold["question_id"].isin(ids)]
    gold = gold.assign(title=store.titles(store.rows(gold["passage_id"].tolist())))
    titles = gold[gold["title"] != ""].groupby("question_id")["title"].agg(frozenset).to_dict()
    for question_id, paths in read_ranked_paths(table, depth):
        if question_id in ids:
            yield QuestionPaths(questions[question_id], path_rows(store, paths), titles.get(question_id, frozenset()))
