"""What DVC does about model folders of a user's own."""

import shutil

import pytest

from tests import small_collection
from tests.small_pipeline import create

pytestmark = [pytest.mark.pipeline, pytest.mark.formats]


def test_other_weights_are_refused_where_they_are_loaded_and_reach_base_by_way_of_configs(tmp_path):
    project, weights = create(tmp_path / "project"), "passage_encoder/model.safetensors"
    small_collection.write_model(tmp_path / "seed0", seed=0)
    small_collection.write_model(tmp_path / "seed1", seed=1)
    shutil.copytree(tmp_path / "seed0" / "passage_encoder", project.folder / "models" / "own")
    project.set(**{"base.model": "models/own", "encoder.passage_tokens": 48})
    assert project.dvc("repro", "base") == ["configs", "fetch", "prepare", "base@base"]
    assert project.dvc("repro", "base") == []
    base = project.folder / "data/atlas/models/base" / weights
    bytes_before = base.read_bytes()
    shutil.copy(tmp_path / "seed1" / weights, project.folder / "models/own")
    refused = project.run("dvc", "repro", "--force", "--single-item", "base", check=False)
    assert refused.returncode != 0
    assert "models/own: model.safetensors changed" in refused.stderr
    assert "dvc repro -f configs" in refused.stderr
    assert project.dvc("repro", "-f", "configs") == ["configs"]
    assert project.dvc("repro", "base") == ["base@base"]
    assert base.read_bytes() != bytes_before
    assert project.dvc("repro", "base") == []
