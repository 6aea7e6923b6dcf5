"""params.yaml: what is wrong is found before any work and named, and each stage gets its settings."""

import copy
import json
from pathlib import Path
from typing import get_args, get_origin

import pytest

from eadpr.corpus.sources import Prepare, Source
from eadpr.runtime.section import Sets
from eadpr.settings import resolve as params
from eadpr.settings.command import declared
from eadpr.settings.model import Layout, Of
from eadpr.settings.yaml import SettingError
from eadpr.writers.config import EndpointTask, Given, Seq2Seq, Writer
from tests.repository import ROOT

GOOD = params.load(ROOT / "params.yaml")
# Two arms are enough, and one that is the shared sections as they are shows what these do.
GOOD["active"] = {arm: edges for arm, edges in GOOD["active"].items() if arm in ("dpr", "eadpr")}
GOOD["arms"]["eadpr"] = {}


CONFIG_OF = {"base": "bases/base.json", "annotator": "annotator.json"}
ACTIVE = {"negatives": "bm25", "init": "base"}
AGAIN = {"repeats": "dpr", "seed": 2} | ACTIVE
ARM_DPR = GOOD["arms"]["dpr"]
TWO = {"encoder": {"shared": False}}
STUCK = TWO | {"train": {"freeze": "passage"}, "loss": ARM_DPR["loss"] | {"stop_gradient": "question"}}
MEASURED = {"generators": ["removed", "endpoint"], "arms": ["dpr", "eadpr"], "bm25": ["bm25"], "counts": [0, 20]}
MDR = {"of": "eadpr", "init": "base"}
FROM_BM25 = {"ranking": "bm25", "init": "models/base"}
TAUGHT = {"kind": "paths", "ranking": "mdr", "init": "models/base"}
EACH = {"examples": {"positive": "each"}}
READING = {"readers": ["x"], "rankings": ["bm25"], "gold": []}
CLEAN = {"of": "bm25", "readers": ["of1", "of0"]}
HALVES = {f"of{half}": FROM_BM25 | {"half": half} for half in (0, 1)}
WRITTEN = {"distractors.forms": ["cut", "written"], "examples.forms": {"cut": 0.5, "written": 0.5}}
PLACEBOS = ["placebo", "placebo_second", "placebo_words", "placebo_inside"]
OF_WINDOWS, OF_ANSWERS = (
    {"evidence.strategies": ["pseudo", "gold", strategy, *PLACEBOS], "evidence.placebo_of": strategy}
    for strategy in ("window", "answer")
)
UNPROBED = {"probe.placebos": []}
HYBRID = {"fused.hybrid": {"first": "bm25", "second": "eadpr"}, "positives.validation": 0}


def changed(path: str, value: object) -> dict:
    return with_changes(GOOD, {path: value})


def with_changes(values: dict, changes: dict[str, object]) -> dict:
    """A copy of the values with others at these dotted keys."""
    values = copy.deepcopy(values)
    for path, value in changes.items():
        at = values
        *parents, last = path.split(".")
        for key in parents:
            at = at.setdefault(key, {})
        at[last] = copy.deepcopy(value)
    return values


def refused(values: dict) -> SettingError:
    with pytest.raises(SettingError, match=r"^params\.yaml: ") as error:
        params.configs(values)
    return error.value


def test_every_name_in_an_entry_is_an_edge():
    entries = {
        kind: get_args(field.annotation)[1]
        for kind, field in Layout.model_fields.items()
        if kind not in ("collections", "arms", "bases") and get_origin(field.annotation) is dict
    }
    plain = {
        (kind, field)
        for kind, entry in entries.items()
        for field, info in entry.model_fields.items()
        if not any(isinstance(said, Of) for said in info.metadata)
    }
    assert plain == {("active", "repeats"), ("active", "seed")}  # other trainings of an arm, not made from it


def test_the_default_writes_one_file_per_stage_and_arm_stage():
    files = params.configs(GOOD)
    expected = {f"{arm}/{stage}.json" for arm in GOOD["active"] for stage in ("negatives", "examples", "train")}
    expected |= {"bases/base.json"} | {config for config in declared() if "{" not in config}
    assert set(files) == expected
    json.dumps(files, allow_nan=False)


