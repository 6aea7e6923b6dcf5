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
from eadpr.corpus.sources import BEGIN, Prepare
from eadpr.report.notes import note_few
from eadpr.runtime.files import replacing, write_text
from eadpr.runtime.section import Sets
from eadpr.settings.model import Collection
from eadpr.settings.resolve import checked
from eadpr.settings.yaml import COLLECTIONS, TAKEN, load, of_collection
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
    """`file` describes the collection, and `report` its records, if any file was read. It `needs_annotator`, a model of
    relevance, without `answers` to its training questions and without gold evidence. `held_out`: the share of questions
    for testing, None where the files say. `few`: what few questions mean, or ""."""

    folder: Path
    file: Path
    answers: bool = True
    needs_annotator: bool = False
    held_out: float | None = None
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
        advice = "give its files alone, or take another name"
        raise ValueError(f"{name} is in {_description(name, params)} already; {advice}")
    paths, block = _by_name(inputs.paths), _describe(inputs, share=share, split_words=split_words)
    added = Added(params.parent / "data" / "sources" / name, params.parent / COLLECTIONS / f"{name}.yaml")
    added = _read_files(added, checked(Collection, block, f"collections.{name}."), values, paths)
    unused = added.report["sets"].keys() - {*block["sets"]["evaluate"]}
    if validation := sorted(unused & {"own/validation", "own/valid", "own/dev"}):
        block["sets"]["validation"] = validation
    if not added.answers:
        block["settings"] |= _without_answers("pseudo" if added.needs_annotator else "gold")
    if not dry_run:
        _copy(inputs.paths, added.folder)
        text = io.StringIO()
        YAML().dump(block, text)  # the form in which `dvc exp run -S` writes it, which then changes only what it sets
        write_text(added.file, SCHEMA + text.getvalue())
    return added


def add_files(name: str, files: Sequence[Path], *, params: Path, dry_run: bool = False) -> Added:
    """Copy the files that the collection's description names, all of which must be given or be there.

    A user's own are read first, with those that are there. With `dry_run` nothing is written.
    """
    values = load_values(name, params)
    collection = checked(Collection, of_collection(values, name), f"collections.{name}.")
    source, expected = collection.source, {file.path for file in collection.source.files if file.path is not None}
    added = Added(params.parent / "data" / "sources" / name, _description(name, params))
    if unknown := [path for path in files if path.name not in expected]:
        names = f"it has {', '.join(sorted(expected))}; rename yours" if expected else "it takes none"
        if source.format == "own" and added.file != params:
            names += f"; where these were converted, remove {added.file} and add all originals"
        raise ValueError(f"{unknown[0]}: {name} has no file of that name; {names}, or take another name than {name}")
    new = _by_name(files)
    if missing := sorted(path for path in expected - new.keys() if not (added.folder / path).is_file()):
        raise FileNotFoundError(f"{name} also needs {', '.join(missing)}; give all of its files")
    if source.format == "own" and not any(file.url or file.kind in BEGIN for file in source.files):
        added = _read_files(added, collection, values, {path: added.folder / path for path in expected} | new)
    if not dry_run:
        _copy(files, added.folder)
    return added


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
        raise OSError(f"`dvc add {folder}` failed, the rest is done: {(done.stderr or done.stdout).strip()}")


def _describe(inputs: OwnFiles, *, share: float, split_words: int | None) -> dict[str, Any]:
    files: list[dict[str, Any]] = [{"kind": "passages", "path": inputs.passages.name}]
    if inputs.columns:
        files[0]["columns"] = dict(inputs.columns)
    held_out = len(inputs.questions) == 1 or "train" not in inputs.questions
    for split, path in inputs.questions.items():
        questions = {"kind": "questions", "path": path.name, "set": "own"}
        questions |= {"split": "train", "test_share": share} if held_out else {"split": split}
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
        raise ValueError(f"{name!r} cannot name a collection: use lower-case letters, digits and '-', as in my-corpus")
    if name in TAKEN:
        raise ValueError(f"{name!r} cannot name a collection: data/{name}/ is {TAKEN[name]}; take another name")
    return load(params)


