"""Collections in the shapes that people have them in: recognised, and written as a user's own files.

BEIR's folder, TSVs as of MS MARCO and ir_datasets, SQuAD's JSON, a folder of documents, a folder of `datasets`.
"""

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from eadpr.corpus.formats import documents, file_rows
from eadpr.corpus.rows import Row, id_of, rows, shown, text_of

CORPORA = ("corpus.jsonl", "collection.tsv", "corpus.tsv", "docs.tsv")
QRELS = ("qrels/*.tsv", "qrels*.tsv", "*.qrels")
_GZ = ("", ".gz")
_TESTS = re.compile(r"(^|[._-])(dev|test|valid|validation)([._-]|$)", re.IGNORECASE)


class OwnFiles(NamedTuple):
    """Passages, questions by split, and where there is one for a split, where the answers stand. Columns are by field,
    for passages and for questions, where they are not the usual ones."""

    passages: Path
    questions: Mapping[str, Path]
    gold: Mapping[str, Path] = {}
    columns: Mapping[str, str] = {}
    question_columns: Mapping[str, str] = {}

    @property
    def paths(self) -> list[Path]:
        return [self.passages, *self.questions.values(), *self.gold.values()]


class Shape(NamedTuple):
    """What was recognised, in words, and its files in the format `own`."""

    said: str
    files: OwnFiles


@contextmanager
def found(
    paths: Sequence[Path], *, passages: Path | None, questions: Path | None, test_questions: Path | None
) -> Iterator[Shape]:
    """A new collection, of `paths` alone or of the others; what had to be written anew is there within the block.

    Raises ValueError or FileNotFoundError where nothing known is recognised, or a file is wrong.
    """
    if not paths and (passages is None or questions is None):
        raise ValueError("give both --passages and --questions")
    with tempfile.TemporaryDirectory(prefix="eadpr-add-") as scratch, _named(scratch, *(paths or [passages])):
        if paths:
            yield _recognised(paths, Path(scratch))
        else:
            given = {"train": questions} | ({"test": test_questions} if test_questions else {})
            read = _passages_of(passages, Path(scratch)) if passages.is_dir() else passages
            said = f"passages of {passages}, questions of {' and '.join(map(str, given.values()))}"
            if passages.is_dir() and (others := documents.unread(passages)):
                said += f"; not read: {', '.join(f'{count:,} {kind}' for kind, count in others.items())}"
            yield Shape(said, OwnFiles(read, given))


@contextmanager
def _named(scratch: str, *given: Path) -> Iterator[None]:
    """Errors of what was made in `scratch`, where nobody can look, name what it was made of."""
    try:
        yield
    except ValueError as error:
        made = f"{' and '.join(map(str, given))}, made into "
        raise ValueError(str(error).replace(f"{scratch}/", made)) from error


def _recognised(paths: Sequence[Path], out: Path) -> Shape:
    if len(paths) == 1 and paths[0].is_dir():
        return _judged(paths[0], out)
    for path in paths:
        if path.is_dir():
            raise ValueError(f"{path} is a folder; give it alone, or files")
        file_rows.check_there(path)
        if not path.name.endswith((".json", ".json.gz")):
            raise ValueError(f"{path}: a new collection is a folder, SQuAD's JSON, or --passages and --questions")
    return _squad(paths, out)


def _passages_of(folder: Path, out: Path) -> Path:
    """A file of passages made of a folder of documents, or of one that `datasets` saved."""
    if (folder / "dataset_info.json").is_file():
        return documents.saved_dataset(folder, out / f"{folder.name}.parquet")
    return _written(out / "passages.jsonl", documents.sections(folder))


# Judgements: a corpus, questions, and which passages are relevant to which.


class _Judgement(NamedTuple):
    where: str
    passage_id: str
    grade: float