@pytest.mark.parametrize(("path", "value"), [
    ("loss.tau1", "a lot"), ("loss.tau1", -1), ("loss.tau3", 1.0), ("train.batch_size", 8.5), ("bm25.k1", True),
    ("bm25.depth", 2**70), ("train.learning_rate", float("nan")), ("nonsense", {}), ("collection", "wiki19"),
    ("collection", "atlas; touch owned"), ("active", {}), ("active.dpr.negatives", "eadpr-mined"),
    ("active.dpr.negatives", "$(touch owned)"), ("active.new", ACTIVE), ("active.bm25", ACTIVE),
    ("active.gold", ACTIVE), ("active.dpr.init", "base2"), ("active.picl", AGAIN),
    ("fused.dpr", {"first": "bm25", "second": "eadpr"}), ("denoised.dpr", CLEAN), ("multihop.eadpr", MDR),
    ("query_sides.base", {"of": "eadpr"}), ("negatives.depth", 101), ("beam.width", 0), ("retrieve.index", "Exact"),
    ("readers.x", {"ranking": "bm25", "init": "annotator", "kind": "fid", "passages": 101}),
    ("reading", READING | {"gold": ["gold"]}), ("reading", READING | {"rankings": ["gold"]}), ("read.questions", 0),
    ("path_reader.token", 99), ("path_reader.tokens", 15), ("path_reader.kind", "fid"), ("reader.half", 2),
    ("denoised.clean", CLEAN | {"below": 0.5, "above": 0.4}), ("facts.unseen", ["P18"]), ("facts.questions", 0),
    ("arms.picl.loss", {"form": "reference", "stop_gradient": "passage"}),
    ("arms.picl.loss", {"form": "reference", "dpr": 0.5}),
    ("arms.picl.loss", {"form": "reference", "balance": "placebo"}),
    ("arms.dpr.loss", ARM_DPR["loss"] | {"anchor": "passage", "stop_gradient": "symmetric"}),
    ("arms.dpr.loss", ARM_DPR["loss"] | {"anchor": "passage", "placebo": 0.5}),
    ("paq.min_questions", 0), ("arms.eadpr.bm25", {"k1": 1.2}), ("arms.eadpr.loss.tau1", "x"),
    ("arms.eadpr.examples.placebos", True), ("collections.squad-open.settings.train.steps", "many"),
    ("collections.squad-open.source.files", "psgs.tsv"), ("written.length", [2.0, 0.5]), ("written.by", "removed"),
    ("written.strategies", []), ("endpoint.evidence.prompt", "{spans}"), ("distractors.forms", ["filled"]),
    ("distractors.fillers", "bm25"), ("robustness", MEASURED | {"arms": ["dpr", "dpr"]}),
    ("seq2seq.prompt", "{text} {answer}"), ("endpoint.url", "https://me:secret@host/v1"), ("report.baseline", "dprr"),
    ("report.compare", {"eadpr": "nosuch"}), ("probe.strategy", "answer"), ("collections.atlas.sets.train", []),
    ("collections.atlas.sets.evaluate", []), ("collections.sources", GOOD["collections"]["atlas"]),
    ("collections.collections", GOOD["collections"]["atlas"]), ("report.columns", ["top1", "top10"]),
    ("report.columns", ["score_difference"]), ("report.by.position", ["top7"]), ("report.differences", ["mrr10"]),
])  # fmt: skip
def test_a_wrong_value_is_named_by_its_key(path, value):
    assert refused(changed(path, value)).key == path


@pytest.mark.parametrize(("path", "value", "key"), [
    ("evaluate.top_k", [1, -(2**60)], "evaluate.top_k.1"), ("read.top_k", [20, 5], "read"),
    ("active.dpr.seed", 2, "active.dpr"), ("active.dpr2", AGAIN | {"repeats": "picl"}, "active.dpr2.repeats"),
    ("active.dpr2", AGAIN | {"seed": -1}, "active.dpr2.seed"),
    ("fused.hybrid", {"first": "bm25", "second": "picl"}, "fused.hybrid.second"),
    ("fused.hybrid", {"first": "bm25", "second": "dpr", "k": -1}, "fused.hybrid.k"),
    ("fused.hybrid", {"first": "bm25", "second": "dpr", "bye": 1}, "fused.hybrid.bye"),
    ("multihop.mdr", MDR | {"of": "picl"}, "multihop.mdr.of"),
    ("multihop.mdr", MDR | {"init": "bm25"}, "multihop.mdr.init"), ("multihop.mdr", MDR, "examples.positive"),
    ("multihop.mdr", MDR | {"beam": {}}, "multihop.mdr.beam"),
    ("multihop.mdr", MDR | {"train": {"batch_size": 0}}, "multihop.mdr.train.batch_size"),
    ("bases.dpr", {}, "active.dpr"), ("query_sides.dpr", {"of": "eadpr"}, "active.dpr"),
    ("query_sides.tuned", {"of": "picl"}, "query_sides.tuned.of"),
    ("query_sides.tuned", {"of": "dpr", "top_k": 0}, "query_sides.tuned.top_k"),
    ("query_sides.tuned", {"of": "dpr", "sets": ["atlas/test"]}, "query_sides.tuned.sets"),
    ("readers.x", FROM_BM25 | {"ranking": "picl"}, "readers.x.ranking"),
    ("readers.x", FROM_BM25 | {"init": "models/b"}, "readers.x.init"),
    ("readers.x", FROM_BM25 | {"init": "annotator"}, "readers.x.init"),
    ("readers.x", FROM_BM25 | {"init": "../x"}, "readers.x.init"), ("readers.x", {"ranking": "bm25"}, "readers.x.init"),
    ("reader.tokens", 60, "reader"), ("reader.passages", 1, "reader"), ("reader.negatives.most", 9, "reader.negatives"),
    ("readers.x", FROM_BM25 | {"depth": 101}, "readers.x.depth"), ("reading.readers", ["x"], "reading"),
    ("reading", READING, "reading.readers"), ("reading.gold", ["golden"], "reading.gold.0"),
    ("readers.x", TAUGHT, "readers.x.ranking"), ("readers.x", TAUGHT | {"ranking": "bm25"}, "readers.x.ranking"),
    ("readers.x", TAUGHT | {"tokens": 9}, "readers.x.tokens"),
    ("denoised.clean", CLEAN | {"of": "picl"}, "denoised.clean.of"),
    ("denoised.clean", CLEAN, "denoised.clean.readers"),
    ("denoised.clean", CLEAN | {"readers": ["of1"]}, "denoised.clean.readers"),
    ("bases.wide", {"hidden": 0}, "bases.wide.hidden"), ("bases.wide", {"layers": 10**9}, "base"),
    ("base.hidden", 2**20, "base"), ("annotator.build.width", 130, "annotator.build"),
    ("arms.eadpr.loss.anchor", "passage", "arms.eadpr.loss"), ("arms.dpr.loss.dpr", 0.0, "arms.dpr.loss"),
    ("collections.atlas.settings",
     {"evidence": {"strategies": ["pseudo"]}, "probe": {"placebos": []}, "loss": {"balance": "placebo"}},
     "evidence.strategies"),
    ("arms.eadpr", {"loss": {"balance": "placebo"}, "examples": {"strategy": "sentence"}}, "evidence.placebo_of"),
    ("arms.dpr.loss.placebo", 0.5, "examples.strategy"),
    ("arms.eadpr.examples", {"strategy": "none"}, "examples.strategy"),
    ("arms.eadpr.examples", {"strategy": "window"}, "examples.strategy"),
    ("arms.dpr", ARM_DPR | {"train": {"freeze": "passage"}}, "train.freeze"),
    ("arms.dpr", ARM_DPR | STUCK, "train.freeze"), ("arms.dpr.train", {"upsample": {"nq/train": 4}}, "train.upsample"),
    ("arms.dpr.train", {"upsample": {"atlas/train": -1}}, "arms.dpr.train.upsample.atlas/train"),
    ("arms.eadpr.examples", {"forms": {"filled": 0.5}}, "arms.eadpr.examples.forms"),
    ("arms.eadpr.examples", {"forms": {"mixed": 1.0}}, "arms.eadpr.examples.forms.mixed"),
    ("arms.eadpr.examples", {"forms": {"cut": 0.0, "swapped": 1.0}}, "examples.forms"),
    ("arms.eadpr.examples.forms", {"cut": 0.0, "written": 1.0}, "examples.forms"),
    ("arms.eadpr.examples", {"strategy": "placebo_words", "forms": {"cut": 0.5, "filled": 0.5}}, "examples.forms"),
    ("evaluate.recall_at", [20, 500], "evaluate"), ("evaluate.top_k", [1, 5, 100], "report.columns"),
    ("robustness.generators", ["removed"], "robustness"),
    ("robustness", MEASURED | {"generators": ["rule"]}, "robustness.generators.0"),
    ("robustness", MEASURED | {"arms": ["picl"]}, "robustness.arms"),
    ("robustness", MEASURED | {"arms": ["$(touch owned)"]}, "robustness.arms.0"),
    ("robustness", MEASURED | {"counts": [0, 21]}, "robustness.counts"),
    ("robustness.bm25", ["bm25"], "robustness"), ("robustness.bm25", ["dpr"], "robustness.bm25.0"),
    ("robustness.counts", [1, 5], "robustness"), ("near_duplicates.candidates", 19, "near_duplicates"),
    ("report.columns", [5], "report.columns.0"), ("annotator.model", "none", "annotator.model"),
    ("collections.squad-open.settings.evaluate", {"mrr_at": 10}, "report.columns (for collection squad-open)"),
])  # fmt: skip
def test_a_wrong_value_is_named_by_the_key_of_what_has_to_be_changed(path, value, key):
    assert refused(changed(path, value)).key == key


