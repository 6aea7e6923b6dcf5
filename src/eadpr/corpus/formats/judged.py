"""Folders of a corpus, questions and judgements: BEIR's layout, and TSVs as of MS MARCO and ir_datasets."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eadpr.corpus.formats.documents import HIDDEN
from eadpr.corpus.formats.file_rows import read_cells, read_objects, read_table
from eadpr.corpus.formats.own import OwnFiles, write_rows
from eadpr.corpus.rows import LARGEST, RowError, check_id, excerpt, unexpected

CORPORA = ("corpus.jsonl", "collection.tsv", "corpus.tsv", "docs.tsv")
QRELS = ("qrels/*.tsv", "qrels*.tsv", "*.qrels")
_ENDINGS = ("", ".gz")
Judgements = Mapping[str, Mapping[str, float]]  # grades by question and passage, the most relevant first


def convert_judged(folder: Path, out: Path) -> OwnFiles:
    """Write a folder's collection as a user's own files in `out`; questions without a relevant passage are left out."""
    corpus = _first_file(folder, CORPORA)
    qrels = [path for pattern in QRELS for ending in _ENDINGS for path in folder.glob(pattern + ending)]
    qrels = sorted(path for path in qrels if not HIDDEN.match(path.name))
    if corpus is None or not qrels:
        reason = f"a folder without {' or '.join(CORPORA)}, or without qrels (qrels/*.tsv, qrels.*.tsv)"
        advice = "for a folder of documents give a file of questions too; `eadpr ask-passages` writes one"
        raise ValueError(f"{folder} is {reason}; {advice}")
    questions: dict[str, Path] = {}
    bare = 0
    for path in sorted(qrels, key=lambda path: _split_of(path) != "train"):
        split, judgements = _split_of(path), _read_judgements(path)
        if split in questions:
            raise ValueError(f"{path} judges the questions of {split} too; keep one of its files")
        questions[split] = write_rows(out / f"questions-{split}.jsonl", _read_questions(folder, split, judgements))
        bare += sum(max(grades.values()) <= 0 for grades in judgements.values())
    kind, passages = "a folder in BEIR's layout", corpus
    if ".tsv" in corpus.suffixes:
        kind = "a folder of TSVs as of MS MARCO"
        passages = write_rows(out / "passages.jsonl", ({"id": key, "text": text} for key, text in _read_pairs(corpus)))
    description = f"{kind}: {', '.join(str(path.relative_to(folder)) for path in (corpus, *qrels))}"
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
    """Read three columns with a header (BEIR), or TREC's four without: question, 0, passage, grade."""
    questions: dict[str, dict[str, float]] = {}
    for number, (where, cells) in enumerate(read_cells(path), start=1):
        if len(cells) not in (3, 4):
            reason = f"{len(cells)} cells, expected question, passage and grade, or TREC's four, by tabs"
            raise RowError(where, "", reason)
        question, passage, cell = cells[0], cells[-2], cells[-1]
        try:
            grade = float(cell)
        except ValueError:
            if number == 1 and len(cells) == 3 and cell[:1].isalpha():
                continue  # BEIR's header
            raise unexpected(where, "grade", cell, "a number") from None
        if not abs(grade) <= LARGEST:  # NaN too
            raise unexpected(where, "grade", cell, "a number")
        grades = questions.setdefault(check_id(question, where), {})
        if grades.setdefault(check_id(passage, where), grade) != grade:
            raise RowError(where, f"passage {excerpt(passage)}", "has another grade above; keep one")
    if not any(grade > 0 for grades in questions.values() for grade in grades.values()):
        raise ValueError(f"{path} has no passage with a grade above 0; fill it, or remove it")
    return {key: dict(sorted(grades.items(), key=lambda item: -item[1])) for key, grades in questions.items()}


def _read_questions(folder: Path, split: str, judgements: Judgements) -> Iterator[dict[str, Any]]:
    """Read the judged questions that have a relevant passage; those that the folder lacks are empty."""
    path = _first_file(folder, ("queries.jsonl", f"queries.{split}.tsv", f"queries-{split}.tsv", "queries.tsv"))
    if path is None:
        raise FileNotFoundError(f"{folder} has qrels of {split}, but neither queries.jsonl nor queries.{split}.tsv")
    waiting = dict(judgements)
    for key, question in _read_pairs(path):
        waiting.pop(key, None)
        if relevant := {passage: grade for passage, grade in judgements.get(key, {}).items() if grade > 0}:
            row = {"id": key, "question": question, "positives": list(relevant)}
            yield row if set(relevant.values()) == {1.0} else row | {"grades": list(relevant.values())}
    yield from ({"id": key, "question": ""} for key in waiting)


def _read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Read id and text, of JSON objects or of lines that have these two, by a tab."""
    rows = read_table(path, ("id", "text"), quoted=False) if ".tsv" in path.suffixes else read_objects(path)
    for row in rows:
        yield row.id("_id" if "_id" in row.fields else "id"), row.text("text", empty=True)
