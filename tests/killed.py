"""A training that dies at a step and is run again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eadpr import cache, files
from eadpr.training import loop
from eadpr.training.checkpoint import NAME


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
    taken = []

    def noted(seed, step, inner=loop.step_seed):
        taken.append(step)
        return inner(seed, step)

    monkeypatch.setattr(loop, "step_seed", noted)
    train(folder / "again")
    assert taken == list(range(at - 1, steps))
    assert files.tree_sha256(folder / "again") == files.tree_sha256(folder / "whole")
    assert not list(cache.root().glob(f"{kind}/*/{NAME}"))
