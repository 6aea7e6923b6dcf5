from __future__ import annotations

import subprocess
import sys

import pytest

from eadpr import cache, files


def test_a_failed_write_leaves_the_old_folder_and_no_trace(tmp_path):
    target = tmp_path / "out"
    with files.new_folder(target) as folder:
        (folder / "a").write_text("old")

    def broken() -> None:
        with files.new_folder(target) as folder:
            (folder / "a").write_text("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert (target / "a").read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_new_folder_replaces_the_old_one_whole(tmp_path):
    for name in ("first", "second"):
        with files.new_folder(tmp_path / "out") as folder:
            (folder / name).write_text("x")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["second"]


def test_json_is_canonical_and_refuses_nan(tmp_path):
    files.write_json(tmp_path / "a.json", {"b": 1, "a": "é"})
    assert (tmp_path / "a.json").read_bytes() == '{\n  "a": "é",\n  "b": 1\n}\n'.encode()
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(tmp_path / "a.json", {"a": float("nan")})
    assert "é" in (tmp_path / "a.json").read_text(encoding="utf-8")


def test_tree_hash_sees_names_and_contents(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("1")
    first = files.tree_sha256(tmp_path)
    (tmp_path / "a" / "x").rename(tmp_path / "a" / "y")
    assert files.tree_sha256(tmp_path) != first


def test_a_workspace_is_held_by_one_process(tmp_path, monkeypatch):
    monkeypatch.setenv("EADPR_CACHE", str(tmp_path))
    code = "from eadpr import cache\nwith cache.workspace('train', 'k'): pass"
    with cache.workspace("train", "k") as folder:
        assert folder == tmp_path / "train" / "k"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert other.returncode == 1
        assert "in use by another process" in other.stderr
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_fingerprints_depend_on_every_part():
    assert cache.fingerprint({"a": 1, "b": 2}) == cache.fingerprint({"b": 2, "a": 1})
    assert cache.fingerprint({"a": 1}, 2) != cache.fingerprint({"a": 1}, 3)
