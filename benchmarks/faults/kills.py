"""Stages and whole runs of the toy, killed, stopped and interrupted; then run again, which must end as if nothing had
happened. Stages are also killed within a call that renames, flushes or removes a file."""

import functools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.faults import toy
from benchmarks.faults.counts import TRACEBACK, Count, Outcome, Tally, refused
from benchmarks.faults.hooked import Fault
from benchmarks.faults.toy import Bench, Ended, Stage, State
from tests.repository import ROOT
from tests.small_pipeline import Project

KILL, TERM, INT, STOP, CONT = (getattr(signal, f"SIG{name}") for name in ("KILL", "TERM", "INT", "STOP", "CONT"))
# How often each stage is disturbed in each way, and whole runs are in all.
TIMES = {"kill -9 at a call": 6, "kill -9 at any moment": 2, "SIGTERM": 1, "Ctrl-C": 1, "stopped beside a rerun": 1}
WHOLE = ("group", "stage", "dvc", "SIGTERM to dvc", "Ctrl-C to the group", "stopped, then the group")
RUNS = 24
# What docs/howto/killed-runs.md says to do, by a word of DVC's message.
REMEDIES = {
    "RWLock": ("make", "-f", ROOT / "Makefile", "unlock"), "dvc.lock": ("git", "checkout", "dvc.lock"),
}  # fmt: skip
Ending = tuple[Outcome, str]


class Undisturbed(NamedTuple):
    outs: State
    names: set[str]
    calls: list[str]
    seconds: float


def run(seed: int, folder: Path, share: float) -> list[Count]:
    project, other_project = toy.built(folder), toy.built(folder, seed=2)
    bench, random = Bench(project, folder / "bench-kills"), Random(seed)
    stages = [stage for stage in toy.stages(project) if not stage.name.endswith("@dpr")]
    trials = [(way, stage) for way, times in TIMES.items() for _ in range(times) for stage in stages]
    random.shuffle(trials)
    runs = [(f"dvc repro: {WHOLE[n % len(WHOLE)]}", random.choice(stages)) for n in range(RUNS)]
    reference = functools.cache(lambda name: undisturbed(bench, next(s for s in stages if s.name == name), project))
    tallies: dict[str, Tally] = {}
    for number, (way, stage) in enumerate(
        [*trials[: round(share * len(trials)) or 1], *runs[: round(share * len(runs)) or 1]]
    ):
        expected = reference(stage.name)
        if way.startswith("dvc repro"):
            outcome, note = whole_run(bench, stage, way, project, expected.seconds, random)
        else:
            bench.clear(stage, old=other_project if random.random() < 0.5 else None)
            outcome, note = disturbed(bench, stage, way, expected, random)
        bench.take(project, [*toy.ALL, ".dvc"] if outcome == "wrong" else stage.outs)
        tallies.setdefault(way, Tally(way)).add(outcome, f"seed {seed}, trial {number}: {stage.name}, {way}: {note}")
    return [tally.count() for _, tally in sorted(tallies.items())]


def undisturbed(bench: Bench, stage: Stage, project: Project) -> Undisturbed:
    bench.clear(stage)
    began = time.monotonic()
    ended = bench.run(stage, Fault(str(bench.calls)))
    seconds = time.monotonic() - began
    outs = bench.outs(stage.outs)
    if ended.code or outs != {name: toy.hashed(project.folder / name) for name in stage.outs}:
        raise RuntimeError(f"{stage.name} does not repeat undisturbed: {ended}")
    return Undisturbed(outs, bench.names(), toy.called(bench.calls)[1], seconds)


def disturbed(bench: Bench, stage: Stage, way: str, expected: Undisturbed, random: Random) -> Ending:
    number = {"SIGTERM": TERM, "Ctrl-C": INT, "stopped beside a rerun": STOP}.get(way, KILL)
    earlier = bench.outs(stage.outs)
    calls = way in ("kill -9 at a call", "stopped beside a rerun") or random.random() < 0.5
    if calls and way != "kill -9 at any moment":
        call, after = random.randint(1, len(expected.calls)), random.random() < 0.5
        process = bench.start(stage, Fault(str(bench.calls), call, after, number))
        note = f"{number.name} {'after' if after else 'before'} call {call}, {expected.calls[call - 1]}"
    else:
        moment = random.uniform(0, expected.seconds)
        process = bench.start(stage, Fault(str(bench.calls)))
        began, _ = toy.called(bench.calls)
        time.sleep(moment)
        toy.send(began, number)
        note = f"{number.name} after {moment:.2f} s"
    again = functools.partial(bench.run, stage)
    ended = rerun_beside(bench, stage, process, random) if number is STOP else bench.ended(process)
    return judged(bench, way, ended, again, expected, earlier, note)


