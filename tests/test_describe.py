"""Tables of a collection and of what arms took, over the collection of `tests.evaluated`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from eadpr.runtime import files, runs
from eadpr.settings.recipes import fill_in
from eadpr.settings.resolve import load
from eadpr.storage import tables
from eadpr.storage.records import Question
from eadpr.studies import describe
from tests.evaluated import QUESTIONS, cells, write_inputs

pytestmark = pytest.mark.studies
ROOT = Path(__file__).resolve().parents[1]
RELATIONS = ["P1", "P2", None, "P1", "P1"]


def test_a_set_is_counted_with_where_its_positives_come_from(tmp_path):
    write_inputs(tmp_path)
    text = describe.describe_collection(tmp_path / "records", tmp_path / "positives" / "positives.parquet")
    assert text.startswith("5 passages of 7 words on average.")  # 5 + 9 + 7 + 8 + 4 words
    assert cells(text) == [
        ["question set", "questions", "positive given", "by BM25", "none, or not used"],
        ["main/dev", "4", "3", "1", "0"],
        ["more/dev", "2", "1", "1", "0"],
    ]
    assert describe.describe_relations(tmp_path / "records") is None


def test_relations_are_counted_by_set(tmp_path):
    write_inputs(tmp_path)
    rows = [row._replace(relation=relation) for row, relation in zip(QUESTIONS, RELATIONS, strict=True)]
    tables.write(tmp_path / "records" / "questions.parquet", Question, rows)
    assert cells(describe.describe_relations(tmp_path / "records")) == [
        ["relation", "main/dev", "more/dev", "example"],
        ["P1", "2", "2", "Who founded Rome?"],
        ["P2", "1", "0", "when was the moon landing"],
    ]


@pytest.fixture
def made(tmp_path):
    """Two arms of params.yaml and what was trained of each."""
    shared = fill_in(load(ROOT / "params.yaml"))
    for arm, loss in (("dpr", {"lambda": 0.0, "tau1": 0.0, "tau2": 0.0}), ("eadpr", {})):
        sections = {"loss": shared["loss"] | loss, "train": shared["train"] | {"batch_size": 8, "accumulation": 2}}
        files.write_json(tmp_path / "configs" / arm / "train.json", sections)
        files.write_json(tmp_path / "training" / arm / "metrics.json", {"steps": 1200})
        encoder = tmp_path / "models" / arm / "passage_encoder" / "model.safetensors"
        encoder.parent.mkdir(parents=True)
        save_file({"a": np.zeros((1000, 300), np.float32), "b": np.zeros(50_000, np.float32)}, encoder)
    return tmp_path


def test_resources_are_what_the_settings_say_and_the_last_training_took(made, monkeypatch):
    monkeypatch.setenv("EADPR_CACHE", str(made / "cache"))
    of_dpr = ["--config", str(made / "configs" / "dpr" / "train.json"), "--out", str(made / "models" / "dpr")]
    for older, seconds in (["--older"], 1.0), ([], 1234.5):  # the last one counts
        runs.record(["train", *older, *of_dpr], seconds)
    runs.record(["encode", "--out", str(made / "models" / "eadpr")], 1.0)
    active = {"dpr": {"negatives": "bm25", "init": "base"}, "eadpr": {"negatives": "dpr", "init": "base"}}
    values = {"active": active, "fused": {}}
    header, dpr, eadpr = cells(describe.describe_training(made, values))
    assert header[0] == "arm"
    assert dpr[:-1] == ["dpr", "0.3", "16", "2", "1,200", "0", "1,234"]
    assert float(dpr[-1]) > 0
    assert eadpr == ["eadpr", "0.3", "16", "3", "1,200", "1", "–", "–"]
    between = {"fused": {"both": {"first": "bm25", "second": "dpr"}}}
    mined = {"active": active | {"eadpr": {"negatives": "both", "init": "base"}}}
    assert cells(describe.describe_training(made, values | between | mined))[-1] == eadpr
    shutil.rmtree(made / "models" / "eadpr")
    with pytest.raises(FileNotFoundError, match=r"models/eadpr does not exist; train the arm first \(dvc repro\)"):
        describe.describe_training(made, values)


def test_what_a_training_with_another_config_took_is_not_shown(made, monkeypatch):
    monkeypatch.setenv("EADPR_CACHE", str(made / "cache"))
    config = made / "configs" / "dpr" / "train.json"
    values = {"active": {"dpr": {"negatives": "bm25", "init": "base"}}, "fused": {}}
    usual, sections = config.read_bytes(), files.read_json(config)
    files.write_json(config, sections | {"train": sections["train"] | {"steps": 5}})
    runs.record(["train", "--config", str(config), "--out", str(made / "models" / "dpr")], 12.0)
    assert cells(describe.describe_training(made, values))[1][-2] == "12"
    config.write_bytes(usual)  # with the trained model, from DVC's cache
    assert cells(describe.describe_training(made, values))[1][-2] == "–"


def test_it_prints_or_writes_a_page_with_its_commit(made, monkeypatch):
    write_inputs(made)
    (made / "data").mkdir()
    (made / "data" / "atlas").symlink_to(made)
    values = load(ROOT / "params.yaml") | {"active": {arm: {"negatives": "bm25"} for arm in ("dpr", "eadpr")}}
    monkeypatch.setattr(describe, "load", lambda _: values)
    monkeypatch.chdir(made)
    monkeypatch.setattr(describe.provenance, "commit", lambda: "1234567")
    text = describe.main(params=Path("params.yaml"), out=None)
    assert text.startswith("# atlas\n\n5 passages")
    assert not (made / "docs").exists()
    assert describe.main(params=Path("params.yaml"), out=Path("docs")) == "describe: docs/atlas/collection.md"
    title, measured, *others = (made / "docs/atlas/collection.md").read_text(encoding="utf-8").split("\n\n")
    assert measured.startswith("`eadpr describe`, measured at 1234567 (")
    assert "\n\n".join([title, *others]).rstrip() == text


def test_a_command_that_succeeds_is_recorded_and_one_that_fails_is_not(tmp_path):
    program = tmp_path / "toy.py"
    program.write_text(
        "from eadpr.settings.command import stage\n\n"
        "@stage(out='C/out')\ndef main(*, out):\n    if out.name == 'bad':\n        raise ValueError\n"
        "    return 'done'\n",
        encoding="utf-8",
    )
    env = os.environ | {"EADPR_CACHE": str(tmp_path / "cache"), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    (tmp_path / "toy.json").write_text("{}")
    words = ["--config", "toy.json", "--out"]
    codes = [
        subprocess.run([sys.executable, "toy.py", *words, out], cwd=tmp_path, env=env, check=False).returncode
        for out in ("bad", "good")
    ]
    assert codes == [1, 0]
    (path,) = (tmp_path / "cache" / "runs").glob("*.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["command"] == ["toy", *words, "good"]
    assert found["seconds"] >= 0
    assert found["memory_gib"] > 0
    assert found["libraries"]["numpy"] == np.__version__
