"""Progress and records of runs decide no byte, so no list of code names them."""

import gc
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import stages.evidence
from eadpr.runtime import cache, files, progress, runs
from eadpr.runtime.stage_code import UNLISTED, closure
from eadpr.settings import command as commands
from eadpr.supervision.annotator_manifest import Manifest, Prompt, write_manifest
from tests import repository
from tests.repository import ROOT, stage_module
from tests.small_collection import write_config
from tests.supervision_toy import EVIDENCE, HARDWARE, SEPARATE, write_collection


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_returns_nothing_and_hides_no_error(terminal, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    returned = []

    def fail() -> None:
        with progress.progress("read", 3, "rows") as advance:
            returned.append(advance(1))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert returned == [None]


@pytest.mark.parametrize("file", ["cache", "cache/runs"])
def test_a_record_that_cannot_be_written_fails_no_stage(tmp_path, monkeypatch, capsys, file):
    monkeypatch.setenv("EADPR_CACHE", str(tmp_path / "cache"))
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("a file in place of the folder")
    runs.record(["train"], 1.0)
    assert "what the run took is not kept (" in capsys.readouterr().err


def test_no_stage_reaches_the_reader_of_records():
    for stage in repository.stages().values():
        reached = closure(ROOT / "stages" / f"{stage_module(stage['cmd'])}.py", ROOT)
        assert ROOT / "src/eadpr/studies/describe.py" not in reached
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
    monkeypatch.setattr("eadpr.runtime.machine.settle", lambda _: None)  # both settings are for a separate process
    monkeypatch.setattr(commands, "COLLECTED_AFTER", gc.get_threshold()[0])

    def run(out: Path) -> str:
        words = [word for name, value in (options | {"out": out}).items() for word in (f"--{name}", str(value))]
        monkeypatch.setattr(sys, "argv", ["evidence.py", *words])
        commands.run(stages.evidence.main)
        return files.sha256(out)

    advances = []

    @contextmanager
    def quiet(label, total, unit, done):
        yield advances.append

    expected = run(tmp_path / "loud.parquet")
    assert len(list((cache.root() / "runs").iterdir())) == 1
    monkeypatch.setattr(progress, "_lines", quiet)
    monkeypatch.setattr(runs, "record", lambda *_: None)
    assert run(tmp_path / "quiet.parquet") == expected
    assert advances
    assert len(list((cache.root() / "runs").iterdir())) == 1
