"""SIGKILL for the pipeline at its worst moments: what comes after ends with the bytes of an undisturbed run."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.small_pipeline import Project, create, ran

pytestmark = pytest.mark.pipeline

# The stage to kill, the file in the cache that shows it has work to lose, and the stage before it.
MOMENTS = [
    ("train@dpr", "train/*/state.pt", "examples@dpr"), ("encode@dpr", "vectors/*/vectors-00000.npy", "train@dpr"),
]  # fmt: skip
EVERY_STEP = {"EADPR_CHECKPOINT_SECONDS": "0"}


def kill(project: Project, *command: str, moment: str) -> None:
    """Start the command and kill it and all it started as soon as a file of the cache has the name `moment`."""
    log = project.folder.parent / "killed.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=project.folder, env=project.environment(forked=False, **EVERY_STEP), stdout=out, stderr=out,
            start_new_session=True,
        )  # fmt: skip
        while not any((project.folder / ".cache" / "eadpr").glob(moment)):
            assert process.poll() is None, f"{' '.join(command)} ended before {moment}\n{log.read_text()}"
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def locked(project: Project) -> dict:
    return YAML(typ="safe").load(project.lock())["stages"]


def test_a_run_from_nothing_killed_in_long_stages_ends_with_the_bytes_of_an_undisturbed_one(built, tmp_path):
    """`evidence` is killed in tests/test_evidence.py, the annotator's training in tests/test_annotator.py."""
    project = create(tmp_path / "project")
    for stage, moment, previous in MOMENTS:
        project.dvc("repro", previous)
        kill(project, "dvc", "repro", stage, moment=moment)
        assert stage not in locked(project)
    last = project.dvc("repro")
    assert (MOMENTS[-1][0] in last, "train@dpr" in last) == (True, False)
    assert locked(project) == locked(built)


@pytest.mark.nightly
def test_a_killed_experiment_is_recovered_as_documented(built, tmp_path):
    project = built.copy(tmp_path / "project")
    experiment = ("dvc", "exp", "run", "-S", "loss.tau1=0.5")
    kill(project, *experiment, moment="train/*/state.pt")
    assert project.run("git", "symbolic-ref", "-q", "HEAD", check=False).returncode != 0

    for command in recovery():
        project.run(*command.split())
    assert project.run("git", "status", "--porcelain", "--branch").stdout == "## main\n"
    assert project.dvc("repro") == []
    assert project.run("dvc", "status").stdout.endswith("up to date.\n")
    assert project.lock() == built.lock()

    cache = project.folder / ".cache" / "eadpr" / "train"
    assert list(cache.glob("*/state.pt")), "the work of the killed training"
    assert "train@eadpr" in ran(project.run(*experiment).stdout)
    assert not list(cache.glob("*/state.pt")), "it was taken up, else it would still be there"
    assert "tau1: 0.5" in (project.folder / "params.yaml").read_text(encoding="utf-8")
    assert project.run("git", "symbolic-ref", "--short", "HEAD").stdout == "main\n"


def recovery() -> list[str]:
    """The commands of docs/howto/killed-runs.md."""
    text = (Path(__file__).parent.parent / "docs" / "howto" / "killed-runs.md").read_text(encoding="utf-8")
    block = text.split("## `dvc exp run` was killed")[1].split("```")[1]
    return [line.partition("#")[0].strip() for line in block.strip().splitlines() if "git stash" not in line]
