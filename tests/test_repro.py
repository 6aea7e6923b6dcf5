"""`eadpr repro` in a small repository of DVC: what runs side by side, what does not run, what stays."""

import multiprocessing
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from eadpr.runtime import machine
from eadpr.runtime.progress import LINES
from eadpr.studies import status
from eadpr.studies.repro import main, offer_baseline, run_changed

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


def test_a_stage_that_others_wait_for_begins_first(folder, monkeypatch):
    monkeypatch.setattr(machine, "device", lambda: "cuda")  # one at a time
    needs = {"c": "[]", "a": "[]", "b": "[]", "mined": "[b]"}
    stages = [
        f"  {name}: {{cmd: echo {name} >> order && touch {name}, deps: {deps}, outs: [{name}]}}\n"
        for name, deps in needs.items()
    ]
    (folder / "dvc.yaml").write_text("stages:\n" + "".join(stages))
    run_changed()
    assert (folder / "order").read_text().split() == ["b", "mined", "c", "a"]


def test_a_failed_stage_is_named_and_what_ran_beside_it_is_kept(folder):
    (folder / "wrong").touch()
    with pytest.raises(ChildProcessError, match=r"'right': failed to run: .* exited with 1"):
        run_changed()
    assert "left:" in (folder / "dvc.lock").read_text()
    assert not (folder / "both").exists()


def test_a_stage_begins_as_soon_as_what_it_needs_is_seen_to_be_unchanged(folder, monkeypatch):
    meeting = PIPELINE.replace("deps: [first], outs: [left]", "deps: [source], outs: [left]").replace(
        "cat first", "cat source"
    )
    (folder / "dvc.yaml").write_text(meeting)
    run_changed()
    for name in ("left", "right"):
        (folder / f"{name}.began").unlink()
    monkeypatch.setenv("LONGEST", "20")
    (folder / "dvc.yaml").write_text(meeting.replace("sleep 0.05", "sleep 0.06"))
    run_changed()
    assert (folder / "both").read_text() == "a\na\n"


def test_missing_files_of_another_collection_are_nobodys_need(folder):
    (folder / "other").write_text("b")
    subprocess.run(["dvc", "add", "-q", "other"], check=True)
    (folder / "other").unlink()
    subprocess.run(["rm", "-rf", ".dvc/cache"], check=True)
    run_changed()
    assert (folder / "both").exists()


def test_what_will_run_is_said_in_few_lines_and_an_error_of_dvc_itself_in_one(folder, monkeypatch, capsys):
    (folder / "dvc.yaml").write_text("stages: [\n")
    lines = [f"train@{number} will run: loss.tau1=0.5" for number in range(12)]
    monkeypatch.setattr(status, "main", lambda _: "\n".join(lines))
    with pytest.raises(ValueError, match=r"dvc\.yaml"):
        main()
    assert capsys.readouterr().err.splitlines() == [*lines[:9], "… all 12 lines: eadpr status"]


def test_figures_of_another_processor_are_offered_as_ones_own_baseline(folder):
    metrics, params = Path("toy.json"), Path("params.yaml")
    metrics.write_text("1\n")
    params.write_text("a: 1\n")
    assert offer_baseline(metrics) == ""  # nothing is committed yet
    for words in ("add -A", "-c user.email=a@b.c -c user.name=a commit -qm all"):
        subprocess.run(["git", *words.split()], check=True)
    assert offer_baseline(metrics) == ""
    metrics.write_text("2\n")
    assert "git commit -m 'Figures of this machine' dvc.lock toy.json" in offer_baseline(metrics)
    params.write_text("a: 2\n")
    assert offer_baseline(metrics) == ""


def test_a_killed_run_leaves_no_worker(folder, monkeypatch):
    (folder / "dvc.yaml").write_text("stages: {slow: {cmd: touch began && sleep 3, deps: [source]}}")
    run = multiprocessing.get_context("spawn").Process(target=run_changed)
    run.start()
    while not (folder / "began").exists():
        time.sleep(0.1)
    workers = psutil.Process(run.pid).children()
    os.kill(run.pid, signal.SIGKILL)
    run.join()
    assert psutil.wait_procs(workers, timeout=30)[1] == []
