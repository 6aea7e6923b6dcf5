"""The command `stages.study`: what it runs and writes, and which tables it finds behind."""

import hashlib
import os
import re
from collections import defaultdict
from datetime import date
from pathlib import Path

import pytest

from eadpr.runtime import cache, stage_code
from eadpr.settings.resolve import configs, load
from eadpr.studies import provenance
from eadpr.studies.run import read_study
from stages import study as study_command
from tests import study_toy
from tests.repository import ROOT, stage_module, stages

GOOD = load(ROOT / "params.yaml")
GIVEN = ("--collection", "atlas", "--seed", "4", "--seed", "5", "-S", "train.steps=7")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The project after one study, with the lines that its command printed. A model's folder lies outside of it."""
    folder = study_toy.create(tmp_path_factory.mktemp("study") / "project")
    for name in ("aa_by_type", "score_differences"):
        picture = folder / "reports/atlas" / f"{name}.svg"
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_text(f"<svg>{name}</svg>", encoding="utf-8")
    model = tmp_path_factory.mktemp("model")
    (model / "config.json").write_text("{}", encoding="utf-8")
    done = study_toy.study(folder, "awareness", *GIVEN, "-S", f"base.model={model}")
    assert done.returncode == 0, done.stderr
    return folder, done.stdout.splitlines()


def test_the_command_runs_dvc_and_keeps_the_table_and_its_pictures(ran):
    folder, (command, *_) = ran
    assert all(word in command for word in ("exp run -S ", "train.seed=4", "+active.eadpr-5=", " -S train.steps=7 "))
    assert not any(name in command for name in ("eadpr-2", "eadpr-3"))
    docs = folder / "docs/studies/atlas"
    about, command, said, table, *others = (docs / "awareness.md").read_text(encoding="utf-8").split("\n\n")
    assert about == read_study(ROOT / "studies.yaml", "awareness").about
    assert command == f"`python -m stages.study awareness {' '.join(GIVEN)} -S base.model=FOLDER`"
    commit = study_toy.git(folder, "rev-parse", "--short=7", "HEAD")
    pattern = rf"Measured at {commit} \({date.today()}\); settings [0-9a-f]{{8}}, code [0-9a-f]{{8}}\."
    assert re.fullmatch(pattern, said)
    assert table == "| a table |"
    assert "![score_differences](awareness-score_differences.svg)" in others
    assert (docs / "awareness-aa_by_type.svg").read_text(encoding="utf-8") == "<svg>aa_by_type</svg>"
    assert any(" 7 steps |" in part for part in others)  # what ran, not what stands in params.yaml
    assert load(folder / "params.yaml") == GOOD  # so that the next study starts from the same


def checked(folder, *options):
    """What --check says of each table, by its name, and its exit code."""
    done = study_toy.study(folder, "--check", *options)
    assert "Traceback" not in done.stderr, done.stderr
    found = (line.partition(".md: ") for line in done.stdout.splitlines())
    return {path.removeprefix("docs/studies/atlas/"): said for path, _, said in found}, done.returncode


def test_the_check_repeats_a_table_s_own_command_and_names_what_is_behind(ran):
    folder, _ = ran
    docs = folder / "docs/studies/atlas"
    text = (docs / "awareness.md").read_text(encoding="utf-8")
    said = provenance.read(text).said
    others = {
        "settings": text.replace("train.steps=7", "train.steps=8"),
        "unknown": text.replace("study awareness", "study nosuch"),
        "options": text.replace("study awareness", "study awareness --nosuch"),
        "looked": text.replace("`python -m stages.study awareness", "`python -m stages.describe eadpr"),
        "old": text.replace(said, ""),
        "explored": text.replace("of each stage:\n", "of each stage:\nexplore 1 2\n"),
    }
    for name, other in others.items():
        (docs / f"{name}.md").write_text(other, encoding="utf-8")
    before = {path: path.read_bytes() for path in folder.rglob("docs/**/*.*")}
    found, status = checked(folder)
    assert {path: path.read_bytes() for path in folder.rglob("docs/**/*.*")} == before
    assert found.pop("awareness") == f"up to date. {said}"
    assert found.pop("explored") == f"up to date. {said}"  # tables listed that stage once
    assert found.pop("settings") == f"behind, settings of train. {said}"
    assert found.pop("old") == "does not say what it was measured with"
    assert found.pop("looked").startswith("behind, settings of ")  # the study's, not those of params.yaml
    assert found.pop("unknown").startswith("behind, its command cannot be repeated (studies.yaml has no study 'nosuch'")
    assert found.pop("options").startswith("behind, its command cannot be repeated (No such option: --nosuch")
    assert (found, status) == ({}, 0)
    losses = folder / "src/eadpr/training/losses.py"
    losses.write_text(losses.read_text(encoding="utf-8") + "\nMORE = 1\n", encoding="utf-8")
    found, status = checked(folder, "--strict")
    assert (found["awareness"], status) == (f"behind, code of train. {said}", 1)