@pytest.mark.parametrize(("changes", "message"), [
    ({"train.steps": "x" * 200}, f"train.steps: Input should be a valid integer (found '{'x' * 78}…)"),
    ({"loss.tau1": -1, "loss.tau3": 2}, "loss.tau1: Input should be greater than or equal to 0 (found -1)\n"
     "params.yaml: loss.tau3: unknown key (found 2)"),
    ({"fused.hybrid": {"first": "bm25", "second": "picl"}},
     "fused.hybrid.second: 'picl' is not one of bm25, active (dpr, eadpr); it is under arms, but not active"),
    ({"arms.eadpr.examples": {"forms": {"cut": 0.0, "swapped": 1.0}}},
     "examples.forms: 'swapped' of arm eadpr is not in distractors.forms; use 'cut' or 'filled'"),
    ({"negatives.depth": 101}, "negatives.depth: 101 is more than bm25.depth, the depth of the ranking bm25 that arm"
     " dpr mines, 100; lower the one, or raise the other"),
    (HYBRID, "positives.validation: is 0, but fused.hybrid, by: weighted, needs some; raise it, or sets.validation"),
    ({"active.dpr.negatives": "eadpr", "active.eadpr.negatives": "dpr"},
     "active.dpr: is its own input (active.dpr -> active.eadpr -> active.dpr); name another ranking, reader or model in"
     " one of them"),
    ({"probe.strategy": "window"} | OF_WINDOWS, "probe.placebos: 'placebo' is a sentence, but probe.strategy window is"
     " inside one; use 'placebo_words' or 'placebo_inside'"),
])  # fmt: skip
def test_a_message_says_what_is_wrong_and_what_to_do(changes, message):
    assert str(refused(with_changes(GOOD, changes))) == f"params.yaml: {message}"


@pytest.mark.parametrize(("changes", "key"), [
    ({"evidence.positive": "first", "examples.positive": "random"}, "examples.positive"),
    ({"active.eadpr2": {"repeats": "eadpr", "seed": 2, "negatives": "dpr", "init": "base"}, "negatives.kind": "given"},
     "active.eadpr2.negatives"),
    ({"query_sides.tuned": {"of": "eadpr"}, "positives.validation": 0}, "positives.validation"),
    ({"train.keep": "best", "positives.validation": 0}, "positives.validation"),
    ({"arms.eadpr.train": {"keep": "best", "validation_questions": 0}}, "train.validation_questions"),
    ({"train.hard_negatives": 31}, "train.hard_negatives"),
    ({"active.dpr2": AGAIN, "train.seed": 2}, "active.dpr2.seed"),
    ({"active.dpr2": AGAIN, "active.dpr3": AGAIN}, "active.dpr3.seed"),
    ({"readers.x": FROM_BM25, "reading": READING, "read.top_k": [5, 101]}, "read.top_k"),
    ({"probe.also": ["gold", "window"]}, "probe.also"),
    ({"evidence.strategies": ["pseudo", "gold", "placebo"]}, "probe.placebos"),
    ({"probe.strategy": "gold"}, "evidence.placebo_of"),
    (OF_WINDOWS | {"probe.strategy": "window", "probe.placebos": ["placebo_second"]}, "probe.placebos"),
    (OF_WINDOWS | UNPROBED | {"examples.strategy": "window", "loss.balance": "placebo"}, "examples.strategy"),
    (OF_ANSWERS | UNPROBED | {"arms.eadpr": {"loss": {"balance": "both"}, "examples": {"strategy": "answer"}}},
     "examples.strategy"),
    ({"robustness": MEASURED, "near_duplicates.strategy": "window"}, "near_duplicates.strategy"),
    (WRITTEN | {"written.strategies": ["window"]}, "written.strategies"),
    (WRITTEN | {"examples.strategy": "gold"}, "examples.strategy"),
    (WRITTEN | {"loss.balance": "placebo"}, "examples.forms"),
])  # fmt: skip
def test_settings_that_do_not_fit_each_other_are_named(changes, key):
    assert refused(with_changes(GOOD, changes)).key == key