def _judged(folder: Path, out: Path) -> Shape:
    """Of the relevant passages of a question the most relevant come first; questions that have none are left out."""
    corpus = _there(folder, CORPORA)
    judged = sorted(path for name in QRELS for gz in _GZ for path in folder.glob(name + gz))
    if corpus is None or not judged:
        raise ValueError(
            f"{folder} is a folder without {' or '.join(CORPORA)}, or without qrels (qrels/*.tsv, qrels.*.tsv); for a"
            " folder of documents or of `datasets` give --passages FOLDER --questions FILE"
        )
    of_split: dict[str, Path] = {}
    for path in sorted(judged, key=lambda path: _split(path) != "train"):
        if (first := of_split.setdefault(_split(path), path)) is not path:
            raise ValueError(f"{path} and {first} both judge the questions of {_split(path)}; keep one")
    by_split = {split: _judgements(path) for split, path in of_split.items()}
    _check_once(by_split.values())
    _check_passages(corpus, by_split.values())
    questions = {
        split: _written(out / f"questions-{split}.jsonl", _asked(folder, split, judgements))
        for split, judgements in by_split.items()
    }
    passages = corpus
    if not corpus.name.startswith("corpus.jsonl"):
        named = ({"id": key, "text": text} for _, key, text in _pairs(corpus))
        passages = _written(out / "passages.jsonl", named)
    kind = "a folder in BEIR's layout" if passages is corpus else "a folder of TSVs as of MS MARCO"
    said = f"{kind}: {', '.join(str(path.relative_to(folder)) for path in (corpus, *judged))}"
    if bare := sum(all(one.grade <= 0 for one in of) for split in by_split.values() for of in split.values()):
        said += f"; {bare:,} questions without a relevant passage are left out"
    return Shape(said, OwnFiles(passages, questions))


def _there(folder: Path, names: Iterable[str]) -> Path | None:
    return next((folder / f"{name}{gz}" for name in names for gz in _GZ if (folder / f"{name}{gz}").is_file()), None)


def _split(path: Path) -> str:
    """qrels/test.tsv, qrels.dev.small.tsv, qrels.tsv."""
    name = (
        path.name.removesuffix(".gz")
        .removesuffix(".tsv")
        .removesuffix(".qrels")
        .removeprefix("qrels")
        .strip("._-")
        .lower()
    )
    return re.sub(r"[^a-z0-9._-]", "-", name) or "train"


def _judgements(path: Path) -> dict[str, list[_Judgement]]:
    """By question id. Three columns with a header (BEIR), or TREC's four without: question, 0, passage, grade."""
    found: dict[str, dict[str, _Judgement]] = {}
    for number, (where, cells) in enumerate(file_rows.cells(path), start=1):
        if len(cells) not in (3, 4):
            raise ValueError(
                f"{where}: {len(cells)} cells, expected question, passage and grade, or TREC's four, by tabs"
            )
        question, passage, grade = cells[0], cells[-2], cells[-1]
        if number == 1 and len(cells) == 3 and grade[:1].isalpha() and not re.fullmatch("nan|inf(inity)?", grade, re.I):
            continue  # BEIR's header
        value = Row(where, number, {"grade": grade}).finite("grade")
        judged = _Judgement(where, id_of(passage, where), value)
        first = found.setdefault(id_of(question, where), {}).setdefault(judged.passage_id, judged)
        if first.grade != value:
            raise ValueError(
                f"{where}: passage {shown(passage)} of question {shown(question)} has the grade {grade}, and"
                f" {first.grade:g} in {first.where}; keep one"
            )
    if not any(one.grade > 0 for judged in found.values() for one in judged.values()):
        raise ValueError(f"{path} has no passage with a grade above 0; fill it, or remove it")
    return {question: list(judged.values()) for question, judged in found.items()}


def _check_once(of_splits: Iterable[Mapping[str, list[_Judgement]]]) -> None:
    first: dict[str, str] = {}
    for of in of_splits:
        for question, judged in of.items():
            if (place := first.setdefault(question, judged[0].where)) != (where := judged[0].where):
                raise ValueError(f"{where}: question {shown(question)} is judged in {place} too; keep it in one split")


def _check_passages(corpus: Path, of_splits: Iterable[Mapping[str, list[_Judgement]]]) -> None:
    named = {one.passage_id: one.where for of in of_splits for judged in of.values() for one in judged if one.grade > 0}
    ids = (str(row.get("_id", row.get("id"))) for _, row in file_rows.objects(corpus))
    for passage_id in ids if corpus.name.startswith("corpus.jsonl") else (key for _, key, _ in _pairs(corpus)):
        named.pop(passage_id, None)
    if named:
        passage_id, where = next(iter(named.items()))
        raise ValueError(f"{where}: passage {shown(passage_id)} is not in {corpus}; add it, or remove the line")


