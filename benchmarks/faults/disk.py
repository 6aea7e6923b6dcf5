"""Stages of the toy where they find no room, may not write or read, or stand in surroundings of another kind."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from benchmarks.faults import toy
from benchmarks.faults.counts import Count, Outcome, Tally, refused
from benchmarks.faults.toy import Bench, Ended, Stage, State
from tests.repository import stage_paths

PAGE = 4096  # bytes: what the disk in memory counts in
ROOMY = {"size": 2**26, "nr_inodes": 10_000}
# Root may write and read what it owns only where the mode says so, as everybody else.
BOUND = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"] * (os.geteuid() == 0) or ["env"]
SURROUNDINGS = {
    "HOME unset": ["env", "-u", "HOME"],
    "locale C": ["env", "LC_ALL=C", "PYTHONUTF8=0", "PYTHONCOERCECLOCALE=0"],
    "umask 077": ["sh", "-c", 'umask 077; exec "$@"', "sh"],
    "a path with spaces": ["env"],
    "a clock that jumps": ["env"],
}
FAR = (4_102_444_800, -1)  # seconds since 1970: files of the year 2100, and of 1969
Trial = Callable[[Stage, Random], tuple[Outcome, str]]


def run(seed: int, folder: Path, share: float) -> list[Count]:
    project = toy.built(folder)
    bench, spaced = (Bench(project, folder / name) for name in ("bench-disk", "bench in a path with spaces"))
    stages = [stage for stage in toy.stages(project) if not stage.name.endswith("@dpr")]
    writes = [stage for stage in stages if stage.name != "configs"]  # which writes where params.yaml says
    trials: dict[str, tuple[list[Stage], Trial]] = {}
    if can_mount(folder):
        for name in ("size", "nr_inodes", "read-only"):
            trials[f"disk: {name}"] = writes, lambda *of, name=name: no_room(bench, name, *of)
    for name in ("folder of outputs", "cache", "inputs"):
        trials[f"no permission: {name}"] = writes, lambda *of, name=name: no_permission(bench, name, *of)
    for name, before in SURROUNDINGS.items():
        where = spaced if "spaces" in name else bench
        trials[name] = stages, lambda *of, where=where, before=before: elsewhere(where, before, *of)
    made = []
    for kind, (of, trial) in trials.items():
        tally, random = Tally(kind), Random(f"{seed} {kind}")
        if kind == "a clock that jumps":
            for number, path in enumerate(sorted((bench.folder / "data").rglob("*"))):
                os.utime(path, (FAR[number % 2], FAR[number % 2]))
        for stage in random.sample(of, round(share * len(of)) or 1):
            outcome, said = trial(stage, random)
            tally.add(outcome, f"seed {seed}: {stage.name}: {said}")
            bench.take(project, stage.outs)
        made.append(tally.count())
    return made


@contextmanager
def mounted(folder: Path, **options: int) -> Iterator[None]:
    """A disk in memory."""
    folder.mkdir(exist_ok=True)
    given = ",".join(f"{name}={value}" for name, value in options.items())
    subprocess.run(["mount", "-t", "tmpfs", "-o", given, "tmpfs", folder], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def can_mount(folder: Path) -> bool:
    try:
        with mounted(folder / "small", **ROOMY):
            return True
    except (OSError, subprocess.CalledProcessError):
        print("disk: no mounts for this user; `unshare --map-root-user --mount` allows them", file=sys.stderr)
        return False


def no_room(bench: Bench, name: str, stage: Stage, random: Random) -> tuple[Outcome, str]:
    """Outputs, kept work and temporary files lie on a disk with part of the room that they take; then it gets more."""
    small = bench.folder / "small"
    within = writing_into(small, stage)
    given = {"EADPR_CACHE": str(small / "cache"), "TMPDIR": str(small / "tmp")}
    bench.clear(stage)
    with mounted(small, **ROOMY):
        (small / "tmp").mkdir()
        bench.run(within, **given)
        whole = bench.outs(within.outs)
        taken = [path.lstat() for path in small.rglob("*")]
    needs = {"size": sum(-(-one.st_size // PAGE) * PAGE for one in taken), "nr_inodes": len(taken) + 1}
    at = max(2, round(random.uniform(0.05, 0.95) * needs.get(name, 0)))
    if name == "size":
        at = max(1, at // PAGE) * PAGE
    less = ROOMY | ({name: at} if name in needs else {})
    with mounted(small, **less):
        if name == "read-only":
            remount(small, "ro")
        ended = bench.run(within, **(given if name != "read-only" else {}))
        said = f"{name} {at} of {needs.get(name, 0)}"
        if found := unexpected(bench, ended, whole, said, ["small/"]):
            return found
        remount(small, "rw", *(f"{option}={value}" for option, value in ROOMY.items()))
        (small / "tmp").mkdir(exist_ok=True)
        return after(bench, within, whole, ended, said, **given)


def after(bench: Bench, stage: Stage, whole: State, ended: Ended, said: str, **environment: str) -> tuple[Outcome, str]:
    """Once the stage may write again."""
    again = bench.run(stage, **environment)
    if again.code or bench.outs(stage.outs) != whole:
        return "wrong", f"{said}: not the same bytes afterwards: {again.said[-400:]}"
    if left := bench.left():
        return "wrong", f"{said}: left behind: {', '.join(left[:5])}"
    return ("clear" if ended.code else "right"), said


def unexpected(bench: Bench, ended: Ended, whole: State, said: str, names: list[str]) -> tuple[Outcome, str] | None:
    """Where a fault ended in anything but whole outputs or a clear message and none of its own."""
    outs = bench.outs(whole)
    if any(found not in (None, whole[name]) for name, found in outs.items()):
        return "wrong", f"{said}: half-written: {ended.said[-400:]}"
    if ended.code == 0:
        return None if outs == whole else ("wrong", f"{said}: it ended with 0 and without its outputs")
    how = refused(ended.said, names)
    return None if how == "clear" else (how, f"{said}: {ended.said[-600:]}")


def writing_into(folder: Path, stage: Stage) -> Stage:
    paths = stage_paths(shlex.join(["-m", *stage.words]))
    outs = {name: str(path) for name, path in paths.items() if str(path) in stage.outs}
    words = [*stage.words, *(word for name, out in outs.items() for word in (f"--{name}", str(folder / out)))]
    return Stage(stage.name, words, stage.reads, [f"{folder.name}/{out}" for out in stage.outs])


def remount(folder: Path, *options: str) -> None:
    subprocess.run(["mount", "-o", ",".join(["remount", *options]), folder], check=True)


def no_permission(bench: Bench, name: str, stage: Stage, random: Random) -> tuple[Outcome, str]:
    bench.clear(stage)
    (bench.folder / ".cache" / "eadpr").mkdir(parents=True)
    shut = bench.folder / {"folder of outputs": Path(stage.outs[0]).parent, "cache": ".cache/eadpr"}.get(name, "")
    if name == "inputs":
        readable = [path for read in stage.reads for path in toy.parts(bench.folder / read) if "code" not in path.parts]
        shut = random.choice(readable)
    mode = shut.stat().st_mode
    whole = {out: toy.hashed(bench.built / out) for out in stage.outs}
    shut.chmod(0o000 if name == "inputs" else 0o555)
    ended = bench.run(stage, before=BOUND)
    shut.chmod(mode)
    said = str(shut.relative_to(bench.folder))
    found = unexpected(bench, ended, whole, said, [said, shut.name])
    return found or after(bench, stage, whole, ended, said)


def elsewhere(bench: Bench, before: list[str], stage: Stage, random: Random) -> tuple[Outcome, str]:
    bench.clear(stage)
    ended = bench.run(stage, before=before)
    if ended.code:
        return refused(ended.said, stage.reads), ended.said[-600:]
    same = bench.outs(stage.outs) == {out: toy.hashed(bench.built / out) for out in stage.outs}
    left = bench.left()
    return ("right", "") if same and not left else ("wrong", f"other bytes or left behind: {left}")
