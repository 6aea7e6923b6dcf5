"""A user's files brought under data/sources/<name>/, and the file that makes them a collection."""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from eadpr.corpus.formats.own import OwnFiles, read_raw
from eadpr.corpus.prepare import prepare
from eadpr.corpus.rows import excerpt
from eadpr.corpus.sources import Prepare, Source
from eadpr.report.notes import note_few
from eadpr.runtime.files import replacing, write_text
from eadpr.runtime.section import Sets
from eadpr.settings.model import Collection
from eadpr.settings.resolve import checked
from eadpr.settings.yaml import TAKEN, collection_file, load
from eadpr.storage import tables
from eadpr.storage.records import Context, Passage, Question, SetMember

COLLECTION = r"[a-z0-9][a-z0-9-]*"
SCHEMA = "# yaml-language-server: $schema=../../docs/collection.schema.json\n"  # for editors
EXAMPLES = 3  # records shown of a new collection
LOOKED_AT = 100  # rows in which a column is looked at

# Of collections without answers: BEIR's metrics first, then what needs no answer of answer awareness.
COLUMNS = ["ndcg10", "map100", "recall100", "top1", "top20", "mrr100"]
COLUMNS += ["aa_evidence", "placebo", "controlled_aa_evidence", "evidence1"]


class Added(NamedTuple):
    """`file` describes the collection; where it `needs_annotator`, without `answers` to its training questions and
    without gold evidence, only a model of relevance can find evidence.

    `report` counts passages and questions, and has examples of the records; empty for an old collection. `few` says
    what it means that there are few questions, if there are.
    """

    folder: Path
    file: Path
    answers: bool = True
    needs_annotator: bool = False
    held_out: bool = False
    report: dict[str, Any] = {}
    few: str = ""


def add_own(
    name: str, inputs: OwnFiles, *, share: float, split_words: int | None, params: Path, dry_run: bool = False
) -> Added:
    """Copy the files, having read them once, and describe the collection in its own file.

    With questions of one split alone, `share` of them is held out for testing when the collection is prepared. With
    `dry_run` the files are read, and nothing is written.
    """
    values = load_values(name, params)
    if name in values["collections"]:
        raise ValueError(
            f"collection {name!r} is in {_description(name, params)} already; add files, or take another name"
        )
    block = _describe(inputs, share=share, split_words=split_words)
    report = _read_files(block, values, inputs)
    _check_sets(block, report, list(inputs.questions.values()))
    sets = [report["sets"][set_name] for set_name in block["sets"]["train"]]
    answers = any(counts["without_answers"] < counts["questions"] for counts in sets)
    gold = any(counts["with_gold"] for counts in sets)
    if not answers:
        block["settings"] |= _without_answers("gold" if gold else "pseudo")
    folder, file = _folder(name, params), collection_file(name, params=params)
    if not dry_run:
        _copy(name, inputs.paths, params)
        text = io.StringIO()
        YAML().dump(block, text)  # the form in which `dvc exp run -S` writes it, which then changes only what it sets
        write_text(file, SCHEMA + text.getvalue())
    held_out = any("test_share" in entry for entry in block["source"]["files"])
    few = note_few(report["sets"], Sets(**block["sets"]))
    return Added(folder, file, answers, not answers and not gold, held_out, report, few)


def add_files(name: str, files: Sequence[Path], *, params: Path) -> Added:
    """Copy the files that the collection's description names, all of which must be given or be there."""
    values = load_values(name, params)
    if name not in values["collections"]:
        raise ValueError(
            f"there is no collection {name!r}, in {params} or in {collection_file(name, params=params)} (there are"
            f" {', '.join(values['collections'])}); for files of your own give passages and questions"
        )
    folder = _folder(name, params)
    source = checked(Collection, values["collections"][name], f"collections.{name}.").source
    expected, new = {entry.path for entry in source.files if entry.path is not None}, set(_by_name(files))
    if unknown := sorted(new - expected):
        names = ", ".join(sorted(expected)) or "only downloads"
        raise ValueError(f"{unknown[0]}: {name} has no file of that name; it has {names}")
    if missing := sorted(path for path in expected - new if not (folder / path).is_file()):
        raise FileNotFoundError(f"{name} also needs {', '.join(missing)}; give all of its files")
    return Added(_copy(name, files, params), _description(name, params))


