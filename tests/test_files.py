import errno
import hashlib
import os
import resource
import shutil
import subprocess
import sys

import pytest

from eadpr.runtime import cache, files
from eadpr.runtime import section as config
from eadpr.runtime.files import new_folder
from eadpr.storage import tables
from eadpr.storage.records import Ranked
from tests.killed import cut_off, scramble


def test_a_new_folder_replaces_the_old_one_whole_or_not_at_all(tmp_path):
    target = tmp_path / "out"
    with files.new_folder(target) as folder:
        (folder / "a").write_text("old")

    def broken() -> None:
        with files.new_folder(target) as folder:
            (folder / "a").write_text("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert ((target / "a").read_text(), list(tmp_path.iterdir())) == ("old", [target])
    for name in ("first", "second"):
        with files.new_folder(tmp_path / "out") as folder:
            (folder / name).write_text("x")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["second"]


def test_an_earlier_folder_is_taken_away_whole(tmp_path, monkeypatch):
    """A kill at any of its files leaves no part of it under its name."""
    target, seen = tmp_path / "out", set()
    with files.new_folder(target) as folder:
        for name in "ab":
            (folder / name).write_text("old")

    def noting(*given, unlink=os.unlink, **options):
        unlink(*given, **options)
        seen.add("".join(sorted(path.name for path in target.iterdir())) if target.exists() else "")

    monkeypatch.setattr(os, "unlink", noting)
    with files.new_folder(target) as folder:
        (folder / "c").write_text("new")
    assert seen <= {"", "ab", "c"}
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "c"]


def on_a_full_disk(path, write) -> OSError:
    """What `write` to `path` raises where the kernel refuses every byte; the earlier file must stay as it was."""
    path.write_text("old")
    with pytest.MonkeyPatch.context() as patch:
        discard = files.discard
        patch.setattr(files, "discard", lambda temporary: discard(temporary) or temporary.symlink_to("/dev/full"))
        with pytest.raises(OSError, match=r"no space left on the disk; free some and run again: '.*/out'") as raised:
            write()
    discard(path.with_name(f".out.{os.getpid()}.tmp"))
    assert (path.read_text(), raised.value.errno) == ("old", errno.ENOSPC)
    return raised.value


def test_what_killed_processes_left_is_cleared_and_a_running_ones_stays(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    twin = subprocess.Popen(["sleep", "60"])
    try:
        of = {who: tmp_path / f".out.{who.pid}.tmp" for who in (ended, twin)}
        for folder in of.values():
            folder.mkdir()
            (folder / "half").write_text("x")
        (tmp_path / ".out.json.1.tmp").write_text("of another output")
        with new_folder(tmp_path / "out") as folder:
            (folder / "a").write_text("1")
        assert not of[ended].exists()
        assert (of[twin] / "half").exists()
        assert (tmp_path / ".out.json.1.tmp").exists()
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["a"]
        assert twin.poll() is None, "looked for, and left alone"
    finally:
        twin.kill()
        twin.wait()


def test_all_is_on_the_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda opened: synced.append(os.readlink(f"/proc/self/fd/{opened}")))
    with new_folder(tmp_path / "out") as folder:
        (folder / "part").mkdir()
        (folder / "part" / "a").write_text("1")
    assert synced == [f"{folder}/part", f"{folder}/part/a", str(folder), str(tmp_path)]


def test_a_folder_that_cannot_be_replaced_is_put_back(tmp_path, monkeypatch):
    """As after a kill between the two renames, which the next writer finds."""
    with files.new_folder(tmp_path / "made") as folder:
        (folder / "one").write_text("1")
    replace = os.replace

    def failing(source, target):
        if target == tmp_path / "made" and ".earlier." not in source.name:
            raise OSError("no")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing)
        with pytest.raises(OSError, match="no"), files.new_folder(tmp_path / "made"):
            pass
    assert (tmp_path / "made" / "one").read_text() == "1"
    replace(tmp_path / "made", tmp_path / ".made.earlier.999999999.tmp")
    with pytest.raises(ZeroDivisionError), files.new_folder(tmp_path / "made"):
        _ = 1 / 0
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["made", "made/one"]


def test_a_full_disk_is_said_and_the_earlier_file_stays(tmp_path):
    path = tmp_path / "out"
    on_a_full_disk(path, lambda: files.write_json(path, {"a": 1}))
    on_a_full_disk(path, lambda: tables.write(path, Ranked, [Ranked("q", "p", 1, 0.5)]))


def test_a_full_disk_within_a_folder_leaves_the_earlier_one_and_names_the_file(tmp_path):
    """The limit on the size of a file stands for the full disk; the kernel refuses what is beyond it."""
    with files.new_folder(tmp_path / "out") as folder:
        (folder / "a").write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with (
            pytest.raises(OSError, match=r"no space left on the disk; free .*b\.json'$"),
            files.new_folder(tmp_path / "out") as folder,
        ):
            files.write_json(folder / "b.json", ["x" * 2000])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [p.read_text() for p in tmp_path.rglob("*") if p.is_file()] == ["old"]


