"""The toy pipeline of the tests, built once, and its stages one by one: as dvc.yaml runs them, without DVC."""

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock
from ruamel.yaml import YAML

from benchmarks.faults.hooked import VARIABLE, Fault
from eadpr.runtime import files
from tests import forked_python
from tests.repository import ROOT
from tests.small_pipeline import Project, create

LONGEST = 300  # seconds that a toy's stage may take
WRITTEN = ("data/atlas", "reports", "metrics", ".cache", "tmp")
ALL = ("data/atlas", "reports", "metrics", "dvc.lock")  # what a run ends with
State = dict[str, str | None]


class Stage(NamedTuple):
    """`words` are the module and its options."""

    name: str
    words: list[str]
    reads: list[str]
    outs: list[str]


class Ended(NamedTuple):
    code: int
    output: str


def built(folder: Path, seed: int = 1) -> Project:
    """The toy after `dvc repro`, its collection drawn and its arms trained with `seed`; made by who first asks."""
    project, done = Project(folder / f"toy-{seed}"), folder / f"toy-{seed}.done"
    with FileLock(folder / f"toy-{seed}.lock"):
        if not done.exists():
            files.discard(project.folder)
            create(project.folder)
            project.set(**{"atlas.seed": seed, "train.seed": seed, "base.seed": seed})
            project.commit("settings")  # before the run, whose page names the commit
            project.dvc("repro")
            project.commit("built")
            done.touch()
    return project


def stages(project: Project) -> list[Stage]:
    """Return the stages in the order in which they ran."""
    locked = YAML(typ="safe").load(project.lock())["stages"]
    result = []
    for name, stage in locked.items():
        words = shlex.split(stage["cmd"])
        reads, outs = ([part["path"] for part in stage.get(kind, [])] for kind in ("deps", "outs"))
        result.append(Stage(name, words[words.index("-m") + 1 :], reads, outs))
    return result


class Bench:
    """A copy of a built toy in which single stages run and are disturbed; `threads` of them work side by side."""

    def __init__(self, project: Project, folder: Path) -> None:
        forked_python.folder()  # so that no stage's time holds that of starting it
        self.project = project.copy(folder)
        self.folder = folder
        self.built = project.folder
        self.log = folder.with_name(f"{folder.name}.log")
        self.calls = folder.with_name(f"{folder.name}.calls")

    def start(
        self, stage: Stage, fault: Fault | None = None, log: Path | None = None, prefix: Sequence[str] = (), **more: str
    ) -> subprocess.Popen:
        """A process whose stdout and stderr go to `log`. `prefix` is a command line that the stage's is put behind,
        which then is no fork; `more` are environment variables."""
        fault = fault or Fault(f"{log or self.log}.calls")
        Path(fault.log).unlink(missing_ok=True)
        (self.folder / "tmp").mkdir(exist_ok=True)
        variables = {
            "PYTHONPATH": f"src{os.pathsep}{ROOT}", "TMPDIR": str(self.folder / "tmp"), VARIABLE: fault.word(),
            "EADPR_CHECKPOINT_SECONDS": "0", **more,
        }  # fmt: skip
        with (log or self.log).open("w") as out:
            return subprocess.Popen(
                [*prefix, "python", "-m", "benchmarks.faults.hooked", *stage.words], cwd=self.folder, stdout=out,
                stderr=out, env=self.project.environment(forked=not prefix, **variables),
            )  # fmt: skip

    def run(self, stage: Stage, fault: Fault | None = None, **options: Any) -> Ended:
        return self.ended(self.start(stage, fault, **options))

    def ended(self, process: subprocess.Popen, log: Path | None = None) -> Ended:
        try:
            code = process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        return Ended(code, (log or self.log).read_text(encoding="utf-8", errors="replace"))

    def outs(self, names: Iterable[str]) -> State:
        """Hash of each; None where it is not there."""
        return {name: hashed(self.folder / name) for name in names}

    def names(self) -> set[str]:
        """All files and folders that stages write, but the records of what they took and torch's folder."""
        paths = (path for part in WRITTEN for path in (self.folder / part).rglob("*"))
        names = {str(path.relative_to(self.folder)) for path in paths if not path.name.startswith("torchinductor")}
        return {name for name in names if "eadpr/runs" not in name}

    def leftovers(self) -> list[str]:
        """Temporary files and folders, but for the empty one that torch makes."""
        entries = (path for part in (*WRITTEN, "small") for path in (self.folder / part).rglob("*"))
        paths = [path.relative_to(self.folder) for path in entries if not path.name.startswith("torchinductor")]
        return sorted(str(path) for path in paths if path.suffix == ".tmp" or "tmp" in path.parent.parts)

    def clear(self, stage: Stage, old: Project | None = None) -> None:
        """Take away what the stage wrote and kept; where `old` is given its outputs are put there instead."""
        for part in ("tmp", ".cache", *stage.outs):
            files.discard(self.folder / part)
        if old:
            self.take(old, stage.outs)

    def take(self, project: Project, names: Iterable[str]) -> None:
        """Take files and folders from another copy."""
        for name in names:
            files.discard(self.folder / name)
            source = project.folder / name
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, self.folder / name)


def parts(path: Path) -> list[Path]:
    """The files of a folder, or the file itself."""
    return sorted(part for part in path.rglob("*") if part.is_file()) if path.is_dir() else [path]


def hashed(path: Path) -> str | None:
    return (files.tree_sha256 if path.is_dir() else files.sha256)(path) if path.exists() else None


def repro(bench: Bench) -> Ended:
    done = bench.project.run("dvc", "repro", check=False)
    return Ended(done.returncode, done.stdout + done.stderr)


def unlike(bench: Bench) -> list[str]:
    """Return what a run ends with that is not as it was built; stages may stand in another order in dvc.lock."""
    now, built = _locked(bench.folder), _locked(bench.built)
    names = [name for name in ALL[:-1] if hashed(bench.folder / name) != hashed(bench.built / name)]
    return names + [f"dvc.lock: {name}" for name in now.keys() | built.keys() if now.get(name) != built.get(name)]


def _locked(folder: Path) -> dict[str, Any]:
    """Return dvc.lock by stage; `""` has all else."""
    lock = YAML(typ="safe").load((folder / "dvc.lock").read_text(encoding="utf-8"))
    return {**lock.pop("stages"), "": lock}


def forget(bench: Bench, stage: Stage) -> None:
    """DVC has never run the stage."""
    lock = YAML(typ="safe").load((bench.folder / "dvc.lock").read_text(encoding="utf-8"))
    del lock["stages"][stage.name]
    with (bench.folder / "dvc.lock").open("w", encoding="utf-8") as file:
        YAML().dump(lock, file)
    files.discard(bench.folder / ".dvc" / "cache" / "runs")


def called(log: str | Path) -> tuple[int, list[str]]:
    """The number of the process that `hooked` ran in, and what it called; waits until it has begun."""
    began = time.monotonic()
    while time.monotonic() - began < LONGEST:
        lines = Path(log).read_text(errors="replace").splitlines() if Path(log).exists() else []
        if lines:
            return int(lines[0]), lines[1:]
        time.sleep(0.005)
    raise TimeoutError(f"{log}: nothing began")


def send(process: int, number: signal.Signals) -> bool:
    """Return whether the process was still there."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return False
    return True


def within(folder: Path) -> list[int]:
    """Processes that work in the folder."""
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                processes.append(int(process.name))
        except OSError:  # it has ended
            continue
    return processes
