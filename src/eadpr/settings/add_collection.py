"""A user's files brought under data/sources/<name>/, and the file that makes them a collection."""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from eadpr.corpus.formats.entities import Facts, Paq
from eadpr.corpus.formats.shapes import OwnFiles
from eadpr.corpus.prepare import prepare
from eadpr.corpus.rows import shown
from eadpr.corpus.sources import Prepare, Source
from eadpr.runtime.files import replacing, write_text
from eadpr.settings.model import Collection
from eadpr.settings.resolve import checked
from eadpr.settings.yaml import TAKEN, collection_file, load
from eadpr.storage import engine, tables
from eadpr.storage.records import Context, Passage, Question, SetMember

COLLECTION = r"[a-z0-9][a-z0-9-]*"
NO_TEXT = r"null|true|false|nan|inf|\d+(e-?\d+)?"  # what `-S collection=NAME` makes no text of
SHOWN = 3  # records
SECTIONS = {"prepare": Prepare, "facts": Facts, "paq": Paq}  # the latter are for files of the kind of that name

# Evidence is what makes an answer findable: without answers no QA model is asked and there are no distractors.
WITHOUT_ANSWERS = {
    "annotator": {"model": "none"},
    "evidence": {"strategies": ["gold"]},
    "examples": {"strategy": "gold"},
    "probe": {"strategy": "gold", "placebos": []},
    "report": {"columns": ["ndcg10", "map100", "recall100", "top1", "top20", "mrr100"]},  # BEIR's first
}


_IN_BOTH = """
WITH named AS (
    SELECT m.question_set || '/' || m.split AS name, lower(trim(q.question)) AS text
    FROM question_sets m
    JOIN questions q ON q.id = m.question_id
)
SELECT name, count(*) AS n
FROM named
WHERE list_contains($evaluate, name) AND NOT list_contains($train, name)
    AND text IN (SELECT text FROM named WHERE list_contains($train, name))
GROUP BY name
ORDER BY name
"""


class Added(NamedTuple):
    """`file` describes the collection; `answers` is False where it is new and its training questions have none, so that
    nothing can find their evidence; `held_out` tells whether test questions are drawn from its questions; `report`
    counts what the files hold, and of a new collection `first` shows some records."""

    folder: Path
    file: Path
    answers: bool
    held_out: bool
    report: dict[str, Any]


def add_own(
    name: str, given: OwnFiles, *, share: float, split_words: int | None, params: Path, dry_run: bool = False
) -> Added:
    """Copy the files, having read them once, and describe the collection in a file of its own.

    With questions of one split alone, `share` of them is held out for testing when the collection is prepared. With
    `dry_run` the files are read, and nothing is written.
    """
    values = _values(name, params)
    if name in values["collections"]:
        raise ValueError(
            f"collection {name!r} is in {_described(name, params)} already; bring its files in with"
            f" `python -m stages.add {name} FILE...`, or take another name"
        )
    block = _own_block(given, share=share, split_words=split_words)
    report = _try(block, values, given.paths)
    _check_sets(block, report, list(given.questions.values()))
    answers = _have_answers(block, report)
    if not answers:
        block["settings"] |= WITHOUT_ANSWERS
    folder, file = _folder(name, params), collection_file(name, params=params)
    if not dry_run:
        _copy(name, given.paths, params)
        text = io.StringIO()
        YAML().dump(
            block, text
        )  # in the form in which `dvc exp run -S` writes it, which then changes only what it sets
        write_text(file, text.getvalue())
    held_out = any("test_share" in one for one in block["source"]["files"])
    return Added(folder, file, answers, held_out, report)


