"""Bad files as a user meets them: the stage says in one line what is wrong and what to do, and changes nothing."""

import json
import re
import sys
from pathlib import Path

import pytest

import stages.prepare
from eadpr.corpus.formats.own import OwnFiles
from eadpr.runtime.files import tree_sha256
from eadpr.settings import command as commands
from eadpr.settings import resolve as params
from eadpr.settings.add_collection import add_own
from eadpr.storage.records import Passage
from tests.corpus_toy import PLAIN, prepared, rows
from tests.test_own_files import PARAMS

PROGRESS = ("passages: ", "questions of ")  # lines of a log
PASSAGES = b'{"id": "a", "title": "T", "text": "Alpha is here."}\n{"id": "b", "text": "Beta is here."}\n'
QUESTIONS = b'{"question": "who?", "answers": ["Alpha"], "positives": ["a"]}\n'


def options(folder: Path) -> list[str]:
    """Return the options of `stages.prepare` for the files p.jsonl and q.jsonl in `folder`."""
    files = [{"kind": "passages", "path": "p.jsonl"}, {"kind": "questions", "path": "q.jsonl"}]
    config = {"source": {"format": "own", "files": files}, "prepare": PLAIN, "atlas": None, "facts": None, "paq": None}
    (folder / "config.json").write_text(json.dumps(config))
    paths = {"config": folder / "config.json", "sources": folder, "raw": folder / "raw", "out": folder / "records"}
    return [word for name, path in paths.items() for word in (f"--{name}", str(path))]


def prepare(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the stage; its exit status."""
    monkeypatch.setattr(sys, "argv", ["prepare", *options(folder)])
    try:
        commands.guard(lambda: stages.prepare.main.run_command(sys.argv[1:]))
    except SystemExit as ended:
        return ended.code
    return 0


def test_one_line_names_file_place_and_remedy_and_earlier_records_stay(tmp_path, monkeypatch, capsys):
    (tmp_path / "p.jsonl").write_bytes(PASSAGES)
    (tmp_path / "q.jsonl").write_bytes(QUESTIONS)
    assert prepare(tmp_path, monkeypatch) == 0
    old_hash = tree_sha256(tmp_path / "records")
    (tmp_path / "p.jsonl").write_bytes(PASSAGES + PASSAGES)
    capsys.readouterr()
    assert prepare(tmp_path, monkeypatch) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(PROGRESS)]
    message = r"p\.jsonl, line 3: passage id 'a' stands twice \(first in .*, line 1\); ids must be"
    assert re.search(f"^error: {re.escape(str(tmp_path))}/{message}", line), line
    assert tree_sha256(tmp_path / "records") == old_hash
    assert not list(tmp_path.glob(".*.tmp"))


NASTY = "$(touch owned); `touch owned` && ${x} #'\" | > owned"


def test_shell_characters_are_text_everywhere(tmp_path, monkeypatch):
    """Shell characters stand in names of files, ids, titles, texts, questions and answers."""
    monkeypatch.chdir(tmp_path)
    word = NASTY.replace(" ", "_")
    passage = {"id": word, "title": NASTY, "text": f"It is {NASTY}."}
    question = {"question": NASTY, "answers": [NASTY], "positives": [word]}
    files = [tmp_path / f"{kind} {NASTY}.jsonl" for kind in "pqt"]
    for path, row in zip(files, (passage, question, question), strict=True):
        path.write_text(json.dumps(row) + "\n")
    (tmp_path / "params.yaml").write_text(PARAMS)
    own_files = OwnFiles(files[0], {"train": files[1], "test": files[2]})
    added = add_own("mine", own_files, share=0.2, split_words=None, params=tmp_path / "params.yaml")
    source = params.load(tmp_path / "params.yaml")["collections"]["mine"]["source"]
    records, _ = prepared(tmp_path, *source["files"], sources=added.folder)
    assert rows(records, "passages") == [Passage(word, NASTY, passage["text"], None)]
    assert [(q.question, q.answers) for q in rows(records, "questions")] == [(NASTY, [NASTY])] * 2
    assert not list(tmp_path.rglob("owned"))


def test_ctrl_c_ends_a_command_without_a_traceback():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        commands.guard(interrupted)
    assert ended.value.code == 130


@pytest.mark.parametrize("read", [commands.active_collection, lambda: params.load(Path("params.yaml"))])
def test_outside_of_a_project_a_command_says_where_to_run_it(read, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        commands.guard(read)
    text = "error: there is no params.yaml here; run this in the folder of the project, a clone of eadpr's repository\n"
    assert capsys.readouterr().err == text