def test_a_checkout_that_is_not_as_committed_is_said(tmp_path, monkeypatch):
    for name in ("src/a.py", "docs/a.md"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="git rev-parse says: fatal: not a git repository"):
        provenance.commit()
    study_toy.commit(tmp_path)
    name = study_toy.git(tmp_path, "rev-parse", "HEAD")[:7]
    (tmp_path / "docs/a.md").write_text("2", encoding="utf-8")
    assert provenance.commit() == name
    (tmp_path / "src/b.py").write_text("2", encoding="utf-8")
    assert provenance.commit() == f"{name} with uncommitted changes"


def test_hashes_are_of_the_stages_that_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    every: defaultdict = defaultdict(lambda: every, any=1)
    modules = {stage_module(stage["cmd"]) for stage in stages().values()}
    assert set(provenance.hashes(every, {}, dict.fromkeys(modules, ""))) == modules - {"configs", "explore"}
    ran_ = set(provenance.hashes(GOOD, {}, dict.fromkeys(modules, "")))
    assert {"prepare", "train", "evaluate", "report"} <= ran_
    assert ran_.isdisjoint({"fuse", "robustness", "read", "reader", "train_multihop", "query_side", "denoise"})


def test_each_stage_has_hashes_of_its_own_settings_and_code(monkeypatch):
    monkeypatch.chdir(ROOT)
    files, code = configs(GOOD), dict.fromkeys(map(stage_module, (stage["cmd"] for stage in stages().values())), "")
    then = provenance.hashes(GOOD, files, code)

    def changed(config: str, section: str, **values: object) -> str:
        own = files | {config: files[config] | {section: files[config][section] | values}}
        return provenance.behind(then, provenance.hashes(GOOD, own, code))[0]

    assert provenance.behind(then, then) == ("", [])
    assert changed("eadpr/train.json", "loss", tau1=7.0) == "settings of train"
    assert changed("evaluate.json", "evaluate", mrr_at=7) == "settings of evaluate"
    assert changed("bases/base.json", "base", model="/one") == "settings of base"
    assert changed("bases/base.json", "base_files", sha256={"a": "b"}) == ""
    now = provenance.hashes(GOOD, files, code | {"train": "other", "report": "other"})
    assert provenance.behind(then, now) == ("code of report, train", [])
    assert provenance.behind(then, now, {"train", "bm25"}) == ("code of report", ["train"])
    expected = "settings of bm25, train; code of bm25, train"
    assert provenance.behind({"train": then["train"]}, {"bm25": then["bm25"]}, {"train"}) == (expected, [])


def locked(*stages_: tuple[str, str]) -> str:
    """dvc.lock of stages of one module that have run, each with its code and what it made."""
    return "stages:\n" + "".join(
        f"  train@{i}:\n    cmd: python -m stages.train --out m\n    deps:\n"
        f"    - {{path: data/atlas/configs/code/train.txt, md5: {code}}}\n    outs:\n    - {{path: m, md5: {made}}}\n"
        for i, (code, made) in enumerate(stages_)
    )


def test_code_that_changed_no_byte_of_the_default_pipeline_is_told_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lock = tmp_path / "dvc.lock"
    lock.write_text(locked(("1", "2"), ("1", "2")), encoding="utf-8")
    study_toy.commit(tmp_path)
    sha = study_toy.git(tmp_path, "rev-parse", "--short=7", "HEAD")
    table = provenance.Provenance("study", [], f"Measured at {sha} (2026-01-01); settings 1, code 2.", {})
    monkeypatch.setattr(provenance, "_listed", lambda module: f"today's code of {module}")
    today = hashlib.md5(b"today's code of train").hexdigest()
    for first, same in (((today, "2"), {"train"}), ((today, "3"), set()), (("1", "2"), set())):
        lock.write_text(locked(first, (today, "2")), encoding="utf-8")
        assert provenance.unmoved(table) == same, first
    lock.write_text(locked((today, "2"), (today, "2")), encoding="utf-8")
    assert provenance.unmoved(table._replace(said=table.said.replace(sha, "abcdef0"))) == set()
    lock.unlink()
    assert provenance.unmoved(table) == set()


@pytest.fixture
def in_copy(ran, monkeypatch):
    """The working folder is the project of `ran`, whose files have the names of ours."""
    stage_code._read.cache_clear()
    monkeypatch.chdir(ran[0])
    yield ran[0]
    stage_code._read.cache_clear()


