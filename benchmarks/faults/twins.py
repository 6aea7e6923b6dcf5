"""Two at once: in one clone, in two clones that share their caches, two studies, two workers of DVC's queue."""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from random import Random

from benchmarks.faults import toy
from benchmarks.faults.counts import TRACEBACK, Count, Outcome, Tally, refused
from benchmarks.faults.toy import Bench, Ended, Stage
from eadpr.runtime import files
from tests.small_pipeline import Project

ACTIVE = "{dpr: {negatives: bm25, init: base}}"
STUDIES = {
    name: f"{name}: {{about: A toy., seeds: [1], active: {ACTIVE}, settings: {{train: {{steps: {steps}}}}}}}\n"
    for name, steps in (("three", 3), ("five", 5))
}
LOCKED = ["lock", "waiting"]


def run(seed: int, folder: Path, share: float) -> list[Count]:
    project = toy.built(folder)
    first, second = (Bench(project, folder / f"bench-{name}") for name in ("first", "second"))
    stages = [stage for stage in toy.stages(project) if not stage.name.endswith("@dpr")]
    random = Random(seed)

    def counted(kind: str, trials: int, trial) -> Count:
        tally = Tally(kind)
        for number in range(round(share * trials) or 1):
            outcome, said = trial(number)
            tally.add(outcome, f"seed {seed}, trial {number}: {said}")
        return tally.count()

    order = random.sample(stages, len(stages))
    return [
        counted("one stage in two clones, one cache", len(stages), lambda n: in_two_clones([first, second], order[n])),
        counted("dvc repro twice in one clone", 6, lambda n: in_one_clone(first, order[n], random)),
        counted("dvc repro in two clones, caches shared", 6, lambda n: shared(project, folder, order[n])),
        counted("two studies in one clone", 2, lambda _: studies(project, folder, random)),
        counted("two workers of DVC's queue", 1, lambda _: queued(project, folder)),
    ]


def in_two_clones(benches: list[Bench], stage: Stage) -> tuple[Outcome, str]:
    for bench in benches:
        bench.clear(stage)
    cache = str(benches[0].folder / ".cache" / "eadpr")
    started = [(bench, bench.start(stage, EADPR_CACHE=cache)) for bench in benches]
    for bench, ended in [(bench, bench.ended(process)) for bench, process in started]:
        if ended.code:
            return refused(ended.said, stage.outs), f"{stage.name}: {ended.said[-600:]}"
        if bench.outs(stage.outs) != {name: toy.hashed(bench.built / name) for name in stage.outs} or bench.left():
            return "wrong", f"{stage.name}: other bytes or left behind: {bench.left()}"
    return "right", stage.name


def start(bench: Bench, *command: str, name: str, **environment: str) -> tuple[subprocess.Popen, Path]:
    log = bench.log.with_suffix(f".{name}")
    with log.open("w") as out:
        given = bench.project.environment(**environment)
        return subprocess.Popen(command, cwd=bench.folder, env=given, stdout=out, stderr=out), log


def forced(bench: Bench, stage: Stage, name: str, **environment: str) -> tuple[subprocess.Popen, Path]:
    return start(bench, "dvc", "repro", "--force", "--single-item", stage.name, name=name, **environment)


def in_one_clone(bench: Bench, stage: Stage, random: Random) -> tuple[Outcome, str]:
    files.discard(bench.folder / ".dvc" / "cache" / "runs")  # DVC's memory, from which it would be done at once
    one = forced(bench, stage, "one")
    time.sleep(random.uniform(0, 3))
    ended = [bench.ended(*of) for of in (one, forced(bench, stage, "two"))]
    last = toy.repro(bench)
    if last.code or toy.unlike(bench):
        return "wrong", f"{stage.name}: other bytes: {last.said[-400:]}"
    return told(ended, stage.name)


def told(ended: list[Ended], said: str) -> tuple[Outcome, str]:
    """Right where all ended well; clear where one was refused for the other."""
    for one in ended:
        if TRACEBACK in one.said:
            return "traceback", f"{said}: {one.said[-600:]}"
        if one.code and not any(word in one.said for word in LOCKED):
            return "unclear", f"{said}: {one.said[-600:]}"
    return ("clear" if any(one.code for one in ended) else "right"), said


