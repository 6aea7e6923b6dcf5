"""Where work between runs is kept."""

import subprocess
from pathlib import Path

import pytest

from eadpr.runtime import cache, stage_code


@pytest.fixture(autouse=True)
def default(monkeypatch):
    monkeypatch.delenv("EADPR_CACHE")
    cache._default_root.cache_clear()
    yield
    cache._default_root.cache_clear()


def test_beside_the_git_folder_from_below_and_from_a_worktree(tmp_path, monkeypatch):
    commands = (
        "git init -q {0}",
        "git -C {0} -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
        "git -C {0} worktree add -q {1}",
    )
    for command in commands:
        subprocess.run(command.format(tmp_path / "main", tmp_path / "tree").split(), check=True)
    monkeypatch.chdir(tmp_path / "tree")
    assert cache.root() == tmp_path / "main" / ".cache" / "eadpr"


def test_experiments_in_a_copy_of_the_tree_keep_their_work_with_the_repository(tmp_path, monkeypatch):
    copy = tmp_path / "main" / ".dvc" / "tmp" / "exps" / "standalone" / "tmp1"
    for folder in (tmp_path / "main", copy):
        subprocess.run(["git", "init", "-q", folder], check=True)
    monkeypatch.chdir(copy)
    assert cache.root() == tmp_path / "main" / ".cache" / "eadpr"


@pytest.mark.parametrize("path", [None, ""])
def test_in_the_working_folder_without_a_repository_or_without_git(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    if path is not None:
        monkeypatch.setenv("PATH", path)
    assert cache.root() == tmp_path / ".cache" / "eadpr"


def test_the_hash_of_code_is_of_a_module_and_what_it_imports_of_eadpr():
    listed = stage_code.listed(Path(cache.__file__), Path(stage_code.__file__).parents[2])
    assert "files.py" in listed
    assert cache.code(cache.__file__) == cache.fingerprint(listed) != cache.code(stage_code.__file__)
