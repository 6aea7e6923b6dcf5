"""Bad files as a user meets them: the stage says in one line what is wrong and what to do, and changes nothing."""

import gzip
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


def options(folder: Path, passages: str = "p.jsonl") -> list[str]:
    """Of `stages.prepare`, for the files `passages` and q.jsonl in `folder`."""
    files = [{"kind": "passages", "path": passages}, {"kind": "questions", "path": "q.jsonl"}]
    config = {"source": {"format": "own", "files": files}, "prepare": PLAIN, "atlas": None, "facts": None, "paq": None}
    (folder / "config.json").write_text(json.dumps(config))
    paths = {"config": folder / "config.json", "sources": folder, "raw": folder / "raw", "out": folder / "records"}
    return [word for name, path in paths.items() for word in (f"--{name}", str(path))]


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    """A folder with good files and the records made of them."""
    (tmp_path / "p.jsonl").write_bytes(PASSAGES)
    (tmp_path / "q.jsonl").write_bytes(QUESTIONS)
    assert prepare(tmp_path, monkeypatch) == 0
    return tmp_path


def prepare(folder: Path, monkeypatch: pytest.MonkeyPatch, passages: str = "p.jsonl") -> int:
    """Run the stage; its exit status."""
    monkeypatch.setattr(sys, "argv", ["prepare", *options(folder, passages)])
    try:
        commands.run(stages.prepare.main)
    except SystemExit as ended:
        return ended.code
    return 0


@pytest.mark.parametrize(("name", "content", "said"), [
    ("p.jsonl.gz", gzip.compress(PASSAGES * 99, mtime=0)[:-12], r" is truncated, damaged .*\(.*\); copy"),
    ("p.jsonl", PASSAGES + PASSAGES, r", line 3: passage id 'a' stands twice \(first in .*, line 1\); ids must be"),
    ("q.jsonl", b'{"question": "q", "answers": [" "]}\n', r", line 1: answers\[0\] is ' ', .*; that makes 1 of 1"),
    ("p.jsonl", b'{"text": "caf\xe9"}\n', ", line 1: byte 0xe9 is not UTF-8; convert the file, e.g. with iconv"),
])  # fmt: skip
def test_one_line_names_file_place_and_remedy(earlier, monkeypatch, capsys, name, content, said):
    before = tree_sha256(earlier / "records")
    (earlier / name).write_bytes(content)
    capsys.readouterr()
    assert prepare(earlier, monkeypatch, name if name.startswith("p") else "p.jsonl") == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(PROGRESS)]
    assert re.search(f"^error: {re.escape(str(earlier / name))}{said}", line), line
    assert tree_sha256(earlier / "records") == before
    assert not list(earlier.glob(".*.tmp"))


NASTY = "$(touch owned); `touch owned` && ${x} #'\" | > owned"


def test_shell_characters_are_text_everywhere(tmp_path, monkeypatch):
    """In names of files, ids, titles, texts, questions and answers."""
    monkeypatch.chdir(tmp_path)
    word = NASTY.replace(" ", "_")
    passage = {"id": word, "title": NASTY, "text": f"It is {NASTY}."}
    question = {"question": NASTY, "answers": [NASTY], "positives": [word]}
    files = [tmp_path / f"{kind} {NASTY}.jsonl" for kind in "pqt"]
    for path, row in zip(files, (passage, question, question), strict=True):
        path.write_text(json.dumps(row) + "\n")
    (tmp_path / "params.yaml").write_text(PARAMS)
    given = OwnFiles(files[0], {"train": files[1], "test": files[2]})
    added = add_own("mine", given, share=0.2, split_words=None, params=tmp_path / "params.yaml")
    source = params.load(tmp_path / "params.yaml")["collections"]["mine"]["source"]
    records, _ = prepared(tmp_path, *source["files"], sources=added.folder)
    assert rows(records, "passages") == [Passage(word, NASTY, passage["text"], None)]
    assert [(q.question, q.answers) for q in rows(records, "questions")] == [(NASTY, [NASTY])] * 2
    assert not list(tmp_path.rglob("owned"))
