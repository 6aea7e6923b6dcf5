"""A user's own files: what their columns say, splitting of long documents, and bringing files in."""

import bz2
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
from dvc.utils.hydra import apply_overrides
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from eadpr.corpus.formats import own
from eadpr.corpus.formats.columns import Columns
from eadpr.corpus.formats.own import OwnFiles
from eadpr.corpus.pieces import cut_text
from eadpr.corpus.rows import GivenQuestion, check_passages
from eadpr.corpus.sources import Source
from eadpr.report.notes import BY_RULE
from eadpr.settings.add_collection import add_files, add_own, track
from eadpr.settings.yaml import load, read_yaml
from eadpr.storage.records import Passage
from stages.add import main
from tests.corpus_toy import OF_PASSAGES, prepared, rows


def save(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pd.DataFrame(rows).to_csv(path, sep="," if path.suffix == ".csv" else "\t", index=False)
    return path


def questions(path: Path, **columns: str) -> list[GivenQuestion]:
    return list(own.read_questions(path, Columns("questions", columns)))


def passages(path: Path, prefix: str = "", **columns: str) -> list[Passage]:
    checked = check_passages(own.read_passages(path, Columns("passages", columns), prefix=prefix))
    return [Passage(*fields) for _, *fields in checked]


def test_only_the_text_is_needed_and_rows_are_numbered(tmp_path):
    path = save(tmp_path / "p.TSV", [{"text": "x", "url": "u"}, {"text": "y", "url": "v"}])
    assert [p.id for p in passages(path)] == ["1", "2"]
    assert [p.id for p in passages(path, prefix="2:")] == ["2:1", "2:2"]
    path.write_text("\ttext\n0\tx\n")  # as pandas writes its index
    assert passages(path) == [Passage("1", "", "x", None)]
    (question,) = questions(save(tmp_path / "q.tsv", [{"question": "who?"}]))
    assert (question.id, question.answers, question.contexts) == (None, [], [])


def test_a_cell_is_one_answer_unless_it_is_a_list(tmp_path):
    rows = [{"question": "q", "answers": cell} for cell in ("one", "", "['x', \"y\"]", "('z',)", "[7]")]
    assert [q.answers for q in questions(save(tmp_path / "q.tsv", rows))] == [["one"], [], ["x", "y"], ["z"], ["7"]]


def test_grades_go_with_the_positives_in_cells_too(tmp_path):
    """A list, a positive that is named twice, and a grade where nothing is positive, which says nothing."""
    cells = "a,\"['p', 'r', 'p']\",\"[2, 1, 2]\",\nb,p,3,\nc,,A,x\n"
    (tmp_path / "q.csv").write_text(f"question,positives,grades,answers\n{cells}")
    row = b'{"question": "b", "positives": "p", "grades": 3, "answers": NaN}\n'
    (tmp_path / "q.ndjson.bz2").write_bytes(bz2.compress(row))
    graded = [[(context.passage_id, context.grade) for context in q.contexts] for q in questions(tmp_path / "q.csv")]
    assert graded == [[("p", 2.0), ("r", 1.0)], [("p", 3.0)], []]
    ((grade,),) = ([context.grade for context in q.contexts] for q in questions(tmp_path / "q.ndjson.bz2"))
    assert grade == 3.0


def cut(text: str, words: int) -> list[str]:
    return [text[start:end] for start, end in cut_text(text, words)]


def test_pieces_end_where_sentences_do():
    assert [piece.split()[0] for piece in cut("It weighs approx. five tons. A new one begins here.", 6)] == ["It", "A"]
    assert [piece.split()[0] for piece in cut("It weighs approx. five tons and more.", 4)] == ["It", "tons"]
    assert cut("one two\nthree four five\nsix. Seven", 3) == ["one two", "three four five", "six. Seven"]


PARTS = st.sampled_from(["a", "Bc", "d.", "e?", "\u2003", "\n", "é!"])


@given(text=st.lists(PARTS, min_size=1, max_size=120).map(" ".join), words=st.integers(2, 30))
def test_pieces_lose_only_white_space_and_are_bounded(text, words):
    assert "".join("".join(piece.split()) for piece in cut(text, words)) == "".join(text.split())
    assert all(a.end < b.start for a, b in pairwise(cut_text(text, words)))
    assert all(len(piece.split()) <= 1.5 * words for piece in cut(text, words))


PARAMS = """\
collection: atlas  # which one
prepare: {split_words: null, odd_rows: 0, add_context_passages: false, keep_own_documents: false}
# all of them
collections:
  atlas:  # the default
    source: {format: atlas, files: []}
    sets: {train: [atlas/train], evaluate: [atlas/test], annotator: [atlas/annotator]}
    settings: {}
  given:
    source: {format: own, files: [{kind: passages, path: p.tsv}, {kind: questions, path: q.tsv, set: s, split: train}]}
    sets: {train: [s/train], evaluate: [s/train], annotator: [s/train]}
    settings: {}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "params.yaml").write_text(PARAMS)
    return folder


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    passages = [{"id": f"p{i}", "title": f"T{i // 2}", "text": f"Word{i} here."} for i in range(40)]
    queries = [{"question": f"what {i}?", "answers": [f"Word{i}"], "positives": f"p{i}"} for i in range(40)]
    return save(tmp_path / "p.tsv", passages), save(tmp_path / "q.tsv", queries)


def add(project: Path, passages: Path, questions: Path, test_questions: Path | None = None, name="mine", **more):
    options = {"share": 0.25, "split_words": None, "params": project / "params.yaml"} | more
    by_split = {"train": questions} | ({"test": test_questions} if test_questions else {})
    return add_own(name, OwnFiles(passages, by_split), **options)


def test_adding_a_collection_keeps_the_rest_of_params(project, files):
    passages, questions = files
    added = add(project, passages, questions, split_words=50)
    assert added.folder == project / "data" / "sources" / "mine"
    assert (added.folder / "p.tsv").read_bytes() == passages.read_bytes()
    assert (project / "params.yaml").read_text() == PARAMS
    assert added.file == project / "data" / "collections" / "mine.yaml"
    block = read_yaml(added.file)
    assert load(project / "params.yaml")["collections"]["mine"] == block
    text = added.file.read_text()
    apply_overrides(added.file, ["settings.prepare.split_words=60"])
    assert added.file.read_text() == text.replace("50", "60"), "it is in the form that DVC writes"
    assert Source.model_validate(block["source"]).files[1].test_share == 0.25
    assert block["sets"] == {"train": ["own/train"], "evaluate": ["own/test"], "annotator": ["own/train"]}
    assert block["settings"] == {"prepare": {"split_words": 50}}
    counts = {name: set_report["questions"] for name, set_report in added.report["sets"].items()}
    assert set(counts) == {"own/train", "own/test"}
    assert sum(counts.values()) == 40
    with pytest.raises(ValueError, match=r"is in .*data/collections/mine.yaml already"):
        add(project, passages, questions)


def assert_refused(message, project, *files, **options):
    """`add_own` raises what `message` matches and changes nothing."""
    with pytest.raises(ValueError, match=message):
        add(project, *files, **options)
    assert (project / "params.yaml").read_text() == PARAMS
    assert not (project / "data").exists()


@pytest.mark.parametrize(("names", "set_name"), [(("q.tsv",), "own/train"), (("q.tsv", "t.tsv"), "own/test")])
def test_questions_with_neither_answers_nor_positives_are_refused(project, files, names, set_name):
    passages, questions = files
    if len(names) == 1:
        questions.write_text("question\n" + "".join(f"what {i}?\n" for i in range(40)))
    tests = save(passages.with_name("t.tsv"), [{"question": "what?"}]) if len(names) == 2 else None
    message = rf"{names[-1]}: none of the \d+ questions of {set_name} has answers or positives"
    assert_refused(message, project, passages, questions, tests)


def test_questions_without_answers_ask_no_annotator(project, files):
    passages, questions = files
    questions.write_text("question\tpositives\n" + "".join(f"what {i}?\tp{i}\n" for i in range(40)))
    added = add(project, passages, questions)
    settings = read_yaml(added.file)["settings"]
    assert settings["annotator"] == {"kind": "relevance"}
    assert settings["evidence"] == {"strategies": ["pseudo", "placebo", "placebo_second"], "placebo_of": "pseudo"}
    assert added.needs_annotator


def test_bad_files_change_nothing(project, files):
    passages, questions = files
    questions.write_text("question\tpositives\nwho?\tnone-such\n")
    message = f"^{re.escape(str(questions))}, line 2: positive 0: passage id 'none-such' is not in the corpus"
    assert_refused(message, project, passages, questions)
    questions.write_text("question\tanswers\tsplit\n" + "".join(f"what {i}?\tWord{i}\ttrain\n" for i in range(40)))
    assert_refused("no question is left for test: a column split is taken as it is", project, passages, questions)
    questions.write_text("question\tanswers\tsplit\nwho?\tA\tdev\n")
    tests = save(passages.with_name("t.tsv"), [{"question": "what?", "answers": "A"}])
    message = r"q\.tsv or .*t\.tsv: no question is in own/train; the columns set and split must be absent"
    assert_refused(message, project, passages, questions, tests)


def test_files_of_a_collection_that_is_there(project, files):
    params = project / "params.yaml"
    added = add_files("given", files, params=params)
    assert sorted(p.name for p in added.folder.iterdir()) == ["p.tsv", "q.tsv"]
    assert params.read_text() == PARAMS
    with pytest.raises(ValueError, match=r"given has no file of that name; it has p\.tsv, q\.tsv"):
        add_files("given", [params], params=params)
    (added.folder / "q.tsv").unlink()
    with pytest.raises(FileNotFoundError, match=r"also needs q\.tsv"):
        add_files("given", files[:1], params=params)


@pytest.mark.parametrize("name", ["My", "a b", "../x", "", "-x", "a;rm", "sources", "collections"])
def test_names_that_cannot_be_folders_are_refused(project, files, name):
    with pytest.raises(ValueError, match="cannot name a collection"):
        add_files(name, files, params=project / "params.yaml")


def run(project: Path, name: str, *arguments: object) -> Any:
    app = typer.Typer()
    app.command()(main)
    words = (name, *arguments, "--params", project / "params.yaml", "--no-dvc")
    return CliRunner().invoke(app, [str(word) for word in words])


def test_questions_that_nothing_can_answer_are_counted(project, files):
    passages, questions = files
    hopeless = [f"nobody {i}?\t\t\n" for i in range(3)] + ["is it?\tyes\t\n"]
    questions.write_text(questions.read_text() + "".join(hopeless))
    tests = save(questions.with_name("t.tsv"), [{"question": "what?", "answers": "Word1", "positives": "p1"}])
    done = run(project, "mine", "--passages", passages, "--questions", questions, "--test-questions", tests)
    message = (
        "own/train: 44 questions, 4 without a positive; 4 have neither that nor an answer to look for: never learnt"
        " from, wrong if evaluated"
    )
    assert message in done.output.splitlines()
    assert "own/test: 1 question, each with a positive" in done.output.splitlines()


@pytest.mark.parametrize("format", ["own", "dpr"])
def test_yes_and_no_are_answers_that_no_text_of_a_users_own_is_searched_for(tmp_path, format):
    """DPR looks for them in the texts."""
    pairs = [("Is it?", "Yes"), ("Is it not?", '["no", "NO "]'), ("What says it?", '["no", "never"]')]
    (tmp_path / "p.tsv").write_text("id\ttext\ttitle\np\tNo.\tT\n")
    if format == "own":
        save(tmp_path / "q.tsv", [{"question": question, "answers": answers} for question, answers in pairs])
    else:
        (tmp_path / "q.tsv").write_text("Is it?\t['Yes']\nIs it not?\t['no', 'NO ']\nWhat?\t['no', 'never']\n")
    file = {"kind": "questions", "path": "q.tsv", "set": "s", "split": "train"}
    records, _ = prepared(tmp_path, OF_PASSAGES, file, format=format)
    stored = [(q.answer_kind, q.answers) for q in rows(records, "questions")]
    kind, *answers = ("yes-no", ["yes"], ["no", "no"]) if format == "own" else ("string", ["Yes"], ["no", "NO "])
    assert stored == [(kind, answers[0]), (kind, answers[1]), ("string", ["no", "never"])]


def test_the_command_says_what_comes_next(project, files):
    passages, questions = files
    done = run(project, "mine", "--passages", passages, "--questions", questions)
    assert "own/test is held out of the questions, about 20%" in done.output
    assert "own/train: 32 questions, each with a positive\nFew training questions (32, below 200)" in done.output
    few = "-S collection=mine -S base.model=sentence-transformers/all-MiniLM-L6-v2 -S train.steps=100"
    assert done.output.endswith(f"next: dvc exp run {few}{BY_RULE}\n")
    questions.write_text("question\tpositives\n" + "".join(f"what {i}?\tp{i}\n" for i in range(40)))
    done = run(project, "bare", "--passages", passages, "--questions", questions)
    assert "without answers the evidence is the sentence that matters most to MODEL" in done.output
    assert done.output.endswith(f"next: dvc exp run {few.replace('mine', 'bare')} -S annotator.model=MODEL\n")


def test_a_file_brought_in_again_is_read_before_it_replaces_the_earlier_one(project, files):
    _, questions = files
    run(project, "mine", *files)
    copy, earlier = project / "data" / "sources" / "mine" / "q.tsv", questions.read_text()
    questions.write_text(f"{earlier}what?\tWord1\tp40\n")
    original = str(run(project, "mine", project / "params.yaml").exception)
    assert re.search(r"p\.tsv, q\.tsv; .* converted, remove .*/mine\.yaml and add all originals, or take", original)
    refused = str(run(project, "mine", questions).exception)
    assert refused.startswith(f"{questions}, line 42: positive 0: passage id 'p40' is not in the corpus")
    questions.write_text(f"{earlier}what?\tWord1\tp1\n")
    assert run(project, "mine", questions, "--dry-run").output.endswith("add: nothing was written (--dry-run)\n")
    assert copy.read_text() == earlier
    done = run(project, "mine", questions).output
    assert "each with a positive\nFew training questions (" in done
    assert done.endswith(f" -S train.steps=100{BY_RULE}\n")
    assert copy.read_text() == questions.read_text()


def test_files_are_told_apart_by_their_columns_and_a_column_of_ids_is_offered(project, files):
    passages, questions = files
    rows = [{"query": f"what {i}?", "answer": f"Word{i}", "gold": [f"p{i}", "p0"]} for i in range(4)]
    questions, tests = (save(questions.with_name(name), rows) for name in ("q.jsonl", "q-dev.jsonl"))
    done = run(project, "mine", tests, passages, questions, "--dry-run")
    assert f"passages of {passages}, questions of {questions} and {tests}\n" in done.output
    assert "q.jsonl: gold holds ids of passages; --question-columns positives=gold reads it\n" in done.output
    assert "own/test: 4 questions, none with a positive, for which BM25 will look" in done.output
    done = run(project, "mine", tests, passages, questions, "--question-columns", "positives=gold", "--dry-run")
    assert "each with a positive\n" in done.output
    assert "1 without a column question or query, 0 with one; give one" in str(run(project, "mine", passages).exception)
    typed = passages.with_name("pp.tsv")
    assert str(run(project, "mine", typed, questions).exception) == f"{typed} does not exist; did you mean p.tsv?"


def test_a_folder_that_dvc_does_not_add_is_named_with_what_dvc_said(tmp_path):
    (tmp_path / "own").mkdir()
    with pytest.raises(OSError, match=r"(?s)`dvc add .*own` failed, the rest is done: .*not inside of a DVC"):
        track(tmp_path / "own", repository=tmp_path)
