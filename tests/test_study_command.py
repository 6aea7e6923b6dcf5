"""The command `eadpr study`: the experiment that it runs, and what it writes."""

import json
import shutil
import subprocess
import sys

import pytest
import typer

from eadpr.runtime import stage_code
from eadpr.settings import resolve
from eadpr.studies import check as check_module
from eadpr.studies import experiment, page, provenance
from eadpr.studies.command import main
from tests import small_collection
from tests.repository import ROOT
from tests.small_pipeline import ran
from tests.test_study_page import REPORT

pytestmark = pytest.mark.studies
VERDICT = "**Verdict.** Yes: in one line\nand in another."
DVC = '#!/bin/sh\nprintf "%s\\n" "$@" > words\nexit ${DVC_ENDS_WITH:-0}\n'


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The settings of this project in a repository of its own, with a `dvc` that only notes its words."""
    folder = tmp_path / "project"
    for name in ("data/collections", "data/studies"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "params.yaml", folder)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dvc").write_text(DVC, encoding="utf-8")
    (tmp_path / "bin" / "dvc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(experiment, "read_report", lambda name, collection: (REPORT, "0123abcd"))
    monkeypatch.chdir(folder)
    git("init", "-q")
    git("config", "user.email", "test@example.org")
    git("config", "user.name", "test")
    (folder / ".gitignore").write_text("/docs\n/words\n", encoding="utf-8")
    git("add", "-A")
    git("commit", "-qm", "all")
    return folder


def study(name: str = "evidence", **options: object) -> str | None:
    defaults = {"collection": None, "seeds": [], "set_": [], "show": False, "check": False}
    return main(name, **defaults | options)


def test_a_study_runs_in_a_copy_and_leaves_a_page_and_its_numbers(project):
    (project / "für mich.txt").touch()
    (project / "data/collections/mine.yaml").write_text((project / "data/collections/squad-open.yaml").read_text())
    model = small_collection.write_model(project.parent / "made") / "passage_encoder"
    study(collection="atlas", seeds=[4, 5], set_=["train.steps=7", f"base.model={model}"])
    words = (project / "words").read_text(encoding="utf-8").splitlines()
    assert words[:4] == ["exp", "run", "--temp", "-n"]
    assert words[4].startswith("evidence-atlas-")
    assert words[5:9] == ["-C", "data/collections/mine.yaml", "-C", "für mich.txt"], "which git does not know yet"
    assert {"++train.seed=4", "++train.steps=7"} < set(words)
    assert "++active.eadpr-5={repeats: eadpr, seed: 5, negatives: bm25, init: base}" in words
    assert not any(word.startswith(("++active.eadpr-2=", "++active.eadpr-4=")) for word in words)
    path = project / "docs/studies/atlas/evidence.md"
    text, record = path.read_text(encoding="utf-8"), json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    arguments = "--collection atlas --seed 4 --seed 5 -S train.steps=7 -S base.model=FOLDER"
    assert f"`eadpr study evidence {arguments}`" in text
    assert page.UNDECIDED in text
    assert (record["report"], record["figures"]["made/test"]["dpr"]["top-100"]) == ("0123abcd", "90.0")
    assert record["commit"] == f"{git('rev-parse', '--short=7', 'HEAD')} with uncommitted changes"
    assert "++train.steps=7" in record["overrides"]
    assert str(model) not in json.dumps(record)


def test_the_verdict_of_the_author_stays(project):
    study()
    path = project / "docs/studies/atlas/evidence.md"
    path.write_text(path.read_text(encoding="utf-8").replace(page.UNDECIDED, VERDICT), encoding="utf-8")
    study(seeds=[9])
    text = path.read_text(encoding="utf-8")
    assert (f"{VERDICT}\n\n" in text, page.UNDECIDED in text, "--seed 9" in text) == (True, False, True)


def test_a_checkout_that_is_not_as_committed_is_named(project, monkeypatch):
    name = git("rev-parse", "--short=7", "HEAD")
    assert provenance.commit() == name
    (project / "params.yaml").write_text("", encoding="utf-8")
    assert provenance.commit() == f"{name} with uncommitted changes"
    monkeypatch.chdir(project.parent)
    with pytest.raises(ValueError, match="git rev-parse says"):
        provenance.commit()


def test_a_failed_run_ends_with_its_code_and_writes_no_page(project, monkeypatch, capsys):
    study(show=True)
    assert capsys.readouterr().out.startswith("dvc exp run --temp -S ")
    assert not (project / "words").exists(), "it is shown and not run"
    monkeypatch.setenv("DVC_ENDS_WITH", "255")
    with pytest.raises(typer.Exit) as ended:
        study()
    assert ended.value.exit_code == 255
    assert not (project / "docs").exists()


def check(capsys, study: str = "evidence", **options: object) -> tuple[int, list[str]]:
    capsys.readouterr()
    stage_code._read.cache_clear()
    check_module._stages.cache_clear()
    with pytest.raises(typer.Exit) as ended:
        main(study, **{"collection": None, "seeds": [], "set_": [], "show": False, "check": True} | options)
    return ended.value.exit_code, capsys.readouterr().out.splitlines()


def test_a_page_is_checked_against_code_and_settings(project, capsys, monkeypatch):
    for name in ("src", "stages"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "dvc.yaml", project)
    git("add", "-A")
    git("commit", "-qm", "code")
    model = small_collection.write_model(project.parent / "made") / "passage_encoder"
    study(set_=[f"base.model={model}"])
    study("hybrid")
    evidence, commit = "docs/studies/atlas/evidence.md: ", git("rev-parse", "--short=7", "HEAD")
    right = "of this code and these settings"
    loss = project / "src/eadpr/training/losses.py"
    code, params = loss.read_text(encoding="utf-8"), (project / "params.yaml").read_text(encoding="utf-8")
    loss.write_text(f"# A remark.\n{code}", encoding="utf-8")
    with (project / "src/eadpr/two_hops/hops.py").open("a") as two_hops:  # which no arm of theirs has
        two_hops.write("print()\n")
    (project / "params.yaml").write_text(params.replace("collection: atlas", "collection: timeqa"), encoding="utf-8")
    assert check(capsys, "") == (0, [f"{evidence}{right}", f"docs/studies/atlas/hybrid.md: {right}"])
    with monkeypatch.context() as changed:  # what `auto` stands for
        changed.setitem(resolve.RECIPES["pretrained"][0], "weight_decay", 0.5)
        assert check(capsys, collection="atlas") == (1, [f"{evidence}settings changed since {commit}"])
    loss.write_text(f"{code}print()\n", encoding="utf-8")
    changed_file = f"{evidence}1 files of code changed since {commit}: src/eadpr/training/losses.py"
    assert check(capsys) == (1, [changed_file])
    path = project / "docs/studies/atlas/evidence.json"
    path.write_text(path.read_text(encoding="utf-8").replace(commit, "0123abc"), encoding="utf-8")
    (line,) = check(capsys)[1]
    assert line.startswith(f"{evidence}cannot be checked: ")
    assert "0123abc" in line
    with pytest.raises(ValueError, match=r"docs/studies has no \*/nosuch\.json"):
        check(capsys, "nosuch")
    with pytest.raises(typer.BadParameter, match="--check goes with NAME"):
        check(capsys, show=True)


@pytest.mark.parametrize(("options", "key"), [
    ({"name": "nosuch"}, "no study 'nosuch'"), ({"collection": "typo"}, "typo"), ({"set_": ["train.stepz=1"]}, "stepz"),
])  # fmt: skip
def test_what_cannot_run_is_refused_before_it_is_trained(project, options, key):
    with pytest.raises(ValueError, match=key):
        study(**options)
    assert not (project / "words").exists()


@pytest.mark.pipeline
def test_a_study_of_trained_arms_takes_all_from_dvcs_cache(built, tmp_path):
    """The copy of the tree that DVC runs it in shares DVC's cache; the tree itself stays as it is."""
    project = built.copy(tmp_path / "project")
    text = "one: {about: Why?, seeds: [1], active: {dpr: {negatives: bm25, init: base}}}\n"
    (project.folder / "data" / "studies").mkdir(parents=True)
    (project.folder / "data" / "studies" / "mine.yaml").write_text(text, encoding="utf-8")
    params, lock = (project.folder / "params.yaml").read_bytes(), project.lock()
    folder = f"{project.folder / 'src'}:{project.folder}"
    done = project.run(sys.executable, "-m", "stages.study", "one", "-S", "report.resamples=150", PYTHONPATH=folder)
    assert set(ran(done.stdout)) == {"configs", "report", "explore"}
    record = json.loads((project.folder / "docs/studies/atlas/one.json").read_text(encoding="utf-8"))
    assert list(record["figures"]["atlas/test"]) == ["bm25", "dpr"]
    assert "-S report.resamples=150" in (project.folder / "docs/studies/atlas/one.md").read_text(encoding="utf-8")
    assert ((project.folder / "params.yaml").read_bytes(), project.lock()) == (params, lock)
