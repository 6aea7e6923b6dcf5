"""What a stage's command does before its work: little for `--help`, and how its process is set up."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from eadpr.settings.command import COLLECTED_AFTER, Stage, active_collection
from eadpr.settings.user_command import app
from tests.repository import ROOT

HELPED = """
import gc, json, runpy, sys
sys.argv = ["{stage}", "--help"]
try:
    runpy.run_module("stages.{stage}", run_name="__main__")
except SystemExit as ended:
    assert not ended.code
slow = [name for name in ("rich", "torch", "transformers", "pyarrow", "pandas") if name in sys.modules]
print(json.dumps([slow, gc.get_threshold()[0]]))
"""


def TRAIN(loss, *, records, init, out): ...


def ran(code: str) -> list[str]:
    """The lines that a process of its own prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("stage", ["train", "distractors", "study"])
def test_help_imports_nothing_slow(stage):
    *help_lines, last = ran(HELPED.format(stage=stage))
    assert any("usage:" in line.lower() for line in help_lines)
    assert json.loads(last) == [[], COLLECTED_AFTER]


def test_what_a_command_prints_is_not_obeyed():
    output = CliRunner().invoke(app(lambda: "a\x1b]0;title\x07b\nc\u202e"), color=True).stdout
    assert output == "a\\x1b]0;title\\x07b\nc\\u202e\n"


def test_a_table_is_drawn_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    app(lambda: "| a |\n|---|\n| b |\n")(args=[], standalone_mode=False)
    assert "|---|" not in capsys.readouterr().out


def test_a_stage_is_settled_before_its_work(tmp_path, monkeypatch):
    did = []
    monkeypatch.setattr("eadpr.runtime.machine.settle", lambda machine: did.append(machine.threads))
    (tmp_path / "config.json").write_text('{"machine": {"threads": 3, "deterministic": true, "precision": "auto"}}')
    stage = Stage(lambda machine, *, out: did.append(str(out)), "x.json", {"out": "C/{arm}"})
    stage.run(stage.locate({"arm": "dpr"}, {"collection": "toy", "config": str(tmp_path / "config.json")}))
    assert did == [3, "data/toy/dpr"]


@pytest.mark.parametrize(("name", "options", "expected"), [
    ("eadpr", {"init": "base"}, ["data/atlas/configs/eadpr/train.json", "data/atlas/models/base", "data/atlas/eadpr"]),
    ("eadpr", {"init": "/m"}, ["data/atlas/configs/eadpr/train.json", "/m", "data/atlas/eadpr"]),
    (None, {"init": "/m", "config": "c", "out": "o", "records": "/r"}, ["c", "/m", "o"]),
])  # fmt: skip
def test_a_path_follows_from_names_or_is_given(monkeypatch, name, options, expected):
    monkeypatch.chdir(ROOT)  # params.yaml names the collection
    stage = Stage(TRAIN, "{arm}/train.json", {"init": "C/models/{init}", "out": "C/{arm}"})
    paths = stage.locate({"arm": name}, options)
    assert [str(paths[key]) for key in ("config", "init", "out")] == expected


@pytest.mark.parametrize(
    ("line", "name"), [("collection: toy", "toy"), ("collection: 'a-b' # c", "a-b"), ("x: 1", None)]
)
def test_the_active_collection_is_read_from_its_line(tmp_path, monkeypatch, line, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(f"# collection: no\nx:\n  collection: no\n{line}\n")
    if name:
        assert active_collection() == name
    else:
        with pytest.raises(ValueError, match=r"^params\.yaml: collection: "):
            active_collection()
