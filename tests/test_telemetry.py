"""What is said of a run while it goes on and kept of it decides no byte, so that no list of code names it."""

import ast
import gc
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import stages.evidence
from eadpr.runtime import cache, files, progress, runs
from eadpr.runtime.stage_code import UNLISTED, closure, imports
from eadpr.settings import command as commands
from eadpr.supervision.annotator_manifest import Manifest, Prompt, write_manifest
from tests import repository
from tests.repository import ROOT, stage_module
from tests.small_collection import write_config
from tests.supervision_toy import EVIDENCE, HARDWARE, SEPARATE, write_collection

MODULES = [path for top in ("src", "stages") for path in (ROOT / top).rglob("*.py")]


def importing(module: str) -> list[Path]:
    """The modules that do; a relative path below src."""
    return [path for path in MODULES if ROOT / "src" / module in imports(path, ROOT)]


def nodes(path: Path, kind: type) -> list:
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kind)]


def names(node: ast.AST, name: str) -> int:
    return sum(isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(node))


def test_progress_is_a_context_and_nothing_else():
    users = importing("eadpr/runtime/progress.py")
    assert len(users) > 5
    for path in users:
        (of_progress,) = [node for node in nodes(path, ast.ImportFrom) if node.module == "eadpr.runtime.progress"]
        assert [alias.name for alias in of_progress.names] == ["progress"], path
        contexts = sum(names(item.context_expr, "progress") for node in nodes(path, ast.With) for item in node.items)
        assert contexts == names(ast.parse(path.read_text(encoding="utf-8")), "progress"), path


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_gives_nothing_back_and_hides_no_error(terminal, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    given = []

    def fail() -> None:
        with progress.progress("read", 3, "rows") as advance:
            given.append(advance(1))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert given == [None]


def test_stages_keep_a_record_and_read_none():
    (user,) = [path for path in importing("eadpr/runtime/runs.py") if path.name != "trainings.py"]
    assert user == ROOT / "src" / "eadpr" / "settings" / "command.py"
    (use,) = [node for node in nodes(user, ast.Expr) if names(node, "runs")]
    assert ast.unparse(use.value.func) == "runs.record"
    assert names(ast.parse(user.read_text(encoding="utf-8")), "runs") == 1


@pytest.mark.parametrize("file", ["cache", "cache/runs"])
def test_a_record_that_cannot_be_kept_is_said_and_fails_no_stage(tmp_path, monkeypatch, capsys, file):
    """A file stands where a folder has to be, that of the whole cache or that of records."""
    monkeypatch.setenv("EADPR_CACHE", str(tmp_path / "cache"))
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("no folder")
    runs.record(["train"], 1.0)
    assert "what the run took is not kept (" in capsys.readouterr().err


def test_no_stage_of_the_pipeline_reaches_what_reads_records():
    for stage in repository.stages().values():
        reached = closure(ROOT / "stages" / f"{stage_module(stage['cmd'])}.py", ROOT)
        assert ROOT / "src/eadpr/studies/trainings.py" not in reached
        assert not [path for path in reached if path.as_posix().endswith(UNLISTED)]


def test_a_stage_writes_the_same_bytes_without_telemetry(tmp_path, monkeypatch):
    """`evidence`, which counts its pairs and keeps shards."""
    records, positives = write_collection(tmp_path)
    (tmp_path / "annotator").mkdir()
    write_manifest(tmp_path / "annotator", Manifest("none", Prompt("{question} {context}", lowercase=True), [], {}))
    settings = EVIDENCE.model_copy(update={"strategies": ["sentence", "window", "answer"]})
    sections = {
        "evidence": settings.model_dump(), "sets": SEPARATE.model_dump(), "endpoint": None,
        "machine": HARDWARE.model_dump(),
    }  # fmt: skip
    options = {"config": write_config(tmp_path / "evidence.json", **sections), "records": records}
    options |= {"positives": positives, "annotator": tmp_path / "annotator"}
    monkeypatch.setattr("eadpr.runtime.machine.settle", lambda _: None)  # both are for a process of its own
    monkeypatch.setattr(commands, "COLLECTED_AFTER", gc.get_threshold()[0])
    said = []

    def run(out: Path) -> str:
        words = [word for name, value in (options | {"out": out}).items() for word in (f"--{name}", str(value))]
        monkeypatch.setattr(sys, "argv", ["evidence.py", *words])
        with pytest.raises(SystemExit, match=r"^0$"):
            commands.run(stages.evidence.main.command())
        return files.sha256(out)

    @contextmanager
    def quiet(label, total, unit, done):
        yield said.append

    whole = run(tmp_path / "said.parquet")
    assert len(list((cache.root() / "runs").iterdir())) == 1
    monkeypatch.setattr(progress, "_lines", quiet)
    monkeypatch.setattr(runs, "record", lambda *_: None)
    assert run(tmp_path / "quiet.parquet") == whole
    assert said
    assert len(list((cache.root() / "runs").iterdir())) == 1