def _asked(folder: Path, split: str, judgements: Mapping[str, list[_Judgement]]) -> Iterator[dict[str, Any]]:
    path = _there(folder, ("queries.jsonl", f"queries.{split}.tsv", f"queries-{split}.tsv", "queries.tsv"))
    if path is None:
        raise FileNotFoundError(f"{folder} has qrels of {split}, but neither queries.jsonl nor queries.{split}.tsv")
    if path.name.startswith("queries.jsonl"):
        given = ((row.where, row.id("_id" if "_id" in row.fields else "id"), row.text("text")) for row in rows(path))
    else:
        given = _pairs(path)
    left = dict(judgements)
    for where, key, question in given:
        if key in judgements and key not in left:
            raise ValueError(f"{where}: question id {shown(key)} stands twice; ids must be unique")
        relevant = sorted((one for one in left.pop(key, []) if one.grade > 0), key=lambda one: -one.grade)
        if relevant:
            grades = [one.grade for one in relevant]
            graded = {"grades": grades} if set(grades) != {1.0} else {}
            yield {"id": key, "question": question, "positives": [one.passage_id for one in relevant]} | graded
    if left:
        question, judged = next(iter(left.items()))
        raise ValueError(f"{judged[0].where}: question {shown(question)} is not in {path}; add it, or remove the line")


def _pairs(path: Path) -> Iterator[tuple[str, str, str]]:
    """Place, id and text of lines that have these two, by a tab."""
    for where, cells in file_rows.cells(path):
        if len(cells) != 2:
            raise ValueError(f"{where}: {len(cells)} cells, expected id and text, by a tab")
        yield where, id_of(cells[0], where), text_of(cells[1], where, "text")


# SQuAD.


def _squad(paths: Sequence[Path], out: Path) -> Shape:
    """Paragraphs are the passages, of all files, `Title/number`; questions that have no answer are left out and
    counted."""
    tests = [path for path in paths if _TESTS.search(path.name)]
    if len(paths) > 2 or (len(paths) == 2 and len(tests) != 1):
        raise ValueError(
            f"{', '.join(map(str, paths))}: give one SQuAD file, or two of which one has dev, test or valid in its name"
        )
    splits = {"train": paths[0]} if len(paths) == 1 else {"test" if path in tests else "train": path for path in paths}
    ids: dict[tuple[str, str], str] = {}
    passages, made, left_out = [], {}, 0
    for split, path in sorted(splits.items(), reverse=True):
        asked: list[dict[str, Any]] = []
        gold: list[dict[str, Any]] = []
        for paragraph, title in _paragraphs(path):
            context = paragraph.text("context")
            if (title, context) not in ids:
                ids[title, context] = f"{'_'.join(title.split())}/{len(ids) + 1}"
                passages.append({"id": ids[title, context], "title": title, "text": context})
            for question in paragraph.objects("qas"):
                left_out += not _one_of_squad(question, ids[title, context], context, asked, gold)
        made[split] = (
            _written(out / f"questions-{split}.jsonl", asked),
            _written(out / f"gold-{split}.jsonl", gold),
        )
    questions, golds = ({split: files[i] for split, files in made.items()} for i in range(2))
    said = f"SQuAD's JSON; {left_out:,} questions without an answer are left out" if left_out else "SQuAD's JSON"
    return Shape(said, OwnFiles(_written(out / "passages.jsonl", passages), questions, golds))


def squad_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Id, question, answers, title and text of every question that has an answer."""
    for paragraph, title in _paragraphs(path):
        asked: list[dict[str, Any]] = []
        for question in paragraph.objects("qas"):
            _one_of_squad(question, "", paragraph.text("context"), asked, [])
        fields = ("id", "question", "answers")
        yield from (
            {name: one[name] for name in fields} | {"title": title, "text": paragraph.text("context")} for one in asked
        )


def _paragraphs(path: Path) -> Iterator[tuple[Row, str]]:
    for article in Row(str(path), 0, {"data": file_rows.data_of(path)}).objects("data"):
        title = article.text("title")
        yield from ((paragraph, title) for paragraph in article.objects("paragraphs"))


def _one_of_squad(
    row: Row, passage: str, context: str, asked: list[dict[str, Any]], gold: list[dict[str, Any]]
) -> bool:
    """Whether the question has an answer; only then does it join those `asked`, and its answers `gold`."""
    answers = [(answer.text("text"), answer.whole("answer_start", "an offset")) for answer in row.objects("answers")]
    if row.fields.get("is_impossible") or not answers:
        return False
    question, texts = row.text("question"), list(dict.fromkeys(text for text, _ in answers))
    asked.append({"id": row.id("id"), "question": question, "answers": texts, "positives": [passage]})
    for text, start in dict.fromkeys(answers):
        if (there := context[start : start + len(text)]) != text:
            raise ValueError(
                f"{row.where}: answer_start {start} points at {shown(there)}, not at {shown(text)}; mend it"
            )
        gold.append({"question": question, "passage_id": passage, "answer": text, "answer_start": start})
    return True


def _written(path: Path, found: Iterable[dict[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in found)
    return path
