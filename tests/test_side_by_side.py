"""Stages side by side on a Ray cluster of this machine: what DVC keeps of them, failures, and an interrupt."""

import os
import re
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from ruamel.yaml import YAML

from eadpr.settings.resolve import configs, load
from eadpr.studies import side_by_side
from eadpr.studies.side_by_side import Step
from stages import side_by_side as command
from tests import forked_python
from tests.on_ray import commands, variables, wait_for
from tests.repository import ROOT
from tests.small_pipeline import ran

TOYS = """
import os, sys
from eadpr import cluster, side_by_side
with cluster.joined("local", {}) as ray:
    for folder in sys.argv[1:]:
        os.chdir(folder)
        print("failed", side_by_side.run_steps(ray, side_by_side.plan({}), 1), flush=True)
"""
FAILS = {
    "first": ("echo 1 > first", []),
    "bad": ("echo 'error: no luck' >&2; exit 3", ["first"]),
    "behind": ("echo 1 > behind", ["bad"]),
    "other": ("sleep 2; echo 1 > other", ["first"]),
}
STUDY = """
one:
  about: An arm of params.yaml.
  seeds: [1]
  active: {dpr: {negatives: bm25, init: base}}
"""
SLEEPS = {name: (f"touch {name}.began; sleep 98765{name}", []) for name in ("1", "2")}
SLEEPS |= {
    f"{name}{place}": ("true", [f"{name}{place - 1}".removesuffix("0")]) for name in SLEEPS for place in (1, 2, 3)
}


def toy(folder, stages):
    """A repository of DVC; each stage has a command and what it reads, and writes a file of its name."""
    folder.mkdir()
    found = {name: {"cmd": command, "deps": deps, "outs": [name]} for name, (command, deps) in stages.items()}
    with (folder / "dvc.yaml").open("w", encoding="utf-8") as file:
        YAML().dump({"stages": found}, file)
    subprocess.run(["dvc", "init", "-q", "--no-scm"], cwd=folder, env=environment(), check=True)
    return folder


def environment(**more):
    return os.environ | {"PATH": f"{forked_python.folder()}{os.pathsep}{os.environ['PATH']}", **more}


def test_a_failure_stops_what_reads_from_it_and_an_interrupt_all(tmp_path):
    fails, sleeps = toy(tmp_path / "fails", FAILS), toy(tmp_path / "sleeps", SLEEPS)
    with variables(tmp_path) as given:
        command = [sys.executable, "-c", TOYS, fails, sleeps]
        process = subprocess.Popen(command, cwd=ROOT, env=environment(**given), stdout=subprocess.PIPE, text=True)
        try:
            wait_for(lambda: all((sleeps / f"{name}.began").exists() for name in "12"))
        finally:
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate()
    assert process.returncode not in (0, None)
    assert [line for line in commands() if "98765" in line and "sleep" in line] == []
    (failed,) = (line for line in said.splitlines() if line.startswith("failed "))
    assert failed == f"failed ['bad failed: no luck ({fails / side_by_side.LOGS / 'bad.log'})']"
    assert {"first: Running stage 'first':", "bad: error: no luck"} <= set(said.splitlines())
    assert "behind: " not in said
    locked = YAML(typ="safe").load(fails / "dvc.lock")["stages"]
    assert set(locked) == {"first", "other"}


@pytest.mark.pipeline
def test_a_study_side_by_side_ends_with_the_dvc_lock_of_dvc_repro(built, tmp_path):
    """Some stages run, others come from DVC's cache. The work of `evidence` is spread over the cluster."""
    project = built.copy(tmp_path / "project")
    (project.folder / "dvc.lock").unlink()
    (project.folder / "own.yaml").write_text(STUDY, encoding="utf-8")
    for path in project.folder.glob(".dvc/cache/runs/*/*/*"):
        if re.search(r"stages\.(evidence|train|encode) ", path.read_text(encoding="utf-8")):
            shutil.rmtree(path.parent)
    shutil.rmtree(project.folder / ".cache")
    before = (project.folder / "params.yaml").read_bytes()
    options = ["one", "--studies", "own.yaml", "--ray", "local", "--drop-vectors", "--per-card", "4"]
    options += ["-S", "report.resamples=150"]
    with variables(tmp_path) as given:
        given |= {"PYTHONPATH": f"{project.folder / 'src'}{os.pathsep}{project.folder}", "EADPR_RAY": ""}
        done = project.run(sys.executable, "-m", "stages.study", *options, **given)
    side_by_side_ran = re.findall(r"(?m)^(\S+): Running stage '", done.stdout)
    assert {"evidence", "train@dpr", "encode@dpr", "report"} <= set(side_by_side_ran)
    assert ran(done.stdout) == []  # by dvc exp run
    assert (project.folder / "params.yaml").read_bytes() == before
    assert "docs/studies/atlas/one.md" in done.stdout
    found, expected = (YAML(typ="safe").load(one.lock())["stages"] for one in (project, built))
    assert list(found) == [name for name in expected if "@eadpr" not in name]
    other = {"configs", "report", "explore"}
    assert {name for name in found if found[name] != expected[name]} == other
    dropped = [file["md5"] for file in found["encode@dpr"]["outs"]]
    assert [name for name in dropped if list(project.folder.glob(f".dvc/cache/files/md5/{name[:2]}/{name[2:]}"))] == []
    assert [path.name for path in project.folder.glob("data/atlas/vectors/*")] == ["eadpr"], "which the study has not"
    assert [*tmp_path.glob("cache/vectors/*/*")] == []


