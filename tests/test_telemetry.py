"""Progress and records of runs decide no byte, so no list of code names them."""

import sys

import pytest

from eadpr.runtime import progress, runs
from eadpr.runtime.stage_code import UNLISTED, closure
from tests import repository
from tests.repository import ROOT, stage_module


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
