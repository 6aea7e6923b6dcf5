"""Files and folders are written whole or not at all; JSON, hashes and config files."""

import hashlib
import os
import subprocess

import pytest

from eadpr.runtime import files
from eadpr.runtime import section as config
from eadpr.storage import tables
from eadpr.storage.records import Ranked


def write_folder(path, **contents):
    with files.new_folder(path) as folder:
        for name, text in contents.items():
            (folder / name).write_text(text)


def test_a_new_folder_replaces_the_old_one_whole_or_not_at_all(tmp_path):
    target = tmp_path / "out"
    write_folder(target, a="old")

    def fail() -> None:
        with files.new_folder(target) as folder:
            (folder / "a").write_text("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert ((target / "a").read_text(), list(tmp_path.iterdir())) == ("old", [target])
    write_folder(target, b="new")
    assert [path.name for path in target.iterdir()] == ["b"]


def test_an_earlier_folder_is_removed_whole(tmp_path, monkeypatch):
    """A kill at any of its files leaves no part of it under its name."""
    target, seen = tmp_path / "out", set()
    write_folder(target, a="old", b="old")

    def unlink_and_look(*arguments, unlink=os.unlink, **options):
        unlink(*arguments, **options)
        seen.add("".join(sorted(path.name for path in target.iterdir())) if target.exists() else "")

    monkeypatch.setattr(os, "unlink", unlink_and_look)
    write_folder(target, c="new")
    assert seen <= {"", "ab", "c"}
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "c"]


def test_leftovers_of_killed_processes_are_cleared_and_those_of_running_ones_stay(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    running = subprocess.Popen(["sleep", "60"])
    try:
        leftovers = {process: tmp_path / f".out.{process.pid}.tmp" for process in (ended, running)}
        for folder in leftovers.values():
            folder.mkdir()
        (tmp_path / ".out.json.1.tmp").write_text("of another output")
        write_folder(tmp_path / "out", a="1")
        assert [leftovers[ended].exists(), leftovers[running].exists()] == [False, True]
        assert (tmp_path / ".out.json.1.tmp").exists()
        assert running.poll() is None, "it was signalled"
    finally:
        running.kill()
        running.wait()


def test_everything_is_synced_before_it_takes_its_name(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    with files.new_folder(tmp_path / "out") as folder:
        (folder / "part").mkdir()
        (folder / "part" / "a").write_text("1")
    assert synced == [f"{folder}/part", f"{folder}/part/a", str(folder), str(tmp_path)]


def test_a_folder_that_cannot_be_replaced_is_restored(tmp_path, monkeypatch):
    """So is one that a kill between the two renames left, when the next process writes."""
    write_folder(tmp_path / "made", one="1")
    replace = os.replace

    def fail(source, target):
        if target == tmp_path / "made" and ".earlier." not in source.name:
            raise OSError("no")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match=r"^no$"):
            write_folder(tmp_path / "made")
    assert (tmp_path / "made" / "one").read_text() == "1"
    replace(tmp_path / "made", tmp_path / ".made.earlier.999999999.tmp")
    with pytest.raises(ZeroDivisionError), files.new_folder(tmp_path / "made"):
        _ = 1 / 0
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["made", "made/one"]


@pytest.mark.parametrize("write", [
    lambda path: files.write_json(path, {"a": 1}),
    lambda path: tables.write(path, Ranked, [Ranked("q", "p", 1, 0.5)]),
])  # fmt: skip
def test_on_a_full_disk_the_file_is_named_and_the_earlier_one_stays(tmp_path, monkeypatch, write):
    """The temporary file is a link to /dev/full, which refuses every byte."""
    path, discard = tmp_path / "out", files.discard
    path.write_text("old")
    monkeypatch.setattr(files, "discard", lambda temporary: discard(temporary) or temporary.symlink_to("/dev/full"))
    with pytest.raises(OSError, match=r"No space left on device: '.*/out'"):
        write(path)
    assert path.read_text() == "old"


def test_json_is_canonical_and_refuses_nan(tmp_path):
    path = tmp_path / "a.json"
    files.write_json(path, {"b": 1, "a": "é"})
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(path, {"a": float("nan")})
    assert path.read_bytes() == '{\n  "a": "é",\n  "b": 1\n}\n'.encode()


def test_tree_hash_covers_sorted_names_and_contents(tmp_path):
    (tmp_path / "a").mkdir()
    for name in ("a/x", *map(str, range(12))):
        (tmp_path / name).write_text(name)
    hashes = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("a/x", *map(str, range(12)))}
    lines = "".join(f"{name}\0{hashes[name]}\n" for name in sorted(hashes))
    assert files.tree_sha256(tmp_path) == hashlib.sha256(lines.encode()).hexdigest()


class Settled(config.Section):
    depth: int


@pytest.mark.parametrize(("text", "message"), [
    ('{"bm25": {"depth": 1', "is not JSON"),
    ('{"bm25": {}}', "bm25.depth: Field required"),
    ('{"bm25": {"depth": "1"}}', "bm25.depth: Input should be a valid integer"),
    ("{}", r"holds \[\], expected \['bm25'\]"),
])  # fmt: skip
def test_a_damaged_config_file_is_named_in_one_line(tmp_path, text, message):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"^[^\n]*config\.json:? {message}[^\n]*run `dvc repro[^\n]*$"):
        config.read(path, bm25=Settled)


def test_json_without_a_key_is_named(tmp_path):
    files.write_json(tmp_path / "vectors.json", {"rows": 3})
    with pytest.raises(ValueError, match=r"vectors\.json has no 'dim'"):
        files.read_json(tmp_path / "vectors.json", "rows", "dim")
