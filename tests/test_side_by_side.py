"""Stages side by side on a Ray cluster of this machine: what DVC keeps of them, failures, and an interrupt."""

import os
import signal
import subprocess
import sys

import pytest
from ruamel.yaml import YAML

from eadpr import side_by_side
from eadpr.params import configs, load
from eadpr.side_by_side import Step
from tests import forked_python
from tests.on_ray import commands, variables, wait_for
from tests.repository import ROOT

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
SLEEPS = {name: (f"touch {name}.began; sleep 98765{name}", []) for name in ("1", "2")}


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
            wait_for(lambda: all((sleeps / f"{name}.began").exists() for name in SLEEPS))
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
