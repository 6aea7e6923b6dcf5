"""Which wings' tests a change picks."""

import shutil

import pytest

from tests import suite
from tests.repository import ROOT

PARTS = ("src", "stages", "tests", "dvc.yaml", "params.yaml")


@pytest.fixture
def recorded(tmp_path):
    """A copy of the repository in which every wing's tests are recorded as passed."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, tmp_path / part)
    suite.record(suite.changed(tmp_path), tmp_path)
    assert suite.changed(tmp_path) == {}
    return tmp_path


def picked_after(root, file, text):
    path = root / file
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    for function in (suite.stage_code._read, suite.stage_code._files, suite._helpers):
        function.cache_clear()
    return set(suite.changed(root))


@pytest.mark.parametrize(("file", "wings", "not_wings"), [
    ("src/eadpr/explorer/overview.py", {"explorer"}, {"two_hops", "publishing", "writers"}),
    ("src/eadpr/training/losses.py", {"two_hops", "library"}, {"explorer", "writers"}),
    ("tests/reading_toy.py", {"readers"}, {"two_hops", "explorer"}),
    ("stages/train.py", {"readers"}, {"explorer", "writers"}),
])  # fmt: skip
def test_a_change_picks_the_wings_that_import_it(recorded, file, wings, not_wings):
    picked = picked_after(recorded, file, "\nADDED = 1\n")
    assert wings <= picked
    assert not picked & not_wings


def test_a_changed_comment_picks_none(recorded):
    assert picked_after(recorded, "src/eadpr/training/losses.py", "\n# better words\n") == set()


def test_a_failing_wing_is_not_recorded(recorded, monkeypatch):
    picked = picked_after(recorded, "src/eadpr/explorer/overview.py", "\nADDED = 1\n")
    monkeypatch.setattr(suite, "ROOT", recorded)
    monkeypatch.setattr(suite, "changed", lambda: dict.fromkeys(picked, "new"))
    before = (recorded / suite.LOCK).read_bytes()
    monkeypatch.setattr(suite, "run", lambda options: 1)
    assert suite.main("changed", []) == 1
    assert (recorded / suite.LOCK).read_bytes() == before