def add_files(name: str, files: Sequence[Path], *, params: Path) -> Added:
    """Copy the files that the collection's description names; all its local ones must be given or be there."""
    values = _values(name, params)
    if name not in values["collections"]:
        raise ValueError(
            f"there is no collection {name!r}, in {params} or in {collection_file(name, params=params)} (there are"
            f" {', '.join(values['collections'])});"
            " for files of your own give --passages and --questions"
        )
    block, file = values["collections"][name], _described(name, params)
    prefix = f"collections.{name}." if file == params else ""
    of_source = checked(Collection, block, prefix, path=file).source.files
    named, given = {file.path for file in of_source if file.path is not None}, {path.name for path in files}
    for path in files:
        if path.name not in named:
            raise ValueError(
                f"{path}: {name} has no file of that name; it has {', '.join(sorted(named)) or 'only downloads'}"
            )
    there = {path for path in named if (_folder(name, params) / path).is_file()}
    if missing := sorted(named - given - there):
        raise FileNotFoundError(f"{name} also needs {', '.join(missing)}; give all of its files")
    kept = [_folder(name, params) / path for path in sorted(there - given)]
    if any(source.path is None for source in of_source):  # downloads, which may not be there yet to be read with them
        _by_name(files)
        return Added(_copy(name, files, params), file, True, False, {})
    try:
        report = _try(block, values, [*files, *kept])
        _check_sets(block, report, files)
    except ValueError as error:
        if not kept:
            raise
        names = ", ".join(path.name for path in kept)
        raise ValueError(f"{error}; read with {names} as there; if that changes too, give all") from error
    answers = _have_answers(block, report)
    if answers and WITHOUT_ANSWERS.items() <= block["settings"].items():
        raise ValueError(
            f"{', '.join(map(str, files))}: questions have answers, and {file} has the settings of a collection without"
            f" any; remove {', '.join(WITHOUT_ANSWERS)} from its settings first"
        )
    return Added(_copy(name, files, params), file, answers, False, report)


def _own_block(given: OwnFiles, *, share: float, split_words: int | None) -> dict[str, Any]:
    """What the file of the collection holds."""
    columns = {"columns": dict(given.columns)} if given.columns else {}
    files: list[dict[str, Any]] = [{"kind": "passages", "path": given.passages.name, **columns}]
    held_out = len(given.questions) == 1 or "train" not in given.questions
    for split, path in given.questions.items():
        of = {"set": "own", "split": "train" if held_out else split}
        columns = {"columns": dict(given.question_columns)} if given.question_columns else {}
        files.append(
            {"kind": "questions", "path": path.name, **of, **({"test_share": share} if held_out else {}), **columns}
        )
        if split in given.gold:
            files.append({"kind": "gold", "path": given.gold[split].name, **of})
    evaluated = ["own/test"] if held_out else [f"own/{split}" for split in given.questions if split != "train"]
    return {
        "source": {"format": "own", "files": files},
        "sets": {"train": ["own/train"], "evaluate": evaluated, "annotator": ["own/train"]},
        "settings": {} if split_words is None else {"prepare": {"split_words": split_words}},
    }


def described(name: str, params: Path) -> bool:
    return name in _values(name, params)["collections"]


def track(folder: Path, *, repository: Path) -> None:
    """`dvc add` the folder. Raises OSError with what DVC said if it fails."""
    command = [sys.executable, "-m", "dvc", "add", os.path.relpath(folder, repository)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"`dvc add {folder}` failed: {(done.stderr or done.stdout).strip()}")


def _values(name: str, params: Path) -> dict[str, Any]:
    """Of params.yaml, for a collection that may be named so."""
    if not re.fullmatch(COLLECTION, name):
        raise ValueError(f"{name!r} cannot name a collection; use lower-case letters, digits and '-', as in my-corpus")
    if re.fullmatch(NO_TEXT, name):
        raise ValueError(f"{name!r} cannot name a collection: settings would read another value; take one as c-{name}")
    if name in TAKEN:
        raise ValueError(f"{name!r} cannot name a collection: data/{name}/ is {TAKEN[name]}; take another name")
    return load(params)