def test_an_arms_forms_take_the_place_of_the_sections_in_its_examples_alone():
    own = {"examples.forms": {"filled": 1.0}, "arms.eadpr.examples": {"forms": {"cut": 1.0}}}
    assert params.configs(with_changes(GOOD, own))["eadpr/examples.json"]["examples"]["forms"] == {"cut": 1.0}
    before, after = params.configs(GOOD), params.configs(changed("active.eadpr-mixed", ACTIVE))
    shared = GOOD["examples"] | {"placebos": None}
    assert before["eadpr/examples.json"]["examples"] == shared
    assert after["eadpr-mixed/examples.json"]["examples"] == shared | {"forms": {"cut": 0.5, "filled": 0.5}}
    assert after["eadpr-mixed/train.json"] == before["eadpr/train.json"]
    assert {name for name in before if before[name] != after[name]} == {"report.json", "explore.json"}


@pytest.mark.parametrize(
    ("collection", "sections"), [("wiki18-trex", {"facts"}), ("wiki18-paq", {"facts", "paq"}), ("atlas", set())]
)
def test_facts_and_paq_are_settings_of_the_collections_that_have_such_files(collection, sections):
    found = params.configs(changed("collection", collection))["prepare.json"]
    assert {name for name in ("facts", "paq") if found[name] is not None} == sections


def test_files_that_only_ask_questions_of_unused_sets_are_not_fetched():
    """The corpus stays: contexts and RAMDocs bring passages, and training files do without a file of passages or where
    their contexts join it. Own rows name sets themselves."""
    prepare = Prepare.model_validate(GOOD["prepare"])
    joining = prepare.model_copy(update={"add_context_passages": True})
    kinds = ("training", "gold_info", "contexts", "ramdocs")
    files = [{"kind": kind, "path": f"{kind}-{name}", "set": name, "split": "x"} for name in "ab" for kind in kinds]
    passages = {"kind": "passages", "path": "psgs"}
    source, used = Source(format="dpr", files=[passages, *files]), Sets(train=["a/x"], evaluate=[], annotator=[])
    left = [file.name for file in source.of_sets(used, prepare).files]
    assert left == ["psgs", *(f"{kind}-a" for kind in kinds), "contexts-b", "ramdocs-b"]
    asked = {"kind": "questions", "path": "q", "set": "a", "split": "train", "test_share": 0.5}
    whole = Source(format="dpr", files=files), Source(format="own", files=[passages, asked])
    assert [one.of_sets(used, prepare) for one in whole] == list(whole)
    assert source.of_sets(used, joining) == source
    found = params.configs(changed("collection", "wiki18"))["fetch.json"]["source"]["files"]
    assert {file["set"] for file in found} == {None, "nq"}


@pytest.mark.parametrize("collection", GOOD["collections"])
def test_a_folder_of_sources_is_in_git_only_where_no_file_is_brought(collection):
    """DVC tracks no folder that git has a file of; `fetch` needs the folder of a collection of downloads."""
    brought = any("path" in file for file in GOOD["collections"][collection]["source"]["files"])
    assert (ROOT / "data/sources" / collection / "README").exists() != brought


@pytest.mark.parametrize("collection", GOOD["collections"])
def test_every_collection_can_be_the_active_one(collection):
    whole = params.load(ROOT / "params.yaml")  # with the arms of the default
    values = params.merged(whole, {"collection": collection})
    assert params.configs(values)["prepare.json"]["source"]["files"] or collection == "atlas"


def test_every_metric_of_evaluate_can_be_a_column():
    names = "top1 top5 top20 top100 mrr100 id_top1 id_mrr100 ndcg10 map100 recall20 recall100 all2 all10 all20"
    names += " aa aa_evidence placebo controlled_aa"
    values = changed("report.columns", names.split())
    assert params.configs(values)["report.json"]["report"]["columns"] == names.split()


@pytest.mark.parametrize("section", ["base", "annotator"])
def test_the_files_of_a_model_folder_are_handed_on_and_a_revision_of_it_is_refused(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("models/own/1_Pooling").mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "vocab.txt", "README.md", "pytorch_model.bin"):
        Path("models/own", name).write_text(name)
    values = changed(f"{section}.model", "models/own")
    before = params.configs(values)
    names = set(before[CONFIG_OF[section]][f"{section}_files"]["sha256"])
    assert names == {"config.json", "model.safetensors", "vocab.txt"}
    Path("models/own/README.md").write_text("other")
    assert params.configs(values) == before
    Path("models/own/model.safetensors").write_text("other")
    after = params.configs(values)
    assert {name for name in after if after[name] != before[name]} == {CONFIG_OF[section]}
    values[section]["revision"] = "v2"
    assert refused(values).key == f"{section}.revision"


