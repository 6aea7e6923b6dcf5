"""The cache folder, its keys, locks and seals."""

import os
import subprocess
import sys

import pytest

from eadpr.runtime import cache, files
from tests.killed import cut_off, scramble


@pytest.fixture
def default(monkeypatch):
    monkeypatch.delenv("EADPR_CACHE")
    cache._default_root.cache_clear()
    yield
    cache._default_root.cache_clear()


@pytest.mark.usefixtures("default")
def test_the_default_is_in_the_folder_of_git_also_from_a_worktree(tmp_path, monkeypatch):
    commands = (
        "git init -q {0}",
        "git -C {0} -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
        "git -C {0} worktree add -q {1}",
    )
    for command in commands:
        subprocess.run(command.format(tmp_path / "main", tmp_path / "tree").split(), check=True)
    monkeypatch.chdir(tmp_path / "tree")
    assert cache.root() == tmp_path / "main" / ".cache" / "eadpr"


@pytest.mark.usefixtures("default")
def test_experiments_in_a_copy_of_the_tree_share_the_repositorys_cache(tmp_path, monkeypatch):
    copy = tmp_path / "main" / ".dvc" / "tmp" / "exps" / "standalone" / "tmp1"
    for folder in (tmp_path / "main", copy):
        subprocess.run(["git", "init", "-q", folder], check=True)
    monkeypatch.chdir(copy)
    assert cache.root() == tmp_path / "main" / ".cache" / "eadpr"


@pytest.mark.usefixtures("default")
@pytest.mark.parametrize("path", [None, ""])
def test_without_a_repository_or_git_it_is_in_the_working_folder(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    if path is not None:
        monkeypatch.setenv("PATH", path)
    assert cache.root() == tmp_path / ".cache" / "eadpr"


def test_it_belongs_to_its_owner_alone_unless_created_otherwise(tmp_path, monkeypatch):
    monkeypatch.setenv("EADPR_CACHE", str(tmp_path / "a" / "cache"))
    assert cache.root().stat().st_mode & 0o777 == 0o700
    cache.root().chmod(0o770)
    assert cache.root().stat().st_mode & 0o777 == 0o770


def test_fingerprints_depend_on_every_part():
    assert cache.fingerprint({"a": 1, "b": 2}) == cache.fingerprint({"b": 2, "a": 1})
    assert cache.fingerprint({"a": 1}, 2) != cache.fingerprint({"a": 1}, 3)


def test_a_workspace_is_locked_and_the_next_process_says_that_it_waits():
    code = "from eadpr.runtime import cache\nwith cache.workspace('train', 'k') as folder: print(*folder.iterdir())"
    with cache.workspace("train", "k") as folder:
        assert folder == cache.root() / "train" / "k"
        pipe = subprocess.PIPE
        waiting = subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True)
        assert waiting.stderr.readline() == f"{folder} is in use by process {os.getpid()}; waiting for it to end\n"
        assert waiting.poll() is None
        files.discard(folder)
    assert waiting.communicate()[0] == "\n", "the folder exists and is empty"
    assert waiting.returncode == 0


@pytest.mark.parametrize("spoil", [
    cut_off, scramble, lambda piece: piece.with_name(f"{piece.name}.sha256").write_bytes(b"\xa4"),
])  # fmt: skip
def test_a_sealed_piece_is_intact_until_it_is_damaged_and_then_set_aside(tmp_path, capsys, spoil):
    piece = tmp_path / "000000.parquet"
    assert not cache.intact(piece)
    piece.write_bytes(bytes(range(200)))
    assert not cache.intact(piece), "without a seal it comes from a killed process"
    cache.seal(piece)
    assert cache.intact(piece)
    assert capsys.readouterr().err == ""
    spoil(piece)
    assert not cache.intact(piece)
    assert f"{piece} was damaged" in capsys.readouterr().err
    assert not piece.exists()
    assert (tmp_path / "000000.parquet.damaged").exists()
