"""The stages of the pipeline side by side: each is a task of Ray, which starts it where there is room once those that
it reads from have ended. All a task does is `dvc repro --single-item` for its stage, so DVC decides whether the stage
runs, and commits it. DVC lets several of these work in one clone: it holds its lock but while a stage's command runs.
"""

import filecmp
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from eadpr.runtime import cache, cluster

LOGS = Path(".dvc/tmp/side_by_side")  # of each stage; DVC keeps git from it
SPREAD = ("evidence",)  # its shards are made by actors of the whole cluster (`jobs`): all arms wait for it
FIRST = "vectors-00000.npy"  # shard of an arm
POLLED = 0.5  # seconds
HINTS = re.compile(r"\s*(To (track|enable) |git add |dvc config |Use `dvc push`|$)")  # DVC's, after every stage
STOPPED = 30.0  # seconds that a stage gets to end when it is interrupted


class Step(NamedTuple):
    """A stage by its name for DVC, with the stages that it reads from, whether it computes with torch, and whether it
    writes vectors."""

    name: str
    after: list[str]
    computes: bool = False
    encodes: bool = False


def run(address: str, params: Path, *, drop: bool = False, per_card: int = 1) -> int:
    """Run what of the pipeline is not up to date on the cluster at `address`, up to `per_card` stages on a GPU; returns
    the number of stages. With `drop` vectors are deleted that all have read, and no stage is run because data are
    missing.

    Raises ValueError with a line for each stage that failed. Those that read from one are not run, all others are.
    """
    from eadpr.settings.resolve import configs, load  # here, as the process of a task needs none of it

    values = load(params)
    steps, locked = plan(configs(values)), _locked()
    with cluster.joined(address, {}) as ray:
        failed = run_steps(ray, steps, values["machine"]["threads"], drop=drop, per_card=per_card)
    _order([step.name for step in steps if step.name not in locked])
    if failed:
        raise ValueError("\n".join(failed))
    return len(steps)


def plan(files: dict[str, dict[str, Any]]) -> list[Step]:
    """The stages of dvc.yaml and what they need, in the order of `dvc repro`; `files` are the config files by name."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo
    from dvc.repo.reproduce import collect_stages, get_active_graph, plan_repro

    steps = []
    try:
        with Repo(_wait_for_lock=True) as repo, repo.lock:
            graph = get_active_graph(repo.index.graph)
            for stage in plan_repro(graph, collect_stages(repo, ["dvc.yaml"])):
                command, after = stage.cmd or "", [other.addressing for other in graph.successors(stage)]
                encodes = " -m stages.encode " in command
                steps.append(Step(stage.addressing, after, _computes(command, files), encodes))
    except DvcException as error:
        raise ValueError(f"dvc says: {error}") from error
    return steps


def _computes(command: str, files: dict[str, dict[str, Any]]) -> bool:
    """Whether its settings have a `machine`."""
    named = re.search(r" --config \S+?/configs/(\S+)", command)
    sections = files[named[1]] if named else {}
    return bool(sections.get("machine") or (sections.get("writer") or {}).get("machine"))


def run_steps(ray: ModuleType, steps: list[Step], threads: int, *, drop: bool = False, per_card: int = 1) -> list[str]:
    """Print their lines as they come, and return what is said of those that failed. `threads`: that a stage takes."""
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    stage = ray.remote(max_retries=0)(_stage)
    # As the user set it, and with what a process needs that joins the cluster.
    environment = {name: value for name, value in os.environ.items() if name != cluster.ADDRESS}
    address, found = ray.get_runtime_context().gcs_address, {}
    command = ["dvc", "--wait-for-lock", "repro", "--single-item", *["--allow-missing"] * drop]
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for step in steps:
        spread, needs = _needs(step, machines, threads, per_card)
        given = environment | ({cluster.ADDRESS: address} if spread else {})
        after = [found[name] for name in step.after]
        found[step.name] = stage.options(name=step.name, **needs).remote(
            step.name, command, str(Path.cwd()), given, *after
        )
    failed: dict[str, str] = {}
    left = {step.name: {other.name for other in steps if step.name in other.after} for step in steps if step.encodes}
    left = left if drop else {}
    try:
        for name, error in _ended(ray, found):
            if error is not None:
                failed[name] = str(getattr(error, "cause", error))
                continue
            for encoded, readers in left.items():
                if readers == {name}:
                    drop_vectors(encoded)
                readers.discard(name)
    finally:
        _, running = ray.wait([*found.values()], num_returns=len(found), timeout=0)
        # Ray (2.60) aborts this process if it cancels a task while that ends: one that has ended, or one that failed
        # as what it reads from was cancelled before it. So only what runs, and what reads from others first.
        for reference in reversed(running):
            ray.cancel(reference)
        if running:
            ray.wait(running, num_returns=len(running), timeout=2 * STOPPED)
    return [failed[step.name] for step in steps if step.name in failed and failed.keys().isdisjoint(step.after)]


def _needs(
    step: Step, machines: list[dict[str, float]], threads: int, per_card: int = 1
) -> tuple[bool, dict[str, float]]:
    """Whether the stage's work is spread over the cluster, and what it takes of it: nothing then, as it only waits for
    actors, which need what it would hold; else threads, and its part of a GPU if it computes and there are any."""
    gpus = sum(found.get("GPU", 0) for found in machines)
    fit = [found for found in machines if found.get("GPU", 0) or not (step.computes and gpus)]
    cores = int(min(threads, max(found.get("CPU", 0) for found in fit)))
    more = gpus > 1 or (not gpus and any(found.get("CPU", 0) >= 2 * threads for found in machines)) or len(machines) > 1
    if step.name in SPREAD and more:
        return True, {"num_cpus": 0}
    return False, {"num_cpus": cores, "num_gpus": (step.computes and gpus > 0) / per_card}


def _ended(ray: ModuleType, found: dict[str, Any]) -> Iterator[tuple[str, Exception | None]]:
    """Names of stages as they end, with the error of those that did not succeed."""
    names = {reference: name for name, reference in found.items()}
    at: dict[Path, int] = {}
    while names:
        done, _ = ray.wait(list(names), timeout=POLLED)
        _show(at)
        for reference in done:
            error = None
            try:
                ray.get(reference)
            except ray.exceptions.RayError as raised:
                error = raised
            yield names.pop(reference), error


def _show(at: dict[Path, int]) -> None:
    """Print the whole lines that logs have behind `at`, each after the name of its stage."""
    for path in sorted(LOGS.glob("*.log")):
        with path.open("rb") as log:
            log.seek(at.get(path, 0))
            lines = log.read().rpartition(b"\n")[0]
        if lines:
            at[path] = at.get(path, 0) + len(lines) + 1
            for line in lines.decode(errors="replace").splitlines():
                if not HINTS.match(line):
                    print(f"{path.stem}: {line}", flush=True)


def _stage(name: str, command: list[str], folder: str, environment: dict[str, str], *_: None) -> None:
    """A task. Raises ValueError with what the stage said last."""
    log = Path(folder) / LOGS / f"{name.replace('/', '_')}.log"
    if "CUDA_VISIBLE_DEVICES" in os.environ:  # the card that Ray gave to this task
        environment = environment | {"CUDA_VISIBLE_DEVICES": os.environ["CUDA_VISIBLE_DEVICES"]}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, name], cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            while process.poll() is None:  # Ray does not interrupt a system call
                time.sleep(POLLED / 5)
        except BaseException:
            _end(process)
            raise
    if process.returncode:
        raise ValueError(f"{name} failed: {_said(log.read_text(errors='replace').splitlines())} ({log})")


def _end(process: subprocess.Popen) -> None:
    """End the process and what it started."""
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(STOPPED)
        except subprocess.TimeoutExpired:
            continue


def _said(lines: Iterable[str]) -> str:
    """The last line before DVC's own about the failure, which is often all that DVC knows of it."""
    found = [line.strip() for line in lines if line.strip()]
    own = [line for line in found if "failed to reproduce '" not in line]
    return (own or found or ["it said nothing"])[-1].removeprefix("error: ")