def test_code_is_excused_only_where_the_settings_are_the_default_pipeline_s(monkeypatch, in_copy):
    monkeypatch.setattr(provenance, "unmoved", lambda found: {"bm25", "train"})
    found = provenance.read((in_copy / "docs/studies/atlas/awareness.md").read_text(encoding="utf-8"))
    of = {stage: found.stages[stage]._replace(code="of then") for stage in ("bm25", "train")}
    then = found._replace(stages=found.stages | of)
    assert study_command._behind(then, "atlas", Path("params.yaml")) == ("code of train", ["bm25"])  # 7 steps


def test_a_picture_that_was_not_drawn_costs_no_table(tmp_path, capsys):
    (tmp_path / "there.svg").write_text("<svg></svg>", encoding="utf-8")
    shown = study_command._pictures(["missing", "there"], tmp_path, tmp_path / "out", "plain")
    assert shown == "\n![there](plain-there.svg)\n"
    assert (tmp_path / "out" / "plain-there.svg").is_file()
    assert "missing.svg was not drawn, as nothing was measured for it" in capsys.readouterr().err


def test_what_other_code_made_is_not_shown_as_this_commit_s(tmp_path, monkeypatch):
    study_toy.measured(tmp_path)
    monkeypatch.chdir(tmp_path)
    found = provenance.of_run("describe", [], "1234567", load(Path("params.yaml")))
    assert found.stages["describe"].code == provenance.today("describe", load(Path("params.yaml")), {})["describe"].code
    (tmp_path / "configs" / "code" / "probe.txt").unlink()  # made before there was such a stage
    with pytest.raises(ValueError, match=r"data/atlas/configs is of other code of probe; run `dvc repro`$"):
        provenance.of_run("describe", [], "1234567", load(Path("params.yaml")))
    (tmp_path / "configs" / "code" / "train.txt").write_text("other", encoding="utf-8")
    with pytest.raises(ValueError, match=r"data/atlas/configs is of other code of probe, train; run `dvc repro`$"):
        provenance.of_run("describe", [], "1234567", load(Path("params.yaml")))


def test_a_failed_run_ends_the_command_with_its_code_and_writes_no_table(tmp_path):
    folder = study_toy.create(tmp_path, dvc_ends_with=255)
    done = study_toy.study(folder, "plain")
    assert (done.returncode, "Traceback" in done.stderr) == (255, False)
    assert not (folder / "docs").exists()
    assert load(folder / "params.yaml") == GOOD


def test_a_study_is_not_run_with_other_parameters_than_dvc_would_take(tmp_path):
    folder = study_toy.create(tmp_path)
    (folder / "other.yaml").write_text((folder / "params.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    done = study_toy.study(folder, "plain", "--params", "other.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: --params other.yaml: is for --show and --check; a study runs with params.yaml\n"
    assert study_toy.study(folder, "plain", "--params", "other.yaml", "--show").returncode == 0


def test_a_study_waits_for_one_that_runs_in_the_same_clone(tmp_path):
    """Whose settings stand in params.yaml meanwhile."""
    folder = study_toy.create(tmp_path)
    params = folder / "params.yaml"
    alone, before = study_toy.study(folder, "plain", "--show").stdout, params.read_text(encoding="utf-8")
    with cache.workspace("studies", cache.fingerprint(str(folder))):
        params.write_text(before.replace("\nactive:", "\nactive_no_more:"), encoding="utf-8")
        second = study_toy.start(folder, "plain")
        assert f"in use by process {os.getpid()}; waiting" in second.stderr.readline()
        params.write_text(before, encoding="utf-8")
    out, errors = second.communicate()
    assert (second.returncode, out.startswith(alone)) == (0, True), errors
    assert params.read_text(encoding="utf-8") == before


def test_what_cannot_be_run_is_refused_before_it_is_trained(tmp_path):
    folder = study_toy.create(tmp_path, own=("top20", "top7"))
    done = study_toy.study(folder, "001-figure7", "--studies", "own.yaml")
    assert done.returncode == 1
    assert "grid.metrics: 'top7' is not a metric; known are top1, top5" in done.stderr
    done = study_toy.study(folder, "evidence", "--collection", "typo")
    assert (done.returncode, "'typo' is not one of collections (atlas," in done.stderr) == (1, True)
    done = study_toy.study(folder)
    assert (done.returncode, "name a study of studies.yaml, or give --check" in done.stderr) == (1, True)
    done = study_toy.study(folder, "evidence", "--check")
    assert (done.returncode, "--check is of all tables; leave out the study's name" in done.stderr) == (1, True)
    done = study_toy.study(folder, "--check", "--out", "none")
    assert (done.returncode, "none holds no tables; give the folder of studies" in done.stderr) == (1, True)
    assert not (folder / "reports").exists()
