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
            trials[f"disk: {name}"] = writes, lambda *args, name=name: no_room(bench, name, *args)
    for name in ("folder of outputs", "cache", "inputs"):
        trials[f"no permission: {name}"] = writes, lambda *args, name=name: no_permission(bench, name, *args)
    for name, prefix in SURROUNDINGS.items():
        where = spaced if "spaces" in name else bench
        trials[name] = stages, lambda *args, where=where, prefix=prefix: elsewhere(where, prefix, *args)
    counts = []
    for kind, (eligible, trial) in trials.items():
        tally, random = Tally(kind), Random(f"{seed} {kind}")
        if kind == "a clock that jumps":
            for number, path in enumerate(sorted((bench.folder / "data").rglob("*"))):
                os.utime(path, (FAR[number % 2], FAR[number % 2]))
        for stage in random.sample(eligible, round(share * len(eligible)) or 1):
            outcome, note = trial(stage, random)
            tally.add(outcome, f"seed {seed}: {stage.name}: {note}")
            bench.take(project, stage.outs)
        counts.append(tally.count())
    return counts


@contextmanager
def mounted(folder: Path, **options: int) -> Iterator[None]:
    """A disk in memory."""
    folder.mkdir(exist_ok=True)
    option_text = ",".join(f"{name}={value}" for name, value in options.items())
    subprocess.run(["mount", "-t", "tmpfs", "-o", option_text, "tmpfs", folder], check=True, capture_output=True)
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
    environment = {"EADPR_CACHE": str(small / "cache"), "TMPDIR": str(small / "tmp")}
    bench.clear(stage)
    with mounted(small, **ROOMY):
        (small / "tmp").mkdir()
        bench.run(within, **environment)
        expected = bench.outs(within.outs)
        stats = [path.lstat() for path in small.rglob("*")]
    needs = {"size": sum(-(-stat.st_size // PAGE) * PAGE for stat in stats), "nr_inodes": len(stats) + 1}
    limit = max(2, round(random.uniform(0.05, 0.95) * needs.get(name, 0)))
    if name == "size":
        limit = max(1, limit // PAGE) * PAGE
    less = ROOMY | ({name: limit} if name in needs else {})
    with mounted(small, **less):
        if name == "read-only":
            remount(small, "ro")
        ended = bench.run(within, **(environment if name != "read-only" else {}))
        note = f"{name} {limit} of {needs.get(name, 0)}"
        if failure := unexpected(bench, ended, expected, note, ["small/"]):
            return failure
        remount(small, "rw", *(f"{option}={value}" for option, value in ROOMY.items()))
        (small / "tmp").mkdir(exist_ok=True)
        return after(bench, within, expected, ended, note, **environment)


def after(bench: Bench, stage: Stage, expected: State, ended: Ended, note: str, **env: str) -> tuple[Outcome, str]:
    """Once the stage may write again."""
    again = bench.run(stage, **env)
    if again.code or bench.outs(stage.outs) != expected:
        return "wrong", f"{note}: not the same bytes afterwards: {again.output[-400:]}"
    if leftovers := bench.leftovers():
        return "wrong", f"{note}: left behind: {', '.join(leftovers[:5])}"
    return ("clear" if ended.code else "right"), note


def unexpected(bench: Bench, ended: Ended, expected: State, note: str, names: list[str]) -> tuple[Outcome, str] | None:
    """Return how a fault ended, if not in whole outputs nor in a clear message and no outputs."""
    outs = bench.outs(expected)
    if any(digest not in (None, expected[name]) for name, digest in outs.items()):
        return "wrong", f"{note}: half-written: {ended.output[-400:]}"
    if ended.code == 0:
        return None if outs == expected else ("wrong", f"{note}: it ended with 0 and without its outputs")
    how = refused(ended.output, names)
    return None if how == "clear" else (how, f"{note}: {ended.output[-600:]}")


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
    expected = {out: toy.hashed(bench.built / out) for out in stage.outs}
    shut.chmod(0o000 if name == "inputs" else 0o555)
    ended = bench.run(stage, prefix=BOUND)
    shut.chmod(mode)
    note = str(shut.relative_to(bench.folder))
    failure = unexpected(bench, ended, expected, note, [note, shut.name])
    return failure or after(bench, stage, expected, ended, note)


def elsewhere(bench: Bench, prefix: list[str], stage: Stage, random: Random) -> tuple[Outcome, str]:
    bench.clear(stage)
    ended = bench.run(stage, prefix=prefix)
    if ended.code:
        return refused(ended.output, stage.reads), ended.output[-600:]
    same = bench.outs(stage.outs) == {out: toy.hashed(bench.built / out) for out in stage.outs}
    leftovers = bench.leftovers()
    return ("right", "") if same and not leftovers else ("wrong", f"other bytes or left behind: {leftovers}")
