"""A copy of the project in a git repository of its own, with a `dvc` that trains nothing: `dvc exp run` makes the
parameters and configs that the real one would, and the report of atlas is `| a table |`."""

import os
import shutil
import subprocess
from pathlib import Path

from eadpr.runtime import stage_code
from eadpr.runtime.files import write_text
from tests import forked_python
from tests.repository import ROOT, stage_module, stages

DVC = """#!/bin/sh
echo "$@"
{python} -c '
import runpy, sys
from pathlib import Path
from dvc.utils.hydra import apply_overrides
from eadpr.runtime.files import write_text
apply_overrides(Path("params.yaml"), sys.argv[4::2])
if {ends_with}:
    sys.exit({ends_with})
write_text(Path("reports/atlas/table.md"), "| a table |\\n")
sys.argv = ["configs"]
runpy.run_module("stages.configs", run_name="__main__")
' "$@"
"""


def create(folder: Path, *, dvc_ends_with: int = 0, own: tuple[str, str] = ("top1", "top1")) -> Path:
    """own.yaml is studies.yaml with one string put for another."""
    for name in ("src", "stages", "data/collections"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("params.yaml", "studies.yaml", "dvc.yaml", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    (folder / "own.yaml").write_text((ROOT / "studies.yaml").read_text(encoding="utf-8").replace(*own), "utf-8")
    dvc = folder / "bin" / "dvc"
    dvc.parent.mkdir()
    dvc.write_text(DVC.format(python=forked_python.folder() / "python", ends_with=dvc_ends_with), encoding="utf-8")
    dvc.chmod(0o755)
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    """All of it, in a new repository."""
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "-qm", "all")


def measured(folder: Path) -> None:
    """Where a command that writes a page finds the collection atlas, which is the folder itself, and all committed."""
    (folder / "data").mkdir()
    (folder / "data" / "atlas").symlink_to(folder)
    for name in ("params.yaml", "dvc.yaml"):
        (folder / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    for name in ("src", "stages"):
        (folder / name).symlink_to(ROOT / name)
    for module in {stage_module(stage["cmd"]) for stage in stages().values()}:
        listed = stage_code.listed(ROOT / "stages" / f"{module}.py", ROOT)
        write_text(folder / "configs" / "code" / f"{module}.txt", listed)
    commit(folder)


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def study(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """`python -m stages.study` in such a folder."""
    process = start(folder, *arguments)
    out, errors = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def start(folder: Path, *arguments: str) -> subprocess.Popen:
    environment = os.environ | {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    }
    command = [forked_python.folder() / "python", "-m", "stages.study", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)