@pytest.mark.parametrize("section", ["base", "annotator"])
def test_what_is_neither_folder_nor_hub_name_is_named(section, tmp_path):
    assert refused(changed(f"{section}.model", str(tmp_path / "nowhere"))).key == f"{section}.model"
    files = params.configs(changed(f"{section}.model", "org/name-1.0"))
    assert files[CONFIG_OF[section]][f"{section}_files"] == {"sha256": {}}


def test_a_folder_named_as_what_the_pipeline_builds_is_not_looked_at(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("scratch", "build"):
        Path(name).mkdir()
        Path(name, "config.json").write_text("{}")
    assert params.configs(GOOD)["bases/base.json"]["base_files"] == {"sha256": {}}
    assert params.configs(GOOD)["annotator.json"]["annotator_files"] == {"sha256": {}}


def test_a_missing_section_is_named():
    values = copy.deepcopy(GOOD)
    del values["loss"]
    assert str(refused(values)) == "params.yaml: loss: Field required"


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


def test_examples_have_placebos_where_the_loss_of_their_arm_uses_them():
    found = params.configs(with_changes(GOOD, {"active.mine": ACTIVE, "arms.mine": {"loss": {"balance": "both"}}}))
    arms = {arm: found[f"{arm}/examples.json"]["examples"]["placebos"] for arm in ("dpr", "eadpr", "mine")}
    assert arms == {"dpr": None, "eadpr": None, "mine": "placebo"}
    found = params.configs(changed("loss.balance", "placebo"))
    assert [found[f"{arm}/examples.json"]["examples"]["placebos"] for arm in ("dpr", "eadpr")] == [None, "placebo"]
    found = params.configs(with_changes(GOOD, {"loss.balance": "both", "arms.eadpr.examples": {"strategy": "placebo"}}))
    assert found["eadpr/examples.json"]["examples"]["placebos"] == "placebo_second"


def test_anchors_are_refused_because_dvc_loses_overrides_behind_them(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text("a: &x {b: 1}\nc: *x\n")
    with pytest.raises(ValueError, match=r"params\.yaml:1: anchors and aliases"):
        params.load(path)


@pytest.mark.parametrize(
    "text", ["a: [1", "- 1\n- 2\n", "a: 1\na: 2\n", "a: caf\udce9", "[" * 5000, "a: 2026-13-45", "a: " + "9" * 5000]
)
def test_broken_yaml_is_refused(tmp_path, text):
    path = tmp_path / "params.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")  # the last is Latin-1
    with pytest.raises(ValueError, match=r"params\.yaml") as raised:
        params.load(path)
    assert "\n" not in str(raised.value)


def test_exponents_without_a_point_are_numbers(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text("lr: 1e-06\n")  # what `dvc exp run -S train.lr=1e-6` writes; YAML 1.1 reads it as text
    assert params.load(path) == {"lr": 1e-06}


def test_the_reference_form_leaves_arms_without_distractors_alone():
    files = params.configs(changed("loss.form", "reference"))
    assert files["eadpr/train.json"]["loss"]["form"] == "reference"
    assert files["dpr/train.json"]["loss"]["form"] == "paper"


def test_each_generator_has_its_own_settings_and_only_what_is_measured_is_reported():
    values = changed("robustness", MEASURED | {"arms": ["eadpr", "dpr2"]})
    values["active"]["dpr2"] = AGAIN
    files = params.configs(values)
    removed, endpoint = (files[f"near_duplicates/{name}.json"] for name in MEASURED["generators"])
    assert (removed["near_duplicates"]["generator"], removed["writer"]) == ("removed", None)
    assert (endpoint["near_duplicates"]["generator"], endpoint["near_duplicates"]["replaced"]) == ("endpoint", None)
    assert (endpoint["writer"]["by"], endpoint["writer"]["settings"]["temperature"]) == ("endpoint", 0.5)
    assert files["robustness.json"]["robustness"] == {"counts": [0, 20]}
    assert files["explore.json"]["explore"]["near_duplicates"] == [0, 20]
    expected = {"bm25": ["bm25"], "dpr": ["dpr2"], "eadpr": ["eadpr"]}
    assert files["report.json"]["report"]["robustness"]["trainings"] == expected
    values["endpoint"]["writing"]["temperature"] = 0.7
    after = params.configs(values)
    assert {name for name in files if files[name] != after[name]} == {"near_duplicates/endpoint.json"}


def test_who_writes_is_told_where_something_is_written_alone():
    """And the collection's own texts where they are what is given, the machine where a model runs here."""
    others = GOOD["collections"]["squad-open"]["source"]["files"]
    own = [*others, {"kind": "near_duplicates", "path": "own.jsonl"}]
    values = with_changes(GOOD, {"collection": "squad-open", "collections.squad-open.source.files": own})
    before = params.configs(values)
    assert before["distractors.json"] | {"written": None, "writer": None} == before["distractors.json"]
    edits = {"endpoint.model": "m", "seq2seq.top_p": 0.5, "given.types": ["x"], "written.candidates": 9}
    assert params.configs(with_changes(values, edits)) == before
    by = {}
    for kind in ("seq2seq", "endpoint", "given"):
        files = params.configs(with_changes(values, WRITTEN | {"written.by": kind}))
        assert {name for name in files if files[name] != before[name]} >= {"distractors.json", "eadpr/examples.json"}
        by[kind] = files["distractors.json"]["writer"]
    assert [type(Writer.model_validate(by[kind]).settings) for kind in by] == [Seq2Seq, EndpointTask, Given]
    assert [by[kind]["machine"] is None for kind in by] == [False, True, True]
    assert [[file["path"] for file in by[kind]["texts"]] for kind in by] == [[], [], ["own.jsonl"]]


def test_an_endpoint_that_finds_evidence_is_told_to_that_stage_alone():
    before = params.configs(GOOD)
    assert before["evidence.json"]["endpoint"] is None
    files = params.configs(changed("annotator.model", "endpoint"))
    assert {name for name in files if files[name] != before[name]} == {"annotator.json", "evidence.json"}
    assert files["evidence.json"]["endpoint"]["prompt"] == GOOD["endpoint"]["evidence"]["prompt"]
    other = with_changes(GOOD, {"annotator.model": "endpoint", "endpoint.writing.temperature": 0.1})
    assert params.configs(other) == files


def test_a_repeated_arm_differs_by_its_seed_alone_and_shares_a_row():
    files = params.configs(changed("active.dpr2", AGAIN))
    for stage in ("negatives", "examples"):
        assert files[f"dpr2/{stage}.json"] == files[f"dpr/{stage}.json"]
    one, two = files["dpr/train.json"], files["dpr2/train.json"]
    assert two["train"] == one["train"] | {"seed": 2}
    assert {k: v for k, v in two.items() if k != "train"} == {k: v for k, v in one.items() if k != "train"}
    assert files["report.json"]["report"]["trainings"] == {"dpr": ["dpr", "dpr2"], "eadpr": ["eadpr"]}


def test_bases_are_overrides_of_the_section_base():
    files = params.configs(changed("bases.base2", {"seed": 2}))
    one, two = files["bases/base.json"], files["bases/base2.json"]
    assert two["base"] == one["base"] | {"seed": 2}
    assert {k: v for k, v in two.items() if k != "base"} == {k: v for k, v in one.items() if k != "base"}


def test_fused_rankings_are_told_to_the_report_and_may_be_compared():
    values = changed("fused.hybrid", {"first": "bm25", "second": "eadpr"})
    values["report"]["compare"] = {"hybrid": "eadpr"}
    values["fused"]["by-rank"] = {"first": "bm25", "second": "eadpr", "by": "reciprocal", "k": 10}
    files = params.configs(values)
    assert files["report.json"]["report"]["fused"] == ["hybrid", "by-rank"]
    assert files["fused/hybrid.json"]["fuse"] == GOOD["fuse"]
    assert files["fused/by-rank.json"]["fuse"] == GOOD["fuse"] | {"by": "reciprocal", "k": 10}
    before = params.configs(GOOD)
    changed_files = {"report.json", "explore.json", "fused/hybrid.json", "fused/by-rank.json"}
    assert {name for name in files if files[name] != before.get(name)} == changed_files


def test_negatives_may_be_mined_from_a_fused_ranking_as_deep_as_it_goes():
    values = changed("fused.both", {"first": "bm25", "second": "dpr"})
    values["active"]["eadpr-mined"] = {"negatives": "both", "init": "base"}
    values["arms"]["eadpr-mined"] = {"negatives": {"depth": 100}}
    assert params.configs(values)["eadpr-mined/negatives.json"]["negatives"]["depth"] == 100
    values["arms"]["eadpr-mined"]["negatives"]["depth"] = 101
    assert refused(values).key == "negatives.depth"


def test_what_needs_neither_placebos_nor_validation_questions_may_be():
    changes = {"probe": {"strategy": "gold", "also": [], "placebos": []}, "evidence.strategies": ["pseudo", "gold"]}
    assert params.configs(with_changes(GOOD, changes))
    assert params.configs(with_changes(GOOD, HYBRID | {"fuse.by": "reciprocal"}))


@pytest.mark.parametrize("of", [OF_WINDOWS, OF_ANSWERS])
def test_what_is_cut_inside_a_sentence_goes_with_placebos_of_words_and_with_none(of):
    strategy = of["evidence.placebo_of"]
    probed = of | {"probe.strategy": strategy, "probe.placebos": PLACEBOS[2:]}
    assert params.configs(with_changes(GOOD, probed | {"examples.strategy": strategy}))
    more = probed | {"examples.strategy": strategy, "arms.eadpr.loss": {"placebo": 1.0}}  # as one more positive
    assert params.configs(with_changes(GOOD, more))
    assert params.configs(with_changes(GOOD, {**of, "evidence.placebo_of": "pseudo", "probe.also": [strategy]}))
    random = probed | {"arms.eadpr": {"loss": {"balance": "both"}, "examples": {"strategy": "placebo"}}}
    assert params.configs(with_changes(GOOD, random)), "a sentence beside another one"


def test_query_sides_override_their_section_and_arms_start_from_them():
    values = changed("query_sides.tuned", {"of": "eadpr", "seed": 4})
    values["active"]["eadpr-qsft"] = {"negatives": "bm25", "init": "tuned"}
    files = params.configs(values)
    found = files["query_sides/tuned.json"]
    assert set(found) == {"query_side", "machine"}
    assert found["query_side"] == GOOD["query_side"] | {"seed": 4}
    assert files["eadpr-qsft/train.json"]["train"]["steps"] == 0


def test_trainings_stand_in_the_order_of_their_seeds_in_which_two_arms_are_paired():
    values = changed("active.dpr3", AGAIN | {"seed": 3})
    values["active"]["dpr2"] = AGAIN
    report = params.configs(values)["report.json"]["report"]
    assert report["trainings"]["dpr"] == ["dpr", "dpr2", "dpr3"]


@pytest.mark.parametrize("init", ["dpr", "tuned"])
def test_an_arm_with_one_encoder_starts_from_one(init):
    values = changed("query_sides.tuned", {"of": "dpr"})
    values["active"]["eadpr"]["init"] = init
    values["active"]["eadpr-2"] = {"repeats": "eadpr", "seed": 2, "negatives": "bm25", "init": init}
    if init == "dpr":
        params.configs(values)
    values["arms"]["dpr"] |= TWO
    assert refused(values).key == "active.eadpr.init"
    values["active"]["eadpr"]["init"] = "base"
    assert str(refused(values)) == (
        f"params.yaml: active.eadpr-2.init: {init} has two encoders; set arms.eadpr.encoder.shared to false, or start"
        " from another"
    )
    values["arms"]["eadpr"] |= TWO
    assert params.configs(values)["eadpr/train.json"]["encoder"]["shared"] is False


def test_a_base_of_two_encoders_is_for_arms_with_two(tmp_path):
    for side in ("question_encoder", "passage_encoder"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "model.safetensors").write_text("the same")
    values = changed("base.model", str(tmp_path))
    assert params.configs(values)["dpr/train.json"]["encoder"]["shared"]
    (tmp_path / side / "model.safetensors").write_text("another")
    assert refused(values).key == "active.dpr.init"
    values["encoder"]["shared"] = False
    params.configs(values)


def test_an_arm_of_no_steps_has_as_many_encoders_as_it_starts_from():
    values = changed("active.untrained", ACTIVE)
    values["arms"]["untrained"] |= TWO
    values["active"]["eadpr"]["init"] = "untrained"
    assert params.configs(values)["eadpr/train.json"]["encoder"]["shared"]
    values["arms"]["untrained"]["train"]["steps"] = 1
    assert refused(values).key == "active.eadpr.init"


def test_readers_override_their_section_and_rows_of_their_report_are_what_they_read():
    values = changed("readers.small", {"ranking": "bm25", "init": "models/base", "epochs": 1})
    values["readers"]["fused"] = {"ranking": "dpr", "init": "annotator", "kind": "fid"}
    values["active"]["dpr2"] = AGAIN
    values["reading"] = {"readers": ["small"], "rankings": ["gold", "bm25", "dpr2", "eadpr"], "gold": ["gold"]}
    files = params.configs(values)
    assert files["readers/small.json"]["reader"] == GOOD["reader"] | {"epochs": 1}
    assert files["readers/small.json"]["reader_files"] == {"sha256": {}}
    assert files["readers/fused.json"]["reader"]["kind"] == "fid"
    rows = {"bm25": ["bm25"], "dpr": ["dpr2"], "eadpr": ["eadpr"], "gold": ["gold"]}
    assert files["report.json"]["report"]["reading"]["trainings"] == rows


def test_a_reader_need_not_fit_the_settings_of_other_collections():
    """Of 96 tokens, 64 hold question and title as atlas cuts them; as wiki18 does, 128 would."""
    values = changed("readers.x", {"ranking": "bm25", "init": "models/base", "tokens": 96})
    assert params.configs(values)["readers/x.json"]["reader"]["tokens"] == 96
    assert refused(values | {"collection": "wiki18"}).key == "readers.x"


def test_the_folder_of_a_reader_is_hashed(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    values = changed("readers.x", {"ranking": "bm25", "init": "models/base", "model": str(tmp_path)})
    assert set(params.configs(values)["readers/x.json"]["reader_files"]["sha256"]) == {"config.json"}
    values["readers"]["x"]["model"] = "no such folder"
    assert refused(values).key == "reader.model"


def two_hop(**changes) -> dict:
    """With `multihop.mdr` of eadpr; `changes` are of the collection."""
    values = changed("multihop.mdr", copy.deepcopy(MDR))
    values["collections"]["atlas"]["settings"] = params.merged(EACH, changes)
    return values


def test_two_hop_retrieval_has_its_arms_settings_with_its_own_changes_and_a_row():
    values = two_hop()
    values["multihop"]["mdr"] |= {"train": {"batch_size": 120}, "two_hop": {"query_tokens": 350}}
    values["report"]["compare"] = {"mdr": "eadpr"}
    files = params.configs(values)
    found = files["multihop/mdr.json"]
    assert set(found) == {"loss", "train", "encoder", "two_hop", "machine"}
    of_arm = files["eadpr/train.json"]
    assert (found["loss"], found["train"]) == (of_arm["loss"], of_arm["train"] | {"batch_size": 120})
    assert found["two_hop"] == GOOD["two_hop"] | {"query_tokens": 350}
    assert files["report.json"]["report"]["fused"] == ["mdr"]
    narrow = params.configs(two_hop(beam={"width": 10}))
    assert {name for name in narrow if narrow[name] != params.configs(two_hop())[name]} == {"retrieve_multihop.json"}


@pytest.mark.parametrize(("own", "changes", "key"), [
    ({"of": "dpr", "loss": {"tau1": 1.0}}, {}, "examples.strategy"),
    ({"loss": {"balance": "placebo"}}, {}, "multihop.mdr.loss"),
    ({"train": {"shuffle_passages": True}}, {}, "train.shuffle_passages"),
    ({"encoder": {"shared": False}}, {}, "multihop.mdr.encoder.shared"),
    ({"init": "mdr"}, {}, "multihop.mdr"), ({"init": "dpr"}, TWO, "multihop.mdr.init"),
    ({"train": {"upsample": {"x/train": 2}}}, {}, "train.upsample"),
    ({"loss": {"stop_gradient": "question"}, "train": {"freeze": "passage"}, "two_hop": {"shared": False}}, {},
     "train.freeze"),
    ({"train": {"freeze": "passage"}}, {}, "train.freeze"),
    ({}, {"evaluate": {"all_at": [2, 5]}, "report": {"columns": ["top1"]}}, "evaluate.all_at"),
    ({}, {"beam": {"paths": 9}}, "evaluate.all_at"), ({}, {"beam": {"width": 4}}, "beam.paths"),
])  # fmt: skip
def test_what_two_hop_retrieval_cannot_do_is_named(own, changes, key):
    values = two_hop(**changes)
    values["multihop"]["mdr"] |= own
    assert refused(values).key == key


def reading_paths(**changes) -> dict:
    """`two_hop` with a reader of its paths; `changes` are of readers.x."""
    values = two_hop()
    values["readers"] = {"x": TAUGHT | changes}
    values["reading"] = READING | {"rankings": ["mdr"]}
    return values


def test_readers_of_paths_override_their_section_and_rows_of_their_report_are_what_they_read(tmp_path):
    files = params.configs(reading_paths(epochs=1, init="models/mdr"))
    found = files["readers/x.json"]
    assert set(found) == {"reader", "reader_files", "machine"}
    assert found["reader"] == GOOD["path_reader"] | {"epochs": 1, "kind": "paths"}
    assert files["readings/x.json"]["reader"] == found["reader"]
    assert files["report.json"]["report"]["reading"] == {"by": ["x"], "trainings": {"mdr": ["mdr"]}}
    assert files["report.json"]["report"]["of_paths"] == ["x"]
    before = params.configs(two_hop())
    assert {name for name in before if before[name] != files[name]} == {"report.json", "explore.json"}
    (tmp_path / "config.json").write_text("{}")
    files = params.configs(reading_paths(model=str(tmp_path)))
    assert set(files["readers/x.json"]["reader_files"]["sha256"]) == {"config.json"}


def test_the_kind_of_a_reader_may_stand_in_the_shared_section():
    values = reading_paths()
    expected = params.configs(values)["readers/x.json"]
    del values["readers"]["x"]["kind"]
    values["reader"] = values["reader"] | {"kind": "paths"}
    assert params.configs(values)["readers/x.json"] == expected


@pytest.mark.parametrize(("own", "shared", "key"), [
    ({"init": "annotator"}, {}, "readers.x.init"), ({"model": "no such folder"}, {}, "reader.model"),
    ({"depth": 21}, {}, "readers.x.depth"), ({}, {"read": GOOD["read"] | {"paths": 21}}, "read.paths"),
    ({}, {"path_reader": GOOD["path_reader"] | {"tokens": 39}}, "path_reader"), ({"tokens": 39}, {}, "readers.x"),
    ({}, {"read": GOOD["read"] | {"paths": 101}, "reading": READING}, "read.paths"),
])  # fmt: skip
def test_what_readers_of_paths_cannot_do_is_named(own, shared, key):
    assert refused(reading_paths(**own) | shared).key == key


def test_denoised_rankings_override_their_section_and_arms_mine_them():
    values = changed("denoised.clean", CLEAN | {"above": 0.9})
    values["readers"] = HALVES
    values["active"]["eadpr-mined"] = {"negatives": "clean", "init": "base"}
    assert refused(values).key == "examples.positive"
    values["arms"]["eadpr-mined"] = values["arms"]["eadpr-mined"] | {"examples": {"positive": "each"}}
    files = params.configs(values)
    assert files["denoised/clean.json"] == {"denoise": GOOD["denoise"] | {"above": 0.9}}
    assert [files[f"readers/of{half}.json"]["reader"]["half"] for half in (0, 1)] == [0, 1]
    before = params.configs(GOOD)
    assert {name: files[name] for name in before if not name.startswith(("report", "explore"))} == {
        name: before[name] for name in before if not name.startswith(("report", "explore"))
    }


@pytest.mark.parametrize(("changes", "key"), [
    ({"denoised.clean.readers": ["of0", "of1"]}, "readers.of0.half"),
    ({"denoised.clean.readers": ["of1", "of1"]}, "readers.of1.half"),
    ({"readers.of1": HALVES["of1"] | {"kind": "fid", "init": "annotator", "passages": 9}}, "readers.of1.kind"),
    ({"readers.of1.ranking": "mined"}, "active.mined"), ({"readers.of0.init": "models/mined"}, "active.mined"),
    ({"denoised.clean.of": "mined"}, "active.mined"),
    ({"fused.both": {"first": "bm25", "second": "mined"}, "readers.of1.ranking": "both"}, "active.mined"),
    ({"query_sides.tuned": {"of": "mined"}, "readers.of0.init": "models/tuned"}, "active.mined"),
])  # fmt: skip
def test_readers_that_cannot_denoise_what_an_arm_mines(changes, key):
    mined = {"active.mined": {"negatives": "clean", "init": "base"}, "arms.mined": {}}
    values = with_changes(GOOD, {"denoised.clean": CLEAN, "readers": HALVES} | mined)
    params.configs(values)
    assert refused(with_changes(values, changes)).key == key


def test_one_reader_may_score_both_halves():
    values = changed("denoised.clean", {"of": "bm25", "readers": ["all", "all"]})
    values["readers"] = {"all": {"ranking": "bm25", "init": "models/base"}}
    assert "denoised/clean.json" in params.configs(values)


def test_readers_read_rankings_of_two_hops():
    values = two_hop(beam={"paths": 50})
    values["readers"] = {"x": {"ranking": "bm25", "init": "models/base"}}
    values["reading"] = READING | {"rankings": ["bm25", "mdr"]}
    assert params.configs(values)["report.json"]["report"]["reading"]["trainings"] == {"bm25": ["bm25"], "mdr": ["mdr"]}
    values["readers"]["x"]["ranking"] = "mdr"
    assert refused(values).key == "readers.x.ranking"
    values["readers"]["x"]["ranking"] = "bm25"
    values["collections"]["atlas"]["settings"]["beam"]["paths"] = 49
    assert refused(values).key == "read.top_k"
