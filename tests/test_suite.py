"""Which wings' tests a change picks."""

import shutil

import pytest

from tests import suite
from tests.repository import ROOT

PARTS = ("src", "stages", "tests", "benchmarks", "dvc.yaml", "params.yaml")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A copy of the repository in which every wing's tests are recorded as passed."""
    folder = tmp_path_factory.mktemp("repository")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, folder / part)
    suite.record(suite.changed(folder), folder)
    assert suite.changed(folder) == {}
    return folder


def picked_after(root, file):
    """The wings that an edit picks, which is then taken back."""
    path = root / file
    path.write_text((original := path.read_text(encoding="utf-8")) + "\nADDED = 1\n", encoding="utf-8")
    for function in (suite.stage_code._read, suite.stage_code._files, suite._helpers):
        function.cache_clear()
    picked = set(suite.changed(root))
    path.write_text(original, encoding="utf-8")
    return picked


@pytest.mark.parametrize(("file", "wings", "not_wings"), [
    ("src/eadpr/explorer/gather.py", {"explorer"}, {"two_hops", "publishing", "writers"}),
    ("src/eadpr/training/losses.py", {"two_hops", "library"}, {"explorer", "writers"}),
    ("src/eadpr/supervision/evidence.py", {"benchmarks"}, {"explorer"}),
    ("tests/reading_toy.py", {"readers"}, {"two_hops", "explorer"}),
])  # fmt: skip
def test_a_change_picks_the_wings_that_import_it(recorded, file, wings, not_wings):
    picked = picked_after(recorded, file)
    assert wings <= picked
    assert not picked & not_wings


def test_a_failing_wing_is_not_recorded(recorded, monkeypatch):
    monkeypatch.setattr(suite, "ROOT", recorded)
    monkeypatch.setattr(suite, "changed", lambda: {"explorer": "new"})
    lock = (recorded / suite.LOCK).read_bytes()
    monkeypatch.setattr(suite, "run", lambda options: 1)
    assert suite.main("changed", []) == 1
    assert (recorded / suite.LOCK).read_bytes() == lock
