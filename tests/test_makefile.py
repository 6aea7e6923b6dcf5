"""What `make` does besides calling the tools that have tests of their own."""

import os
import shutil
import subprocess

import pytest

from tests.repository import ROOT


@pytest.mark.parametrize(("held", "age", "left"), [("", 60, False), ("", 0, True), ("{}", 60, True)])
def test_an_empty_lock_file_of_dvc_is_removed_unless_it_is_being_written(tmp_path, held, age, left):
    """DVC writes it in place, so a kill can leave it empty, and no command can read it then."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    lock = tmp_path / ".dvc" / "tmp" / "rwlock"
    lock.parent.mkdir(parents=True)
    lock.write_text(held)
    os.utime(lock, (lock.stat().st_atime, lock.stat().st_mtime - age))
    subprocess.run(["make", "unlock"], cwd=tmp_path, check=True)
    assert lock.exists() == left


def test_a_clone_without_a_lock_file_has_nothing_to_remove(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    subprocess.run(["make", "unlock"], cwd=tmp_path, check=True)
