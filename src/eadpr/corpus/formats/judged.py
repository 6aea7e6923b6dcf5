"""Folders of a corpus, questions and judgements: BEIR's layout, and TSVs as of MS MARCO and ir_datasets."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eadpr.corpus.formats.file_rows import read_cells, read_objects, read_table
from eadpr.corpus.formats.own import OwnFiles, write_rows
from eadpr.corpus.rows import LARGEST, RowError, check_id, excerpt, unexpected

CORPORA = ("corpus.jsonl", "collection.tsv", "corpus.tsv", "docs.tsv")
QRELS = ("qrels/*.tsv", "qrels*.tsv", "*.qrels")
_ENDINGS = ("", ".gz")


class Judgement(NamedTuple):
    where: str
    passage_id: str
    grade: float


Judgements = Mapping[str, list[Judgement]]  # by question id


def convert_judged(folder: Path, out: Path) -> OwnFiles:
    """Write a folder's collection as a user's own files in `out`; questions without a relevant passage are left out."""
    corpus = _first_file(folder, CORPORA)
    qrels = sorted(path for pattern in QRELS for ending in _ENDINGS for path in folder.glob(pattern + ending))
    if corpus is None or not qrels:
        raise ValueError(
            f"{folder} is a folder without {' or '.join(CORPORA)}, or without qrels (qrels/*.tsv, qrels.*.tsv); for a"
            " folder of documents give --passages FOLDER --questions FILE"
        )
    paths: dict[str, Path] = {}
    for path in sorted(qrels, key=lambda path: _split_of(path) != "train"):
        if (first := paths.setdefault(_split_of(path), path)) is not path:
            raise ValueError(f"{path} and {first} both judge the questions of {_split_of(path)}; keep one")
    splits = {split: _read_judgements(path) for split, path in paths.items()}
    questions = {
        split: write_rows(out / f"questions-{split}.jsonl", _read_questions(folder, split, judgements))
        for split, judgements in splits.items()
    }
    if corpus.name.startswith("corpus.jsonl"):
        kind, passages = "a folder in BEIR's layout", corpus
    else:
        kind = "a folder of TSVs as of MS MARCO"
        passages = write_rows(out / "passages.jsonl", ({"id": key, "text": text} for _, key, text in _pairs(corpus)))
    description = f"{kind}: {', '.join(str(path.relative_to(folder)) for path in (corpus, *qrels))}"
    bare = sum(all(j.grade <= 0 for j in judged) for split in splits.values() for judged in split.values())
    if bare:
        description += f"; {bare:,} questions without a relevant passage are left out"
    return OwnFiles(passages, questions, description=description)


def _first_file(folder: Path, names: Iterable[str]) -> Path | None:
    paths = (folder / f"{name}{ending}" for name in names for ending in _ENDINGS)
    return next((path for path in paths if path.is_file()), None)


def _split_of(path: Path) -> str:
    """Return the split of qrels/test.tsv, qrels.dev.small.tsv or qrels.tsv."""
    name = path.name.removesuffix(".gz").removesuffix(".tsv").removesuffix(".qrels").removeprefix("qrels")
    return re.sub(r"[^a-z0-9._-]", "-", name.strip("._-").lower()) or "train"


def _read_judgements(path: Path) -> Judgements:
    """Read three columns with a header (BEIR), or TREC's four without: question, 0, passage, grade. Of two grades the
    first counts."""
    questions: dict[str, dict[str, Judgement]] = {}
    for number, (where, cells) in enumerate(read_cells(path), start=1):
        if len(cells) not in (3, 4):
            reason = f"{len(cells)} cells, expected question, passage and grade, or TREC's four, by tabs"
            raise RowError(where, "", reason)
        question, passage, cell = cells[0], cells[-2], cells[-1]
        if number == 1 and len(cells) == 3 and cell[:1].isalpha() and not re.fullmatch("nan|inf(inity)?", cell, re.I):
            continue  # BEIR's header
        judgement = Judgement(where, check_id(passage, where), _read_grade(cell, where))
        questions.setdefault(check_id(question, where), {}).setdefault(judgement.passage_id, judgement)
    if not any(judgement.grade > 0 for judged in questions.values() for judgement in judged.values()):
        raise ValueError(f"{path} has no passage with a grade above 0; fill it, or remove it")
    return {question: list(judged.values()) for question, judged in questions.items()}


def _read_grade(cell: str, where: str) -> float:
    try:
        grade = float(cell)
    except ValueError:
        raise unexpected(where, "grade", cell, "a number") from None
    if not abs(grade) <= LARGEST:  # NaN too
        raise unexpected(where, "grade", cell, "a number")
    return grade


def _read_questions(folder: Path, split: str, judgements: Judgements) -> Iterator[dict[str, Any]]:
    """Read the judged questions that have a relevant passage, the most relevant ones first."""
    path = _first_file(folder, ("queries.jsonl", f"queries.{split}.tsv", f"queries-{split}.tsv", "queries.tsv"))
    if path is None:
        raise FileNotFoundError(f"{folder} has qrels of {split}, but neither queries.jsonl nor queries.{split}.tsv")
    if path.name.startswith("queries.jsonl"):
        rows = read_objects(path)
        queries = ((row.where, row.id("_id" if "_id" in row.fields else "id"), row.text("text")) for row in rows)
    else:
        queries = _pairs(path)
    waiting = dict(judgements)
    for where, key, question in queries:
        if key in judgements and key not in waiting:
            raise RowError(where, f"question id {excerpt(key)}", "stands twice; ids must be unique")
        relevant = [judgement for judgement in waiting.pop(key, []) if judgement.grade > 0]
        relevant.sort(key=lambda judgement: -judgement.grade)
        if relevant:
            row = {"id": key, "question": question, "positives": [judgement.passage_id for judgement in relevant]}
            grades = [judgement.grade for judgement in relevant]
            yield row if set(grades) == {1.0} else row | {"grades": grades}
    if waiting:
        key, judged = next(iter(waiting.items()))
        reason = f"is not in {path}; add it, or remove the line"
        raise RowError(judged[0].where, f"question {excerpt(key)}", reason)


def _pairs(path: Path) -> Iterator[tuple[str, str, str]]:
    """Read place, id and text of lines that have these two, by a tab."""
    for row in read_table(path, ("id", "text"), quoted=False):
        yield row.where, row.id("id"), row.text("text")
