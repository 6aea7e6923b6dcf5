"""The contracts of the pipeline, on the real stages at small size: bytes, what reruns when, arms, collections."""

import json
import re
import shlex
import sys

import pytest
from ruamel.yaml import YAML

from tests.small_collection import write_model
from tests.small_pipeline import Project, ran

pytestmark = pytest.mark.pipeline


@pytest.fixture
def project(built, tmp_path) -> Project:
    return built.copy(tmp_path / "project")


def test_repro_builds_a_table_that_compares_both_arms_and_then_has_nothing_to_do(built):
    table = (built.folder / "reports" / "atlas" / "table.md").read_text(encoding="utf-8")
    for row in ("bm25", "dpr", "eadpr"):
        assert re.search(rf"^\| {row} +\|", table, re.MULTILINE)
    assert (built.dvc("repro"), built.run("git", "status", "--porcelain").stdout) == ([], "")


def test_a_new_arm_builds_that_arm_and_the_ranking_that_it_mines_from(built, project):
    done = project.run("dvc", "exp", "run", "-S", "+active.eadpr-mined={negatives: eadpr, init: base}")
    arm_stages = ["negatives", "examples", "train", "encode", "retrieve", "probe", "evaluate"]
    again = ["retrieve@eadpr", "evaluate@eadpr"]  # training questions are ranked now, the others as before
    expected = ["configs", *(f"{stage}@eadpr-mined" for stage in arm_stages), *again, "report", "explore"]
    assert sorted(ran(done.stdout)) == sorted(expected)
    mined = json.loads((project.folder / "data/atlas/negatives/eadpr-mined/report.json").read_text())
    assert mined["negatives"] > 0
    ranked = [tree.folder / "data/atlas/rankings/eadpr/evaluate.parquet" for tree in (project, built)]
    assert ranked[0].read_bytes() == ranked[1].read_bytes()
    table = (project.folder / "reports/atlas/table.md").read_text(encoding="utf-8")
    assert re.search(r"^\| eadpr-mined +\|", table, re.MULTILINE)
    project.run("git", "checkout", "-q", "params.yaml")  # the arm is taken away again, without `dvc checkout`
    project.dvc("repro")
    # dvc.lock keeps the entries of stages that are gone; the others are those of before.
    stages = YAML(typ="safe").load(project.lock())["stages"]
    stages_before = YAML(typ="safe").load(built.lock())["stages"]
    assert {name: stages[name] for name in stages if "mined" not in name} == stages_before
    assert project.run("git", "status", "--porcelain", "metrics").stdout == ""


def test_an_edit_of_evaluation_code_retrains_nothing(project):
    metrics = project.folder / "src" / "eadpr" / "evaluation" / "metrics.py"
    text = metrics.read_text(encoding="utf-8")
    metrics.write_text(f"{text}\n# a comment\n", encoding="utf-8")
    assert project.dvc("repro") == ["configs"]
    metrics.write_text(f"{text}\nEDITED = True\n", encoding="utf-8")
    project.dvc("repro", "configs")  # a run that ends here
    publish = [sys.executable, "-m", "eadpr", "publish", "eadpr", "--to"]
    assert "of atlas has yet to run" in project.run(*publish, "refused", check=False, PYTHONPATH="src").stderr
    ran_stages = project.dvc("repro")
    project.run(*publish, "published", PYTHONPATH="src")
    assert set(ran_stages) <= {"configs", "evaluate_bm25", "evaluate@dpr", "evaluate@eadpr", "report", "explore"}
    assert "evaluate@eadpr" in ran_stages


def add(project: Project, passages: list[dict], questions: list[dict]) -> str:
    """Returns what `stages.add` says of the collection `mine` and commits it."""
    words = []
    for name, rows in (("passages", passages), ("questions", questions)):
        path = project.folder.parent / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        words += [f"--{name}", str(path)]
    output = project.run("python", "-m", "stages.add", "mine", *words, PYTHONPATH="src").stdout
    project.commit("my collection")
    return output


@pytest.mark.nightly
def test_one_switch_changes_the_collection_and_back_restores_it_from_the_cache(project):
    """Questions without answers are judged by passage id, an encoder finds evidence, and the command is `add`'s."""
    texts = [f"Town {i} lies by river {i}. It has houses of stone. Nobody knows why." for i in range(40)]
    passages = [{"id": f"p{i}", "title": f"Town {i}", "text": text} for i, text in enumerate(texts)]
    questions = [{"question": f"By which river lies Town {i}?", "positives": [f"p{i}"]} for i in range(40)]
    output = add(project, passages, questions)
    model = write_model(project.folder.parent / "encoder") / "passage_encoder"
    command = re.sub("-S base.model=.*train.steps=100", "", output.rpartition("next: ")[2]).replace("MODEL", str(model))
    ran_stages = ran(project.run(*shlex.split(command)).stdout)
    assert {"prepare", "train@dpr", "train@eadpr", "report"} <= set(ran_stages)
    metrics = json.loads((project.folder / "reports/mine/metrics/dpr.json").read_text())["own/test"]
    assert metrics["n_without_answers"] == metrics["n"] == metrics["n_relevant"] > 0
    assert "aa" not in metrics
    assert "aa_evidence" in metrics
    assert set(json.loads((project.folder / "metrics/mine.json").read_text())) == {"bm25", "dpr", "eadpr"}
    project.run("git", "checkout", "-f", "-q", "main")
    project.run("dvc", "checkout")
    assert project.dvc("repro") == ["configs"]  # params.yaml holds one more collection; what was built is untouched


def test_a_wrong_parameter_ends_in_configs_before_any_other_work(project):
    setting = "+active.x={negatives: '$(touch owned)', init: base}"
    done = project.run("dvc", "exp", "run", "-S", setting, check=False)
    assert done.returncode != 0
    assert set(ran(done.stdout)) <= {"configs"}
    assert "active.x.negatives" in done.stdout + done.stderr
    assert not (project.folder / "owned").exists()
    assert (project.folder / "data/atlas/configs/prepare.json").exists()
