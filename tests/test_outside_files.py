"""What DVC does about model folders of a user's own."""

import shutil
from pathlib import Path

import pytest

from tests import small_collection
from tests.small_pipeline import Project, create

pytestmark = [pytest.mark.pipeline, pytest.mark.formats]


@pytest.fixture
def project(tmp_path) -> Project:
    """Stage `base` built from the folder models/own."""
    project = create(tmp_path / "project")
    small_collection.write_model(tmp_path / "seed0", seed=0)
    small_collection.write_model(tmp_path / "seed1", seed=1)
    shutil.copytree(tmp_path / "seed0" / "passage_encoder", project.folder / "models" / "own")
    project.set(**{"base.model": "models/own", "encoder.passage_tokens": 48})
    assert project.dvc("repro", "base") == ["configs", "fetch", "prepare", "base@base"]
    assert project.dvc("repro", "base") == []
    return project


def replace_weights(project: Project) -> Path:
    """Put other weights into models/own; returns the same model's file in what `base` made."""
    shutil.copy(project.folder.parent / "seed1/passage_encoder/model.safetensors", project.folder / "models/own")
    return project.folder / "data/atlas/models/base/passage_encoder/model.safetensors"


def test_other_weights_are_refused_where_they_are_loaded_and_reach_base_by_way_of_configs(project):
    made = replace_weights(project)
    before = made.read_bytes()
    refused = project.run("dvc", "repro", "--force", "--single-item", "base", check=False)
    assert refused.returncode != 0
    assert "models/own: model.safetensors changed" in refused.stderr
    assert "dvc repro -f configs" in refused.stderr
    assert project.dvc("repro", "-f", "configs") == ["configs"]
    assert project.dvc("repro", "base") == ["base@base"]
    assert made.read_bytes() != before
    assert project.dvc("repro", "base") == []


def test_a_folder_that_is_a_dependency_of_configs_is_watched_and_may_be_missing_for_the_lock_check(project, tmp_path):
    """docs/howto/model-folders.md."""
    pipeline = project.folder / "dvc.yaml"
    text = pipeline.read_text(encoding="utf-8")
    watched = "    - params.yaml\n    - models/own\n"
    pipeline.write_text(text.replace("    - params.yaml\n", watched, 1), encoding="utf-8")
    assert (project.dvc("repro", "base"), project.dvc("repro", "base")) == (["configs"], [])
    replace_weights(project)
    assert project.dvc("repro", "base") == ["configs", "base@base"]
    assert project.dvc("repro", "base") == []
    shutil.move(project.folder / "models", tmp_path / "elsewhere")
    assert "Running stage" not in project.run("dvc", "repro", "--dry", "--allow-missing", "base").stdout