class Cluster:
    """What `run_steps` asks of Ray. Tasks end in the order of their submission, at once; `slow` ones do not."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def __init__(self, slow, gpus=0.0):
        self.slow, self.cancelled, self.gpus, self.given = slow, [], gpus, {}

    def remote(self, **_):
        submitted = SimpleNamespace(remote=lambda name, *_: name)

        def options(name, **needs):
            self.given[name] = needs
            return submitted

        return lambda function: SimpleNamespace(options=options)

    def wait(self, names, num_returns=1, timeout=None):
        done = [name for name in names if name not in self.slow][:num_returns]
        if not done and timeout == side_by_side.POLLED:
            raise KeyboardInterrupt
        return done, [name for name in names if name not in done]

    def nodes(self):
        return [{"Alive": True, "Resources": {"CPU": 2.0, "GPU": self.gpus}}]

    def get_runtime_context(self):
        return SimpleNamespace(gcs_address="here")

    def get(self, name):
        if name == "bad":
            raise RuntimeError(name)

    def cancel(self, name):
        self.cancelled.append(name)


def test_only_what_runs_is_cancelled(tmp_path, monkeypatch):
    """Ray 2.60 can abort the process that cancels a task while it ends."""
    monkeypatch.chdir(tmp_path)
    steps = [Step("first", []), Step("bad", ["first"])]
    ended = Cluster(slow=[])
    assert side_by_side.run_steps(ended, steps, 1) == ["bad"]
    assert ended.cancelled == []
    interrupted = Cluster(slow=["bad", "last"])
    with pytest.raises(KeyboardInterrupt):
        side_by_side.run_steps(interrupted, [*steps, Step("last", ["bad"])], 1)
    assert interrupted.cancelled == ["last", "bad"], "what reads from others first"


def test_stages_share_a_card_as_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = Cluster(slow=[], gpus=1.0)
    assert side_by_side.run_steps(shared, [Step("train", [], computes=True), Step("bm25", [])], 1, per_card=4) == []
    assert shared.given == {"train": {"num_cpus": 1, "num_gpus": 0.25}, "bm25": {"num_cpus": 1, "num_gpus": 0}}


def test_what_a_stage_takes_of_the_cluster():
    def needs(name, *machines, computes=True, per_card=1):
        return side_by_side._needs(Step(name, [], computes), list(machines), 2, per_card)

    node = {"CPU": 16.0, "GPU": 8.0}
    assert needs("train@dpr", node) == (False, {"num_cpus": 2, "num_gpus": 1})
    assert needs("train@dpr", node, per_card=8) == (False, {"num_cpus": 2, "num_gpus": 0.125})
    assert needs("bm25", node, computes=False, per_card=8) == (False, {"num_cpus": 2, "num_gpus": 0})
    assert needs("train@dpr", {"CPU": 2.0}, per_card=8) == (False, {"num_cpus": 2, "num_gpus": 0})
    assert needs("train@dpr", {"CPU": 1.0}) == (False, {"num_cpus": 1, "num_gpus": 0})  # else it would wait for ever
    small = {"CPU": 4.0, "GPU": 1.0}
    assert needs("train@dpr", {"CPU": 64.0}, small | {"CPU": 1.0}) == (False, {"num_cpus": 1, "num_gpus": 1})
    assert needs("bm25", {"CPU": 64.0}, small, computes=False) == (False, {"num_cpus": 2, "num_gpus": 0})
    assert needs("evidence", node) == (True, {"num_cpus": 0})
    assert needs("evidence", {"CPU": 2.0}) == (False, {"num_cpus": 2, "num_gpus": 0})
    assert needs("evidence", {"CPU": 2.0}, {"CPU": 2.0}) == (True, {"num_cpus": 0})


def test_stages_with_a_machine_in_their_settings_compute(monkeypatch):
    monkeypatch.chdir(ROOT)
    steps = side_by_side.plan(configs(load(ROOT / "params.yaml")))
    computing = {step.name.partition("@")[0] for step in steps if step.computes}
    assert computing == {"base", "annotator", "evidence", "train", "encode", "retrieve", "probe"}
    assert {step.name for step in steps if step.encodes} == {"encode@dpr", "encode@eadpr-paper", "encode@eadpr"}
    (report,) = (step for step in steps if step.name == "report")
    assert {"evaluate@dpr", "evaluate_bm25"} < set(report.after)


def test_the_command_runs_all_on_the_cluster_of_the_user(monkeypatch):
    monkeypatch.setattr(side_by_side, "run", lambda address, params, **given: [address, params.name, given])
    said = "['local', 'params.yaml', {'drop': True, 'per_card': 4}] stages are up to date"
    assert command.main(ray="local", drop_vectors=True, per_card=4) == said
