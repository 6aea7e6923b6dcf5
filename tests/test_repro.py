"""`eadpr repro` in a small repository of DVC: what runs side by side, what does not run, what stays."""

import subprocess

import pytest

from eadpr.runtime import machine
from eadpr.runtime.progress import LINES
from eadpr.studies.repro import run_changed

MEET = "touch {0}.began && timeout $LONGEST sh -c 'until [ -e {1}.began ]; do sleep 0.05; done' && cat first > {0}"
PIPELINE = f"""
stages:
  first: {{cmd: cat source > first, deps: [source], outs: [first]}}
  left: {{cmd: "{MEET.format("left", "right")}", deps: [first], outs: [left]}}
  right: {{cmd: "{MEET.format("right", "left")} && [ ! -e wrong ]", deps: [first], outs: [right]}}
  both: {{cmd: cat left right > both, deps: [left, right], outs: [both]}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(LINES, "1")
    monkeypatch.setenv("LONGEST", "100")
    (tmp_path / "dvc.yaml").write_text(PIPELINE)
    (tmp_path / "source").write_text("a\n")
    for command in (["git", "init", "-q"], ["dvc", "init", "-q"]):
        subprocess.run(command, check=True)
    return tmp_path


def test_stages_meet_and_dvc_has_nothing_left_to_do(folder):
    run_changed()
    assert (folder / "both").read_text() == "a\na\n"
    status = subprocess.run(["dvc", "status"], check=True, capture_output=True, text=True)
    assert "up to date" in status.stdout
    lock = (folder / "dvc.lock").stat()
    run_changed()
    assert (folder / "dvc.lock").stat().st_mtime_ns == lock.st_mtime_ns


def test_where_there_is_a_gpu_stages_follow_one_another(folder, monkeypatch):
    monkeypatch.setattr(machine, "device", lambda: "cuda")
    monkeypatch.setenv("LONGEST", "1")
    with pytest.raises(ChildProcessError, match=r"'(left|right)': failed to run"):
        run_changed()


def test_a_failed_stage_is_named_and_what_ran_beside_it_is_kept(folder):
    (folder / "wrong").touch()
    with pytest.raises(ChildProcessError, match=r"'right': failed to run: .* exited with 1"):
        run_changed()
    assert "left:" in (folder / "dvc.lock").read_text()
    assert not (folder / "both").exists()