def shared(project: Project, folder: Path, stage: Stage) -> tuple[Outcome, str]:
    benches = [Bench(project, folder / f"bench-shared-{number}") for number in (1, 2)]
    shutil.move(benches[0].folder / ".dvc" / "cache", folder / "shared-cache")
    given = {"EADPR_CACHE": str(folder / "shared-cache" / "eadpr")}
    for bench in benches:
        bench.project.run("dvc", "cache", "dir", "--local", str(folder / "shared-cache"))
        files.discard(bench.folder / stage.outs[0])
    files.discard(folder / "shared-cache" / "runs")
    ended = [bench.ended(*of) for bench, of in [(bench, forced(bench, stage, "shared", **given)) for bench in benches]]
    last = [toy.repro(bench) for bench in benches]
    right = not any(toy.unlike(bench) for bench in benches) and not any(one.code for one in last)
    for bench in [bench.folder for bench in benches] + [folder / "shared-cache"]:
        files.discard(bench)
    return told(ended, stage.name) if right else ("wrong", f"{stage.name}: other bytes: {last}")


def study(bench: Bench, name: str) -> tuple[subprocess.Popen, Path]:
    return start(bench, "python", "-m", "stages.study", name, name=name, PYTHONPATH="src")


def tables(bench: Bench) -> dict[str, str]:
    return {path.stem: path.read_text() for path in (bench.folder / "docs" / "studies").rglob("*.md")}


def studies(project: Project, folder: Path, random: Random) -> tuple[Outcome, str]:
    """What each writes when it runs alone, it has to write beside the other, or after it was refused."""
    alone = Bench(project, folder / "bench-alone")
    files.write_text(alone.folder / "data" / "studies" / "toys.yaml", "".join(STUDIES.values()))
    alone.project.commit("studies")
    together = Bench(alone.project, folder / "bench-together")
    for name in STUDIES:
        alone.ended(*study(alone, name))
    before = (together.folder / "params.yaml").read_bytes()
    started = study(together, "three")
    time.sleep(random.uniform(0, 8))
    ended = [together.ended(*of) for of in (started, study(together, "five"))]
    same_settings = (together.folder / "params.yaml").read_bytes() == before
    for name, one in zip(STUDIES, ended, strict=True):
        if one.code:
            together.ended(*study(together, name))
    right = tables(together) == tables(alone) and same_settings and len(tables(alone)) == len(STUDIES)
    said = json.dumps([one.said[-300:] for one in ended])
    files.discard(alone.folder)
    files.discard(together.folder)
    return told(ended, said) if right else ("wrong", f"settings kept: {same_settings}; {said}")


def queued(project: Project, folder: Path) -> tuple[Outcome, str]:
    """Two workers at once have to measure what each experiment measures alone."""
    settings = {"three": "train.steps=3", "five": "train.steps=5"}
    alone, together = (Bench(project, folder / f"bench-queue-{name}") for name in ("alone", "together"))
    for name, setting in settings.items():
        alone.project.run("dvc", "exp", "run", "-n", name, "-S", setting)
        together.project.run("dvc", "exp", "run", "--queue", "-n", name, "-S", setting)
    together.project.run("dvc", "queue", "start", "-j", "2")
    began = time.monotonic()
    while re.search("Running|Queued", status := together.project.run("dvc", "queue", "status").stdout):
        if time.monotonic() - began > toy.LONGEST:
            break
        time.sleep(1)
    found = [measured(bench) for bench in (alone, together)]
    for bench in (alone, together):
        files.discard(bench.folder)
    right = found[0] == found[1] and found[0].keys() == settings.keys()
    return ("right" if right else "wrong"), f"{status}: {found}"


def measured(bench: Bench) -> dict[str, str]:
    """By experiment, the headline metrics that its commit holds."""
    found = bench.project.run("git", "for-each-ref", "--format=%(refname)", "refs/exps").stdout.split()
    names = {ref.rpartition("/")[2]: ref for ref in found if "/exec/" not in ref and "/celery/" not in ref}
    return {name: bench.project.run("git", "show", f"{ref}:metrics/atlas.json").stdout for name, ref in names.items()}