def _try(block: dict[str, Any], values: dict[str, Any], files: Sequence[Path]) -> dict[str, Any]:
    """Read the files as the stage `prepare` will, so that what is wrong with them is said before anything changes."""
    given = _by_name(files)
    source = Source.model_validate(block["source"])
    made = {
        name: section.model_validate(values[name] | block["settings"].get(name, {}))
        for name, section in SECTIONS.items()
        if name in {"prepare", *(file.kind for file in source.files)}
    }
    where_they_are = [file.model_copy(update={"path": str(given[file.path])}) for file in source.files]
    source = source.model_copy(update={"files": where_they_are})
    with tempfile.TemporaryDirectory(prefix="eadpr-add-") as scratch:
        out = Path(scratch) / "records"
        report = prepare(source, made.pop("prepare"), sources=Path(), raw=Path(), out=out, **made)
        return report | {"first": _first(out), "in_both": _asked_in_both(block, out)}


def _by_name(files: Sequence[Path]) -> dict[str, Path]:
    given: dict[str, Path] = {}
    for path in files:
        if not path.is_file():
            raise FileNotFoundError(f"{path} {'is no file' if path.exists() else 'does not exist'}")
        if path.name in given:
            raise ValueError(f"{path}: two of the files have this name; rename one")
        given[path.name] = path
    return given


def _check_sets(block: dict[str, Any], report: dict[str, Any], files: Sequence[Path]) -> None:
    """ValueError where a set to train on or to evaluate with has no question, or none that a passage is right for."""
    for held in (*block["sets"]["train"], *block["sets"]["evaluate"]):
        counts, of = report["sets"].get(held), " or ".join(map(str, files))
        if counts is None:
            raise ValueError(f"{of}: no question is in {held}; the columns set and split must be absent or say so")
        if counts.get("without_either") == counts["questions"]:
            columns = report.get("columns", {})
            unread = dict.fromkeys(name for path in files for name in columns.get(path.name, {}).get("unread", ()))
            say = f"; not read are {', '.join(unread)}; say which one it is, --question-columns answers=COLUMN"
            say = say if unread else ""
            raise ValueError(
                f"{of}: none of the {counts['questions']:,} questions of {held} has answers or positives, so that no"
                f" passage is right for any; add a column answers (texts) or positives (passage ids){say}"
            )


def _have_answers(block: dict[str, Any], report: dict[str, Any]) -> bool:
    """Whether any question to train on has."""
    of = [report["sets"][name] for name in block["sets"]["train"]]
    return any(counts["without_answers"] < counts["questions"] for counts in of)


def _asked_in_both(block: dict[str, Any], records: Path) -> dict[str, int]:
    """How many questions of a set to evaluate with are trained on too, word for word."""
    sets = {name: block["sets"][name] for name in ("train", "evaluate")}
    with engine.connect() as connection:
        for name, record in (("questions", Question), ("question_sets", SetMember)):
            engine.view(connection, name, records / f"{name}.parquet", record)
        found = [row for batch in engine.batches(connection, _IN_BOTH, sets) for row in batch.to_pylist()]
    return {row["name"]: row["n"] for row in found}


def _first(records: Path) -> list[str]:
    """The first three passages and questions as they were understood, a line each."""
    passages = islice(tables.rows(records / "passages.parquet", Passage), SHOWN)
    questions = list(islice(tables.rows(records / "questions.parquet", Question), SHOWN))
    positives = {question.id: [] for question in questions}
    for context in tables.rows(records / "contexts.parquet", Context):
        if context.role == "positive" and context.question_id in positives:
            positives[context.question_id].append(context.passage_id)
    return [
        *(f"passage {one.id}, title {shown(one.title)}: {shown(one.text)}" for one in passages),
        *(
            f"question {one.id}: {shown(one.question)}, answers {shown(one.answers)}, positives"
            f" {shown(positives[one.id])}"
            for one in questions
        ),
    ]


def _copy(name: str, files: Sequence[Path], params: Path) -> Path:
    folder = _folder(name, params)
    for path in files:
        if path.resolve() != (folder / path.name).resolve():  # else it was edited in place
            with replacing(folder / path.name) as temporary:
                shutil.copyfile(path, temporary)
    return folder


def _folder(name: str, params: Path) -> Path:
    return params.parent / "data" / "sources" / name


def _described(name: str, params: Path) -> Path:
    file = collection_file(name, params=params)
    return file if file.exists() else params
