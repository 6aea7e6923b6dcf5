"""The real pipeline, small enough to run in a minute: a copy of the project with small parameters and its own git."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Self

from ruamel.yaml import YAML

from tests import forked_python
from tests.repository import ROOT

SMALL = {
    "machine.threads": 1, "atlas.passages": 630, "base.layers": 1, "base.hidden": 32, "base.heads": 2,
    "base.intermediate": 32, "base.vocabulary": 600, "encoder.passage_tokens": 96, "annotator.build.vocabulary": 600,
    "annotator.build.width": 32, "annotator.build.heads": 2, "annotator.build.layers": 1,
    "annotator.build.feed_forward": 32, "annotator.build.continuation_steps": 2, "annotator.build.answering_steps": 8,
    "annotator.build.warmup_steps": 1,
    "active": {arm: {"negatives": "bm25", "init": "base"} for arm in ("dpr", "eadpr")},
    "evidence.strategies": ["pseudo", "gold", "placebo", "placebo_words", "placebo_inside"], "train.steps": 12,
    "train.batch_size": 8, "train.validate_every": 6, "encode.shard_passages": 64, "encode.window_passages": 64,
    "bm25.heap_mb": 256, "report.resamples": 200, "report.by": {"type": ["aa", "top5"]},
}  # fmt: skip
PARTS = (
    "src", "stages", "dvc.yaml", "params.yaml", "data/collections",
    ".dvcignore", ".gitignore", ".dvc/config", ".dvc/plots", ".ci",
)  # fmt: skip


class Project:
    """A working tree with the pipeline; commands run as a user types them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def environment(self, *, forked: bool = True, **more: str) -> dict[str, str]:
        """`forked` is False where all processes of a command are killed at once, as one group."""
        folders = [*[forked_python.folder()] * forked, Path(sys.executable).parent, os.environ["PATH"]]
        path = os.pathsep.join(map(str, folders))
        cache = str(self.folder / ".cache" / "eadpr")
        return {**os.environ, "PATH": path, "EADPR_CACHE": cache, "PYTHONPATH": "", **more}

    def run(self, *command: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess:
        variables = self.environment(**environment)
        done = subprocess.run(command, cwd=self.folder, env=variables, capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def dvc(self, *arguments: str, **options) -> list[str]:
        """Run dvc and return the names of the stages that ran."""
        return ran(self.run("dvc", *arguments, **options).stdout)

    def commit(self, message: str) -> None:
        """Commit all changes at one time for all projects, so that equal trees have equal names, which pages hold."""
        date = "2026-01-01T12:00:00Z"
        self.run("git", "add", "-A")
        self.run("git", "commit", "-qm", message, GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)

    def set(self, **values: object) -> None:
        """Change keys of params.yaml, written with dots."""
        yaml = YAML()
        yaml.preserve_quotes = True
        yaml.width = 4096
        path = self.folder / "params.yaml"
        params = yaml.load(path.read_text(encoding="utf-8"))
        for key, value in values.items():
            *parents, last = key.split(".")
            section = params
            for parent in parents:
                section = section.setdefault(parent, {})
            section[last] = value
        with path.open("w", encoding="utf-8") as file:
            yaml.dump(params, file)

    def lock(self) -> str:
        return (self.folder / "dvc.lock").read_text(encoding="utf-8")

    def copy(self, folder: Path) -> Self:
        shutil.copytree(self.folder, folder, symlinks=True)
        return Project(folder)


def ran(output: str) -> list[str]:
    return re.findall(r"^Running stage '([^']+)'", output, re.MULTILINE)


def create(folder: Path) -> Project:
    for part in PARTS:
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy2(ROOT / part, target)
    shutil.copytree(ROOT / "data" / "sources" / "atlas", folder / "data" / "sources" / "atlas")
    project = Project(folder)
    project.run("git", "init", "-q", "-b", "main")
    project.run("git", "config", "user.email", "test@example.org")
    project.run("git", "config", "user.name", "test")
    project.set(**SMALL)
    project.commit("small")
    return project
