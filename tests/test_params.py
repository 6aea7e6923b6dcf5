"""Contract 5 of the design: what is wrong in params.yaml is found at once, and named."""

from __future__ import annotations

import copy
import json

import pytest

from eadpr import params
from tests.code_deps import ROOT

GOOD = params.load(ROOT / "params.yaml")


def changed(path: str, value: object) -> dict:
    values = copy.deepcopy(GOOD)
    at = values
    *parents, last = path.split(".")
    for key in parents:
        at = at.setdefault(key, {})
    at[last] = value
    return values


def test_the_default_writes_one_file_per_stage_and_arm_stage():
    files = params.configs(GOOD)
    expected = {f"{stage}.json" for stage in params.STAGES}
    expected |= {f"{arm}/{stage}.json" for arm in GOOD["active"] for stage in params.ARM_STAGES}
    assert set(files) == expected
    json.dumps(files, allow_nan=False)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("loss.tau1", "a lot", "loss.tau1: Input should be a valid number"),
        ("loss.tau1", -1, "loss.tau1: Input should be greater than or equal to 0"),
        ("loss.tau3", 1.0, "loss.tau3: unknown key"),
        ("train.batch_size", 0, "train.batch_size"),
        ("train.batch_size", 8.5, "train.batch_size: Input should be a valid integer"),
        ("bm25.k1", True, "bm25.k1"),
        ("nonsense", {}, "nonsense: unknown key"),
        ("collection", "wiki19", "collection: 'wiki19' is not one of collections"),
        ("collection", "atlas; touch owned", "collection: String should match pattern"),
        ("active", {}, "no arm is active"),
        (
            "active.dpr.negatives",
            "eadpr-mined",
            "active.dpr.negatives: 'eadpr-mined' is neither bm25 nor an active arm",
        ),
        ("active.dpr.negatives", "$(touch owned)", "active.dpr.negatives: String should match pattern"),
        ("active.new", {"negatives": "bm25", "init": "base"}, "active.new: no such arm under arms"),
        ("active.bm25", {"negatives": "bm25", "init": "base"}, "active.bm25: this name is reserved"),
        ("arms.eadpr.loss.tau9", 1, "arms.eadpr.loss.tau9: unknown key"),
        ("arms.eadpr.bm25", {"k1": 1.2}, "arms.eadpr.bm25: cannot be set here"),
        ("arms.eadpr.loss.tau1", "x", "arms.eadpr.loss.tau1: Input should be a valid number"),
        ("collections.squad-open.settings.train.steps", "many", "collections.squad-open.settings.train.steps"),
        ("collections.squad-open.source.files", "psgs.tsv", "collections.squad-open.source.files"),
        ("arms.eadpr.examples", {"strategy": "none"}, "examples.strategy of arm eadpr is none, but its loss uses"),
        ("evaluate.mrr_at", 500, "evaluate: a metric looks at rank 500"),
        ("report.baseline", "dprr", "report: 'dprr' is not an arm"),
        ("report.compare", {"eadpr": "nosuch"}, "report: 'nosuch' is not an arm"),
        ("probe.strategy", "answer", "probe.strategy: 'answer' is not in evidence.strategies"),
    ],
)
def test_what_is_wrong_is_named(path, value, message):
    with pytest.raises(ValueError, match=r"params\.yaml: ") as error:
        params.configs(changed(path, value))
    assert message in str(error.value)


def test_a_missing_section_is_named():
    values = copy.deepcopy(GOOD)
    del values["loss"]
    with pytest.raises(ValueError, match="loss: Field required"):
        params.configs(values)


def test_settings_merge_shared_then_collection_then_arm():
    values = changed("collection", "squad-open")
    values["collections"]["squad-open"]["settings"]["train"] = {"steps": 7}
    values["arms"]["eadpr"] = {"loss": {"tau1": 0.25}}
    files = params.configs(values)
    assert files["eadpr/train.json"]["train"]["steps"] == 7
    assert files["eadpr/train.json"]["loss"]["tau1"] == 0.25
    assert files["eadpr/train.json"]["loss"]["tau2"] == values["loss"]["tau2"]


def test_a_changed_loss_weight_changes_only_the_arms_that_use_it():
    before, after = params.configs(GOOD), params.configs(changed("loss.tau1", 0.5))
    assert {name for name in before if before[name] != after[name]} == {"eadpr/train.json"}


def test_anchors_are_refused_because_dvc_loses_overrides_behind_them(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text("a: &x {b: 1}\nc: *x\n")
    with pytest.raises(ValueError, match=r"params\.yaml:1: anchors and aliases"):
        params.load(path)


@pytest.mark.parametrize("text", ["a: [1", "- 1\n- 2\n", "a: 1\na: 2\n"])
def test_broken_yaml_is_refused(tmp_path, text):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"params\.yaml"):
        params.load(path)


def test_exponents_without_a_point_are_numbers(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text("lr: 1e-06\n")  # what `dvc exp run -S train.lr=1e-6` writes; YAML 1.1 reads it as text
    assert params.load(path) == {"lr": 1e-06}


def test_the_reference_form_leaves_arms_without_distractors_alone():
    files = params.configs(changed("loss.form", "reference"))
    assert files["eadpr/train.json"]["loss"]["form"] == "reference"
    assert files["dpr/train.json"]["loss"]["form"] == "paper"