def _without_answers(strategy: str) -> dict[str, Any]:
    """Return the settings of a collection whose evidence no answer tells: annotated (gold), or to be found (pseudo)."""
    return {
        "annotator": {"model": "none"} if strategy == "gold" else {"kind": "relevance"},
        "evidence": {"strategies": [strategy, "placebo", "placebo_second"], "placebo_of": strategy},
        "examples": {"strategy": strategy},
        "probe": {"strategy": strategy, "placebos": ["placebo"]},
        "near_duplicates": {"strategy": strategy},
        "report": {"columns": COLUMNS},
    }


def track(folder: Path, *, repository: Path) -> None:
    """`dvc add` the folder. Raises OSError with DVC's message if it fails."""
    command = [sys.executable, "-m", "dvc", "add", os.path.relpath(folder, repository)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"`dvc add {folder}` failed: {(done.stderr or done.stdout).strip()}")


def _describe(inputs: OwnFiles, *, share: float, split_words: int | None) -> dict[str, Any]:
    files: list[dict[str, Any]] = [{"kind": "passages", "path": inputs.passages.name}]
    if inputs.columns:
        files[0]["columns"] = dict(inputs.columns)
    held_out = len(inputs.questions) == 1 or "train" not in inputs.questions
    for split, path in inputs.questions.items():
        questions = {"kind": "questions", "path": path.name, "set": "own", "split": "train" if held_out else split}
        if held_out:
            questions["test_share"] = share
        if inputs.question_columns:
            questions["columns"] = dict(inputs.question_columns)
        files.append(questions)
    evaluated = ["own/test"] if held_out else [f"own/{split}" for split in inputs.questions if split != "train"]
    return {
        "source": {"format": "own", "files": files},
        "sets": {"train": ["own/train"], "evaluate": evaluated, "annotator": ["own/train"]},
        "settings": {} if split_words is None else {"prepare": {"split_words": split_words}},
    }


def load_values(name: str, params: Path) -> dict[str, Any]:
    """Load params.yaml, for a collection that may have this name."""
    if not re.fullmatch(COLLECTION, name):
        advice = "use lower-case letters, digits and '-', as in my-corpus"
    elif name in TAKEN:
        advice = f"data/{name}/ is {TAKEN[name]}; take another name"
    else:
        return load(params)
    raise ValueError(f"{name!r} cannot name a collection: {advice}")


def _read_files(block: dict[str, Any], values: dict[str, Any], inputs: OwnFiles) -> dict[str, Any]:
    """Read the files as the stage `prepare` will, so that errors in them are raised before anything changes."""
    paths = _by_name(inputs.paths)
    source = Source.model_validate(block["source"])
    # Where the files are now is no place that a collection may name, so the copies are not validated.
    located = [file.model_copy(update={"path": str(paths[file.path])}) for file in source.files]
    source = source.model_copy(update={"files": located})
    settings = Prepare.model_validate(values["prepare"] | block["settings"].get("prepare", {}))
    with tempfile.TemporaryDirectory(prefix="eadpr-add-") as scratch:
        out = Path(scratch) / "records"
        report = prepare(source, settings, sources=Path(), raw=Path(), out=out)
        offers = list(_offer_positives(inputs, report["columns"], out / "passages.parquet"))
        return report | {"first": _examples(out), "in_both": _count_in_both(block, out), "offers": offers}