def drop_vectors(stage: str) -> None:
    """Delete what a stage `encode` wrote: its folder, its objects in DVC's cache that no other stage's output here
    has, and its shards in ours."""
    from dvc.repo import Repo

    with Repo(_wait_for_lock=True) as repo, repo.lock:
        outs = {of.addressing: of.outs for of in repo.index.stages}
        (out,) = outs.pop(stage)
        folder = Path(out.fs_path)
        if not folder.exists():
            return
        kept = set().union(*(_objects(other) for others in outs.values() for other in others))
        for name in sorted(_objects(out) - kept):
            repo.cache.local.delete(name)
        for first in (cache.root() / "vectors").glob(f"*/{FIRST}"):
            if filecmp.cmp(first, folder / FIRST, shallow=False):
                with cache.workspace("vectors", first.parent.name):  # another arm of this encoder may be at them
                    shutil.rmtree(first.parent)
        shutil.rmtree(folder)
    print(f"{stage}: deleted {folder}, which all have read", flush=True)


def _objects(out: Any) -> set[str]:
    """Names in DVC's cache of what an output is made of; none where it lacks them."""
    found = out.get_obj() if out.hash_info else None
    inner = {entry.value for _, _, entry in found} if out.hash_info and out.hash_info.isdir and found else set()
    return inner | ({out.hash_info.value} if found else set())


def _locked() -> set[str]:
    """Stages that dvc.lock has."""
    from eadpr.settings.yaml import read_yaml

    path = Path("dvc.lock")
    return set(read_yaml(path)["stages"]) if path.exists() else set()


def _order(new: list[str]) -> None:
    """Put stages that are new in dvc.lock into the order in which `dvc repro` would have added them."""
    from dvc.repo import Repo
    from dvc.utils.serialize import modify_yaml

    if not Path("dvc.lock").exists():
        return
    with Repo(_wait_for_lock=True) as repo, repo.lock, modify_yaml("dvc.lock") as locked:
        for name in new:
            if name in locked["stages"]:
                locked["stages"][name] = locked["stages"].pop(name)