@pytest.mark.parametrize(("error", "free", "said"), [
    (RuntimeError("I/O error: No space left on device"), 10**9, True),  # safetensors, FAISS
    (RuntimeError("unexpected pos 576 vs 534"), 0, True),  # torch
    (RuntimeError("shapes differ"), 10**9, False),
    (ValueError("row 3: text is empty"), 0, False),
    (OSError(errno.ENOSPC, "stopped after 3 bytes", "partial"), 0, False),  # names its file and what to do
])  # fmt: skip
def test_what_is_taken_for_a_full_disk(tmp_path, monkeypatch, error, free, said):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))
    with pytest.raises(Exception) as raised, files.replacing(tmp_path / "out"):  # noqa: PT011
        raise error
    assert ("no space left on the disk" in str(raised.value)) is said
    assert said or raised.value is error


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


def test_tree_hash_is_that_of_sorted_names(tmp_path):
    for name in map(str, range(30)):
        (tmp_path / name).write_text(name)
    hashes = {str(n): hashlib.sha256(str(n).encode()).hexdigest() for n in range(30)}
    lines = "".join(f"{name}\0{hashes[name]}\n" for name in sorted(hashes))
    assert files.tree_sha256(tmp_path) == hashlib.sha256(lines.encode()).hexdigest()


def test_a_workspace_is_held_by_one_process_and_the_next_says_that_it_waits(tmp_path, monkeypatch):
    monkeypatch.setenv("EADPR_CACHE", str(tmp_path))
    code = "from eadpr.runtime import cache\nwith cache.workspace('train', 'k') as folder: print(*folder.iterdir())"
    with cache.workspace("train", "k") as folder:
        assert folder == tmp_path / "train" / "k"
        pipe = subprocess.PIPE
        other = subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True)
        assert other.stderr.readline() == f"{folder} is in use by process {os.getpid()}; waiting for it to end\n"
        assert other.poll() is None
        files.discard(folder)
    assert other.wait() == 0
    assert other.stdout.read() == "\n", "a folder that is there, and empty"
    other.stdout.close()
    other.stderr.close()


def test_the_cache_is_its_owners_alone_unless_it_was_made_otherwise(tmp_path, monkeypatch):
    monkeypatch.setenv("EADPR_CACHE", str(tmp_path / "a" / "cache"))
    assert cache.root().stat().st_mode & 0o777 == 0o700
    cache.root().chmod(0o770)
    assert cache.root().stat().st_mode & 0o777 == 0o770


@pytest.mark.parametrize("spoil", [cut_off, scramble])
def test_a_sealed_piece_is_intact_until_it_is_damaged_and_is_then_set_aside(tmp_path, capsys, spoil):
    piece = tmp_path / "000000.parquet"
    assert not cache.intact(piece)
    piece.write_bytes(bytes(range(200)))
    assert not cache.intact(piece), "not sealed: of a killed process"
    cache.seal(piece)
    assert cache.intact(piece)
    assert capsys.readouterr().err == ""
    spoil(piece)
    assert not cache.intact(piece)
    assert f"{piece} was damaged" in capsys.readouterr().err
    assert not piece.exists()
    assert (tmp_path / "000000.parquet.damaged").exists()


def test_fingerprints_depend_on_every_part():
    assert cache.fingerprint({"a": 1, "b": 2}) == cache.fingerprint({"b": 2, "a": 1})
    assert cache.fingerprint({"a": 1}, 2) != cache.fingerprint({"a": 1}, 3)


class Settled(config.Section):
    depth: int


@pytest.mark.parametrize(("text", "said"), [
    ('{"bm25": {"depth": 1', "config.json is not JSON .*; run `dvc repro` to make it anew"),
    ('{"bm25": {}}', "config.json: bm25.depth: Field required; run `dvc repro` to make it anew"),
    ('{"bm25": {"depth": "1"}}', "config.json: bm25.depth: Input should be a valid integer; run `dvc repro`"),
    ("{}", r"config.json holds \[\], expected \['bm25'\]; run `dvc repro configs`"),
])  # fmt: skip
def test_a_damaged_file_of_settings_is_named_in_one_line(tmp_path, text, said):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"^[^\n]*{said}[^\n]*$"):
        config.read(path, bm25=Settled)


def test_json_without_a_key_is_named(tmp_path):
    files.write_json(tmp_path / "vectors.json", {"rows": 3})
    with pytest.raises(ValueError, match=r"vectors\.json has no 'dim'; run `dvc repro` to make it anew"):
        files.read_json(tmp_path / "vectors.json", "rows", "dim")