def _read_files(added: Added, collection: Collection, values: Mapping[str, Any], paths: Mapping[str, Path]) -> Added:
    """Read the files at `paths` as the stage `prepare` will, so that errors in them are raised before anything changes;
    return `added` with what was read."""
    # Where the files are now is no place that a collection may name, so the copies are not validated.
    files = [entry.model_copy(update={"path": str(paths[entry.name])}) for entry in collection.source.files]
    source, sets = collection.source.model_copy(update={"files": files}), collection.sets
    settings = Prepare.model_validate(values["prepare"] | collection.settings.get("prepare", {}))
    question_files = [Path(entry.name) for entry in files if entry.kind == "questions"]
    with tempfile.TemporaryDirectory(prefix="eadpr-add-") as scratch:
        out = Path(scratch) / "records"
        report = prepare(source, settings, sources=Path(), raw=Path(), out=out)
        offers = list(_offer_positives(question_files, report["columns"], out / "passages.parquet"))
        report |= {"first": _examples(out), "offers": offers} | _count_equal(sets, out)
        words = (len(passage.text.split()) for passage in tables.rows(out / "passages.parquet", Passage))
        report["long"] = sum(count > 200 for count in words)  # about the 256 tokens that encoders read by default
    _check_sets(sets, report, question_files)
    trained = [report["sets"][name] for name in sets.train]
    answers = any(counts["without_answers"] < counts["questions"] for counts in trained)
    gold = any(counts["with_gold"] for counts in trained)
    held_out = next((entry.test_share for entry in files if entry.test_share), None)
    few = note_few(report["sets"], sets)
    return Added(added.folder, added.file, answers, not answers and not gold, held_out, report, few)


def _offer_positives(question_files: Sequence[Path], columns: Mapping[str, Any], passages: Path) -> Iterator[str]:
    """Name the columns of questions that hold passages' ids, where none is read as the positives."""
    files = {path: columns[path.name]["unread"] for path in question_files}
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


def _check_sets(sets: Sets, report: dict[str, Any], files: Sequence[Path]) -> None:
    """Raise ValueError where a set has no question that a passage is right for, or passages may have lost their ids."""
    names = " or ".join(map(str, files))
    by_id = any("positives" in report["columns"][path.name]["read"] for path in files)
    for name, columns in report["columns"].items():
        if by_id and columns["unread"] and "text" in columns["read"] and "id" not in columns["read"]:
            reason = f"no column id, and questions name passages by theirs; not read are {', '.join(columns['unread'])}"
            raise ValueError(f"{name}: {reason}; say which one it is, --columns id=COLUMN, or add it")
    for question_set in (*sets.train, *sets.evaluate):
        counts = report["sets"].get(question_set)
        if counts is None:
            reason = f"no question is in {question_set}; the columns set and split must be absent or say so"
            raise ValueError(f"{names}: {reason}")
        if counts.get("without_either") == counts["questions"]:
            lacks = f"none of the {counts['questions']:,} questions of {question_set} has answers or positives"
            advice = "add a column answers (texts) or positives (passage ids)"
            if unread := dict.fromkeys(name for path in files for name in report["columns"][path.name]["unread"]):
                advice += f"; not read are {', '.join(unread)}; say which one it is, --question-columns answers=COLUMN"
            raise ValueError(f"{names}: {lacks}, so that no passage is right for any; {advice}")


def _count_equal(sets: Sets, records: Path) -> dict[str, dict[str, int]]:
    """Count, word for word, the questions of a set that stand there `again`, and those tested that are trained on."""
    texts = {q.id: q.question.strip().lower() for q in tables.rows(records / "questions.parquet", Question)}
    by_set: dict[str, list[str]] = {}
    for member in tables.rows(records / "question_sets.parquet", SetMember):
        by_set.setdefault(f"{member.question_set}/{member.split}", []).append(texts[member.question_id])
    trained = {text for name in sets.train for text in by_set.get(name, ())}
    tested = {*sets.evaluate} - {*sets.train}
    in_both = {name: sum(map(trained.__contains__, by_set.get(name, ()))) for name in tested}
    counts = {"again": {name: len(members) - len({*members}) for name, members in by_set.items()}, "in_both": in_both}
    return {kind: {name: n for name, n in sorted(numbers.items()) if n} for kind, numbers in counts.items()}


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


def _copy(files: Sequence[Path], folder: Path) -> None:
    for path in files:
        if path.resolve() != (folder / path.name).resolve():  # else it was edited in place
            with replacing(folder / path.name) as temporary:
                shutil.copyfile(path, temporary)


def _description(name: str, params: Path) -> Path:
    file = params.parent / COLLECTIONS / f"{name}.yaml"
    return file if file.exists() else params
