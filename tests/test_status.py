"""`eadpr status`: what a run would run, by stages by hand and by a small repository of DVC."""

import shutil
import subprocess

import pytest

from eadpr.studies import provenance, status
from eadpr.studies.status import Step
from tests.repository import ROOT

STEPS = [
    Step("prepare", {"configs/prepare.json": "p", "sources": "s"}, {"records": "r"}, []),
    Step("train@a", {"configs/a.json": "a", "records": "r"}, {"models/a": "ma"}, []),
    Step("train@b", {"configs/b.json": "b", "records": "r"}, {"models/b": "mb"}, []),
    Step("report", {"configs/report.json": "t", "models": "m"}, {"table": "t"}, []),
]
WRITTEN = {"configs/prepare.json": "p", "configs/a.json": "a", "configs/b.json": "b", "configs/report.json": "t"}


@pytest.mark.parametrize(("changes", "stale", "later"), [
    ({}, {}, []),
    ({"configs/a.json": "other"}, {"train@a": ["configs/a.json"]}, ["report"]),
    ({"configs/report.json": "other"}, {"report": ["configs/report.json"]}, []),
    ({"configs/prepare.json": "other"}, {"prepare": ["configs/prepare.json"]}, ["train@a", "train@b", "report"]),
])  # fmt: skip
def test_a_stage_is_stale_by_its_own_inputs_and_may_run_behind_one_that_is(changes, stale, later):
    assert status.find_stale(STEPS, WRITTEN | changes) == (stale, later)


def test_a_stage_that_never_ran_or_lost_an_output_is_stale_and_nothing_is_built_where_all_did(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    new = Step("train@c", {"configs/c": None}, {"models/c": None}, [])
    lost = STEPS[1]._replace(reasons=["models/a is missing"])
    stale, later = status.find_stale([STEPS[0], lost, new, STEPS[3]], WRITTEN | {"configs/c": "c"})
    assert stale == {"train@a": ["models/a is missing"], "train@c": ["configs/c"]}
    assert later == ["report"]
    (tmp_path / "models" / "c").mkdir(parents=True)  # of an earlier run
    assert not status.is_unbuilt([STEPS[0], lost, new], stale)
    assert status.is_unbuilt([lost, new], stale)
    (tmp_path / "metrics").touch()  # which git keeps
    assert status.is_unbuilt([lost._replace(outputs={"metrics": "m"}), new], stale)
    (tmp_path / "models" / "a").touch()
    assert not status.is_unbuilt([lost, new], stale)


def test_new_stages_share_a_line_and_others_have_their_reasons(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(status, "edits", lambda collection: [])
    new = [Step(f"train@{name}", {"configs/c": None}, {f"models/{name}": None}, []) for name in "cd"]
    lost = Step("bm25", {"configs/bm25.json": "x"}, {"tests": "t"}, ["rankings are missing"])
    monkeypatch.setattr(status, "read_steps", lambda params: [lost, *new])
    assert status.main([]).splitlines() == [
        "bm25 will run: rankings are missing",
        "2 will run for the first time: train@c, train@d",
    ]


PIPELINE = """
stages:
  configs: {cmd: "mkdir -p $C/configs $C/all && cp params.yaml $C/configs/c", deps: [params.yaml], outs: ["$C/configs"]}
  copy: {cmd: "cat source $C/configs/c > $C/all/copy", deps: [source, "$C/configs/c"], outs: ["$C/all/copy"]}
  count: {cmd: "wc -l < $C/all/copy > $C/counted${a}", deps: ["$C/all/copy"], outs: ["$C/counted${a}"]}
  list: {cmd: "ls $C/all > $C/listed", deps: ["$C/all", "$C/counted${a}"], outs: ["$C/listed"]}
""".replace("$C", "data/${collection}")
PARAMS = {"a": 1, "collection": "toy"}


def test_steps_of_a_repository_come_in_order_with_what_differs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"dvc.yaml": PIPELINE, "params.yaml": str(PARAMS), "source": "one\n"}.items():
        (tmp_path / name).write_text(text)
    for command in (["git", "init", "-q"], ["dvc", "init", "-q"], ["dvc", "repro", "-q"]):
        subprocess.run(command, check=True)
    steps = status.read_steps(PARAMS)
    assert steps[0].inputs["data/toy/configs/c"] == status.md5(str(PARAMS).encode())
    assert [(step.name, step.reasons) for step in steps] == [("copy", []), ("count", []), ("list", [])]
    assert not status.unfinished(PARAMS, ["copy", "count"])
    (tmp_path / "source").write_text("two\n")
    (tmp_path / "data" / "toy" / "counted1").unlink()  # it is in DVC's cache
    assert [step.reasons for step in status.read_steps(PARAMS)] == [["source"], [], []]
    subprocess.run(["dvc", "repro", "-q", "copy"], check=True)  # a run that ends here
    assert status.unfinished(PARAMS, ["copy", "count"]) == ["count"]
    subprocess.run(["rm", "-rf", ".dvc/cache"], check=True)
    expected = [[], ["data/toy/counted1 is missing"], ["data/toy/all"]]
    assert [step.reasons for step in status.read_steps(PARAMS)] == expected
    (tmp_path / "params.yaml").write_text(str(PARAMS | {"collection": "other"}))
    subprocess.run(["dvc", "repro", "-q", "copy"], check=True)
    assert not status.unfinished(PARAMS, ["copy", "count"]), "nothing is known of a collection that was built earlier"
    assert [*status.read_steps(PARAMS | {"a": 2})[1].outputs] == ["data/toy/counted2"], "as by `dvc exp run -S a=2`"


def test_edits_are_named_with_their_file_and_a_page_names_the_last_commit_of_its_sources(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old, new = provenance.COLLECTIONS / "own.yaml", provenance.COLLECTIONS / "new.yaml"
    files = {provenance.PARAMS: "a: 1\nb: {c: 2}\n", provenance.DEFAULTS: "b: {c: 1}\n", old: "settings: {e: 1}\n"}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "-q"], check=True)
    for day, path in enumerate((".", "dvc.lock"), start=1):
        (tmp_path / "dvc.lock").write_text(f"what run {day} wrote")
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"2026-01-0{day}T12:00:00")
        subprocess.run(["git", "add", path], check=True)
        subprocess.run(["git", "-c", "user.email=a@b.c", "-c", "user.name=a", "commit", "-qm", "all"], check=True)
    for path, text in files.items():
        path.write_text(text.replace("1", "5", 1))
    new.write_text("settings: {}\n")
    edits = ["a=5", "src/eadpr/settings/defaults.yaml:b.c=5"]
    assert list(provenance.edits("own")) == [*edits, "data/collections/own.yaml:settings.e=5"]
    assert list(provenance.edits("new")) == edits, "it is not committed yet"
    name = provenance.git("rev-parse", "--short=7", "HEAD^")
    commit = {"commit": f"{name} with uncommitted changes", "date": "2026-01-01"}
    assert provenance.describe_run("new") == {**commit, "edits": edits, "changed": ["b.c=2"]}
    new.write_text("[")
    for words in ("add data", "-c user.email=a@b.c -c user.name=a commit -qm mistake"):
        subprocess.run(["git", *words.split()], check=True)
    new.write_text("settings: {}\n")
    assert [*provenance.edits("new")][-1] == "data/collections/new.yaml, which cannot be read there"
    shutil.rmtree(".git")
    assert provenance.describe_run("own") == {"changed": ["b.c=2", "e=5"]}