def _offer_positives(inputs: OwnFiles, columns: Mapping[str, Any], passages: Path) -> Iterator[str]:
    """Name the columns of questions that hold passages' ids, where none is read as the positives."""
    files = {path: columns[path.name]["unread"] for path in inputs.questions.values()}
    if not any(files.values()) or any("positives" in columns[path.name]["read"] for path in files):
        return
    ids = {passage.id for passage in tables.rows(passages, Passage)}
    for path, unread in files.items():
        first = [row.fields for row in islice(read_raw(path), LOOKED_AT)]
        for column in unread:
            values = [row[column] for row in first if row.get(column) not in (None, "", [])]
            if values and all(str(value[0] if isinstance(value, list) else value) in ids for value in values):
                yield f"{path.name}: {column} holds ids of passages; --question-columns positives={column} reads it"


def _by_name(files: Sequence[Path]) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    for path in files:
        if not path.is_file():
            raise FileNotFoundError(f"{path} {'is no file' if path.exists() else 'does not exist'}")
        if path.name in paths:
            raise ValueError(f"{path}: two of the files have this name; rename one")
        paths[path.name] = path
    return paths


def _check_sets(block: dict[str, Any], report: dict[str, Any], files: Sequence[Path]) -> None:
    """Raise ValueError for a set of training or evaluation without a question that a passage is right for."""
    names = " or ".join(map(str, files))
    for question_set in (*block["sets"]["train"], *block["sets"]["evaluate"]):
        counts = report["sets"].get(question_set)
        if counts is None:
            reason = f"no question is in {question_set}; the columns set and split must be absent or say so"
            raise ValueError(f"{names}: {reason}")
        if counts.get("without_either") == counts["questions"]:
            columns, advice = report.get("columns", {}), ""
            unread = dict.fromkeys(name for path in files for name in columns.get(path.name, {}).get("unread", ()))
            if unread:
                advice = f"; not read are {', '.join(unread)}; say which one it is, --question-columns answers=COLUMN"
            raise ValueError(
                f"{names}: none of the {counts['questions']:,} questions of {question_set} has answers or positives, so"
                f" that no passage is right for any; add a column answers (texts) or positives (passage ids){advice}"
            )


def _count_in_both(block: dict[str, Any], records: Path) -> dict[str, int]:
    """Count the questions of each set of evaluation that are trained on too, word for word."""
    texts = {q.id: q.question.strip().lower() for q in tables.rows(records / "questions.parquet", Question)}
    by_set: dict[str, list[str]] = {}
    for member in tables.rows(records / "question_sets.parquet", SetMember):
        by_set.setdefault(f"{member.question_set}/{member.split}", []).append(texts[member.question_id])
    train, evaluate = block["sets"]["train"], block["sets"]["evaluate"]
    trained = {text for name in train for text in by_set.get(name, ())}
    counts = {name: sum(map(trained.__contains__, by_set.get(name, ()))) for name in sorted({*evaluate} - {*train})}
    return {name: count for name, count in counts.items() if count}


def _examples(records: Path) -> list[str]:
    """Return the first passages and questions as they were understood, a line each."""
    lines = [
        f"passage {passage.id}, title {excerpt(passage.title)}: {excerpt(passage.text)}"
        for passage in islice(tables.rows(records / "passages.parquet", Passage), EXAMPLES)
    ]
    questions = list(islice(tables.rows(records / "questions.parquet", Question), EXAMPLES))
    positives = {question.id: [] for question in questions}
    for context in tables.rows(records / "contexts.parquet", Context):
        if context.role == "positive" and context.question_id in positives:
            positives[context.question_id].append(context.passage_id)
    for question in questions:
        texts = f"{excerpt(question.question)}, answers {excerpt(question.answers)}"
        lines.append(f"question {question.id}: {texts}, positives {excerpt(positives[question.id])}")
    return lines


def _copy(name: str, files: Sequence[Path], params: Path) -> Path:
    folder = _folder(name, params)
    for path in files:
        if path.resolve() != (folder / path.name).resolve():  # else it was edited in place
            with replacing(folder / path.name) as temporary:
                shutil.copyfile(path, temporary)
    return folder


def _folder(name: str, params: Path) -> Path:
    return params.parent / "data" / "sources" / name


def _description(name: str, params: Path) -> Path:
    file = collection_file(name, params=params)
    return file if file.exists() else params
