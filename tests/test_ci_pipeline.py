"""`.ci/pipeline` on clones of the small pipeline: what it pulls, reruns, reports and answers."""

import hashlib
import shutil
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.small_pipeline import Project, ran

pytestmark = pytest.mark.pipeline

UP_TO_DATE = "dvc.lock is up to date. Stages run: none"
DISTRACTORS = "data/atlas/distractors/distractors.parquet"


@pytest.fixture(scope="module")
def pushed(built, tmp_path_factory) -> Project:
    """The built project with its data in a folder remote."""
    folder = tmp_path_factory.mktemp("pushed")
    project = built.copy(folder / "project")
    project.run("dvc", "remote", "add", "-d", "store", str(folder / "store"))
    project.commit("remote")
    project.run("dvc", "push")
    return project


def clone(origin: Project, folder: Path) -> Project:
    origin.run("git", "clone", "-q", str(origin.folder), str(folder))
    project = Project(folder)
    project.run("git", "config", "user.email", "test@example.org")
    project.run("git", "config", "user.name", "test")
    return project


def pipeline(project: Project, expected: int, **environment: str) -> tuple[list[str], str]:
    """Run the script, expect its exit status, and return the stages that ran and the report."""
    done = project.run(".ci/pipeline", "--base", "origin/main", check=False, **environment)
    assert done.returncode == expected, done.stdout + done.stderr
    return ran(done.stdout), (project.folder / ".cache/ci/report.md").read_text(encoding="utf-8")


def rows(report: str) -> list[list[str]]:
    """The cells of the report's tables."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in report.splitlines()]


def edit(project: Project, module: str) -> None:
    with (project.folder / module).open("a", encoding="utf-8") as file:
        file.write("\nEDITED = True\n")


@pytest.mark.nightly
def test_a_parameter_reruns_what_depends_on_it_reports_differences_and_is_stale_until_committed(pushed, tmp_path):
    project = clone(pushed, tmp_path / "clone")
    project.set(**{"loss.tau1": 0.5})
    project.commit("tau1")
    stages, report = pipeline(project, 3)
    after_training = ["encode@eadpr", "retrieve@eadpr", "probe@eadpr", "evaluate@eadpr"]
    assert sorted(stages) == sorted(["configs", "train@eadpr", *after_training, "report", "explore"])
    assert "**dvc.lock is stale" in report
    assert ["params.yaml", "loss.tau1", "1.0", "0.5"] in rows(report)
    changed = {tuple(row[:2]) for row in rows(report) if row and row[0].startswith("metrics/")}
    assert {path for path, _ in changed} == {"metrics/atlas.json"}
    assert {name.split(".")[0] for _, name in changed} == {"eadpr"}
    assert "| eadpr |" in report  # the table of both arms

    project.commit("results")
    stages, report = pipeline(project, 0)
    assert stages == []
    assert UP_TO_DATE in report
    assert ["params.yaml", "loss.tau1", "1.0", "0.5"] in rows(report)


@pytest.mark.nightly
def test_what_the_remote_lacks_is_rebuilt_with_the_same_bytes(pushed, tmp_path):
    store = shutil.copytree(pushed.folder.parent / "store", tmp_path / "store")
    content = (pushed.folder / DISTRACTORS).read_bytes()
    name = hashlib.md5(content).hexdigest()
    (store / "files" / "md5" / name[:2] / name[2:]).unlink()
    project = clone(pushed, tmp_path / "clone")
    project.run("dvc", "remote", "modify", "--local", "store", "url", str(store))
    edit(project, "src/eadpr/evaluation/evidence.py")
    stages, _ = pipeline(project, 3)
    assert sorted(stages) == ["configs", "distractors", "evaluate_evidence"]
    assert (project.folder / DISTRACTORS).read_bytes() == content


@pytest.mark.nightly
def test_an_s3_remote_serves(built, tmp_path, monkeypatch):
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in {**keys, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket="store")
        source = built.copy(tmp_path / "source")
        source.run("dvc", "remote", "add", "-d", "store", "s3://store/eadpr")
        source.commit("remote")
        project = clone(source, tmp_path / "clone")
        for user in (source, project):
            user.run("dvc", "remote", "modify", "--local", "store", "endpointurl", endpoint)
        source.run("dvc", "push")
        edit(project, "stages/report.py")
        stages, _ = pipeline(project, 3)
        assert sorted(stages) == ["configs", "report"]
    finally:
        server.stop()
    for table in ("reports/atlas/table.md", DISTRACTORS):
        assert (project.folder / table).read_bytes() == (built.folder / table).read_bytes()


def test_a_stage_that_fails_is_neither_success_nor_a_stale_lock(built, tmp_path):
    project = clone(built, tmp_path / "clone")
    project.set(**{"train.steps": -1})
    done = project.run(".ci/pipeline", check=False)
    assert done.returncode not in (0, 3)
    assert "train.steps" in done.stdout
    assert "**The pipeline failed" in (project.folder / ".cache/ci/report.md").read_text(encoding="utf-8")


@pytest.mark.nightly
def test_metrics_that_nobody_committed_are_stale_and_the_folder_keeps_its_mode(built, tmp_path):
    project = clone(built, tmp_path / "clone")
    project.folder.chmod(0o751)
    assert project.run(".ci/lock", check=False).returncode == 0
    assert project.folder.stat().st_mode & 0o777 == 0o751
    project.run("git", "rm", "-q", "metrics/atlas.json")
    done = project.run(".ci/lock", check=False)
    assert done.returncode == 3
    assert "metrics/atlas.json is in dvc.lock and not in git" in done.stderr


def test_an_unchanged_clone_needs_no_data_nor_remote_and_an_edit_of_a_late_stage_is_found_so(built, tmp_path):
    project = clone(built, tmp_path / "clone")
    stages, report = pipeline(project, 0)
    assert stages == []
    assert UP_TO_DATE in report
    assert not (project.folder / "data/atlas").exists()
    edit(project, "src/eadpr/evaluation/metrics.py")
    done = project.run(".ci/lock", check=False)
    assert done.returncode == 3
    assert "evaluate_bm25" in done.stdout