def rerun_beside(bench: Bench, stage: Stage, stopped: subprocess.Popen, random: Random) -> Ended:
    """The stage is stopped, its rerun starts, then the first one goes on or is killed."""
    first, _ = toy.called(bench.calls)
    while stopped.poll() is None and state_of(first) != "T":
        time.sleep(0.01)
    log = bench.log.with_suffix(".rerun")
    rerun = bench.start(stage, log=log)
    while rerun.poll() is None and "waiting for it to end" not in log.read_text():
        time.sleep(0.01)
    for number in random.choice([(KILL,), (CONT,)]):
        toy.send(first, number)
    rerun_ended, ended = bench.ended(rerun, log), bench.ended(stopped)
    return rerun_ended if rerun_ended.code else Ended(ended.code, ended.output + rerun_ended.output)


def state_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


def judged(
    bench: Bench, way: str, ended: Ended, again: Callable[[], Ended], expected: Undisturbed, earlier: State, note: str
) -> Ending:
    """Return how it ended: after the fault nothing half-written has its final name; the rerun makes the undisturbed
    bytes and leaves nothing else behind."""
    if TRACEBACK in ended.output:
        return "traceback", f"{note}: {ended.output[-600:]}"
    for name, digest in bench.outs(expected.outs).items():
        if digest not in (None, earlier[name], expected.outs[name]):
            return "wrong", f"{note}: {name} is half-written"
    if ended.code == 0 and bench.outs(expected.outs) != expected.outs:
        return "wrong", f"{note}: it ended with 0 and without its outputs"
    if ended.code > 0 and way == "stopped beside a rerun" and refused(ended.output, list(expected.outs)) != "clear":
        return "unclear", f"{note}: {ended.output[-600:]}"
    rerun = again()
    if rerun.code:
        return "wrong", f"{note}: the rerun ended with {rerun.code}: {rerun.output[-600:]}"
    if bench.outs(expected.outs) != expected.outs:
        return "wrong", f"{note}: the rerun made other bytes"
    if leftovers := sorted(bench.names() - expected.names):
        return "wrong", f"{note}: left behind: {', '.join(leftovers[:5])}"
    return "right", note


def whole_run(bench: Bench, stage: Stage, way: str, project: Project, seconds: float, random: Random) -> Ending:
    """`dvc repro` of one stage is killed within a pipeline that is done otherwise; the next `dvc repro` is of all, and
    runs that stage."""
    bench.take(project, [*toy.ALL, ".cache", ".dvc"])
    toy.forget(bench, stage)
    names, most = bench.names(), 5 + 2 * seconds
    environment = bench.project.environment(forked=False, EADPR_CHECKPOINT_SECONDS="0")
    while True:
        with bench.log.open("w") as out:
            process = subprocess.Popen(
                ["dvc", "repro", "--force", "--single-item", stage.name], cwd=bench.folder, env=environment,
                stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        moment = random.uniform(0.2, most)
        time.sleep(moment)
        if process.poll() is None:
            break
        most /= 2  # it was done already
    signal_run(process.pid, way, bench.folder)
    note = f"after {moment:.2f} s"
    ended = bench.ended(process)
    if TRACEBACK in ended.output:
        return "traceback", f"{note}: {ended.output[-600:]}"
    rerun, mended = toy.repro(bench), ""
    for said_by_dvc, remedy in REMEDIES.items():
        if rerun.code and said_by_dvc in rerun.output:
            time.sleep(4)  # `make unlock` leaves a file that is new
            subprocess.run(remedy, cwd=bench.folder, check=True, capture_output=True)
            rerun, mended = toy.repro(bench), " ".join(map(str, remedy))
    if rerun.code:
        return "wrong", f"{note}: the rerun ended with {rerun.code}: {rerun.output[-600:]}"
    if f"Stage '{stage.name}' is cached" in rerun.output:  # put back by DVC: what was killed is tidied up when it runs
        bench.project.dvc("repro", "--force", "--single-item", stage.name)
    began = time.monotonic()
    while orphans := toy.within(bench.folder):
        if time.monotonic() - began > toy.LONGEST:
            return "wrong", f"{note}: processes {orphans} still run"
        time.sleep(0.1)
    if changes := toy.unlike(bench):
        return "wrong", f"{note}: the rerun made other bytes: {changes}"
    if leftovers := sorted(bench.names() - names):
        return "wrong", f"{note}: left behind: {', '.join(leftovers[:5])}"
    return ("clear" if mended else "right"), f"{note} {mended}"


def signal_run(dvc: int, way: str, folder: Path) -> None:
    how = way.removeprefix("dvc repro: ")
    stage = [process for process in toy.within(folder) if process != dvc and os.getpgid(process) == dvc]
    if how == "stage":
        for process in stage or [dvc]:
            toy.send(process, KILL)
    elif how in ("dvc", "SIGTERM to dvc"):
        os.kill(dvc, KILL if how == "dvc" else TERM)
    else:
        signals: dict[str, Sequence[signal.Signals]] = {
            "Ctrl-C to the group": [INT], "stopped, then the group": [STOP, KILL]
        }  # fmt: skip
        for number in signals.get(how, [KILL]):
            os.killpg(dvc, number)
            time.sleep(0.2)
