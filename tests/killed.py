"""A stage that dies and is run again: a training at a step, a reading within a shard."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eadpr.readers import answer
from eadpr.runtime import cache, files
from eadpr.storage import tables
from eadpr.training import loop
from eadpr.training.state import NAME


class Killed(Exception):
    pass


def assert_goes_on(
    train: Callable[[Path], object], kind: str, *, at: int, steps: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`train(out)` dies in step `at` (from 1) before its update; run again it takes only the steps from there, writes
    the bytes of an undisturbed one and leaves no checkpoint. `kind` is the folder of the cache."""
    monkeypatch.setenv("EADPR_CHECKPOINT_SECONDS", "0")
    train(folder / "whole")

    def dying(values, step, **_):
        if step == at:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(loop, "check_finite", dying)
        with pytest.raises(Killed):
            train(folder / "again")
    assert not (folder / "again").exists()
    assert len(list(cache.root().glob(f"{kind}/*/{NAME}"))) == (at > 1)
    steps_taken = []

    def noted(seed, step, inner=loop.step_seed):
        steps_taken.append(step)
        return inner(seed, step)

    monkeypatch.setattr(loop, "step_seed", noted)
    train(folder / "again")
    assert steps_taken == list(range(at - 1, steps))
    assert files.tree_sha256(folder / "again") == files.tree_sha256(folder / "whole")
    assert not list(cache.root().glob(f"{kind}/*/{NAME}"))


def scramble(path: Path) -> None:
    """Damage a file as a bad disk does, at the same length."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut_off(path: Path) -> None:
    """Cut a file in half, as a power cut may."""
    os.truncate(path, path.stat().st_size // 2)


def assert_shards_go_on(
    write: Callable[[Path], object], kind: str, *, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`write(out)`, with shards of two questions, dies in the second shard; run again it makes the shards from there
    alone, writes the bytes of an undisturbed one and leaves no shard. `kind` is the folder of the cache."""
    (folder / "again").mkdir()
    die_in_second_shard(lambda: write(folder / "again"), monkeypatch)
    assert not list((folder / "again").iterdir())
    assert [path.name for path in cache.root().glob(f"{kind}/*/*.parquet")] == ["000000.parquet"]
    shards = made_shards(lambda: write(folder / "again"), monkeypatch)
    assert len(shards) > 1
    assert shards == [f"{number:06d}.parquet" for number in range(1, len(shards) + 1)]
    assert not list(cache.root().glob(f"{kind}/*/*.parquet"))
    assert made_shards(lambda: write(folder / "whole"), monkeypatch) == ["000000.parquet", *shards]
    assert files.tree_sha256(folder / "again") == files.tree_sha256(folder / "whole")


def die_in_second_shard(write: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill `write` in its second shard; from now on a shard is two questions."""
    monkeypatch.setattr(answer, "SHARD", 2)

    def dying(path, record, rows, inner=tables.write):
        if path.name == "000001.parquet":
            next(iter(rows))
            path.with_name(f".{path.name}.{os.getpid()}.tmp").write_bytes(b"half")  # what SIGKILL leaves
            raise Killed
        return inner(path, record, rows)

    with monkeypatch.context() as patch:
        patch.setattr(tables, "write", dying)
        with pytest.raises(Killed):
            write()


def made_shards(write: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the shards that `write` makes."""
    names = []

    def noted(path, record, rows, inner=tables.write):
        if path.is_relative_to(cache.root()):
            names.append(path.name)
        return inner(path, record, rows)

    with monkeypatch.context() as patch:
        patch.setattr(tables, "write", noted)
        write()
    return names
