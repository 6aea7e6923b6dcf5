"""params.yaml: what is wrong is found before any work and named, and each stage gets its settings."""

import copy
import json
from pathlib import Path
from typing import get_args, get_origin

import pytest
from ruamel.yaml import YAML

from eadpr.corpus.sources import Prepare, Source
from eadpr.runtime.section import Sets
from eadpr.settings import resolve as params
from eadpr.settings.command import declared
from eadpr.settings.model import Layout, Of
from eadpr.settings.yaml import SettingError
from eadpr.writers.config import EndpointTask, Given, Seq2Seq, Writer
from tests.repository import ROOT

WHOLE = params.load(ROOT / "params.yaml")
GOOD = copy.deepcopy(WHOLE)
# Every collection's settings are checked each time: three are enough.
GOOD["collections"] = {name: WHOLE["collections"][name] for name in ("atlas", "squad-open", "wiki18")}
# Two arms are enough, and one that is the shared sections as they are shows what these do.
GOOD["active"] = {arm: edges for arm, edges in GOOD["active"].items() if arm in ("dpr", "eadpr")}
GOOD["arms"]["eadpr"] = {}


CONFIG_OF = {"base": "bases/base.json", "annotator": "annotator.json"}
ACTIVE = {"negatives": "bm25", "init": "base"}
AGAIN = {"repeats": "dpr", "seed": 2} | ACTIVE
TWO = {"encoder": {"shared": False}}
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


# What cases of the file below are put upon.
TWO_HOPS = {"multihop.mdr": MDR, "collections.atlas.settings": EACH}
ON = {
    None: {}, "two_hops": TWO_HOPS,
    "paths": TWO_HOPS | {"readers.x": TAUGHT, "reading": READING | {"rankings": ["mdr"]}},
    "denoised": {"active.mined": {"negatives": "clean", "init": "base"}, "arms.mined": {}, "denoised.clean": CLEAN,
                 "readers": HALVES},
}  # fmt: skip
REFUSED = YAML(typ="safe").load((ROOT / "tests" / "refused_settings.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["key"])
def test_what_is_wrong_is_named_by_the_key_that_has_to_be_changed(case):
    assert refused(with_changes(GOOD, ON[case.get("on")] | case["set"])).key == case["key"]


@pytest.mark.parametrize("on", ON)
def test_what_is_wrong_is_so_for_what_was_set_alone(on):
    params.configs(with_changes(GOOD, ON[on]))


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


@pytest.mark.parametrize(("changes", "message"), [
    ({"train.steps": "x" * 200}, f"train.steps: Input should be a valid integer (found '{'x' * 76}...)"),
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
    found = params.configs(WHOLE | {"collection": collection})["prepare.json"]
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


@pytest.mark.parametrize("collection", WHOLE["collections"])
def test_a_folder_of_sources_is_in_git_only_where_no_file_is_brought(collection):
    """DVC tracks no folder that git has a file of; `fetch` needs the folder of a collection of downloads."""
    brought = any("path" in file for file in WHOLE["collections"][collection]["source"]["files"])
    assert (ROOT / "data/sources" / collection / "README").exists() != brought


@pytest.mark.parametrize("collection", WHOLE["collections"])
def test_every_collection_can_be_the_active_one(collection):
    files = params.configs(WHOLE | {"collection": collection})["prepare.json"]["source"]["files"]
    assert files or collection == "atlas"


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
        Path("models/own", name).write_text("{}" if name == "config.json" else name)
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


def recipe_of(file: dict) -> tuple:
    return tuple(file["train"][key] for key in ("learning_rate", "weight_decay", "keep", "validate_every"))


SCRATCH, PRETRAINED = (
    tuple(GOOD["recipes"][key][start] for key in ("learning_rate", "weight_decay", "keep", "validate_every"))
    for start in ("scratch", "pretrained")
)


def test_auto_is_the_recipe_of_what_an_arm_starts_from_by_way_of_others_too():
    assert SCRATCH == (2e-3, 0.0, "last", 300)
    assert set(map(recipe_of, (params.configs(GOOD)[f"{arm}/train.json"] for arm in ("dpr", "eadpr")))) == {SCRATCH}
    own = {
        "bases.bert": {"model": "bert-base-uncased"}, "query_sides.tuned": {"of": "late"},
        "active.late": {"repeats": "dpr", "seed": 5, "negatives": "bm25", "init": "bert"},
        "active.eadpr": {"negatives": "bm25", "init": "late"},
        "active.dpr-qsft": {"negatives": "bm25", "init": "tuned"},
        "multihop.mdr": MDR | {"of": "late", "init": "base"}, "multihop.mdr2": MDR | {"of": "dpr", "init": "eadpr"},
        "evidence.positive": "each", "examples.positive": "each", "multihop.mdr3": MDR | {"of": "late", "init": "mdr"},
    }  # fmt: skip
    files = params.configs(with_changes(GOOD, own))
    found = {name.removesuffix("/train.json"): recipe_of(file) for name, file in files.items() if "train" in file}
    late = dict.fromkeys(("late", "eadpr", "dpr-qsft", "multihop/mdr2.json"), PRETRAINED)
    assert found == dict.fromkeys(("dpr", "multihop/mdr.json", "multihop/mdr3.json"), SCRATCH) | late
    assert files["multihop/mdr.json"]["train"]["seed"] == 5, "as the repeated arm"
    assert files["query_sides/tuned.json"]["query_side"]["learning_rate"] == 3e-5
    assert files["bases/base.json"]["base"]["model"] == "scratch"


def test_what_is_set_stands_before_a_recipe_and_a_recipe_may_be_set():
    given = {"base.model": "bert-base-uncased", "arms.dpr.train": {"learning_rate": 5e-5, "keep": "last"}}
    given |= {"recipes.learning_rate.pretrained": 1e-5, "train.weight_decay": 0.5}
    files = params.configs(with_changes(GOOD, given))
    assert recipe_of(files["dpr/train.json"]) == (5e-5, 0.5, "last", 50)
    assert recipe_of(files["eadpr/train.json"]) == (1e-5, 0.5, "best", 50)
    files = params.configs(with_changes(GOOD, given | {"train.validation_questions": 0}))
    assert files["eadpr/train.json"]["train"]["keep"] == "last", "where nothing is validated"


@pytest.mark.parametrize(("path", "value"), [
    ("recipes.learning_rate.scratch", 0.0), ("recipes.keep.pretrained", "first"), ("recipes.steps", {}),
    ("train.epochs", "auto"), ("train.layers", 0), ("train.layers", 3), ("loss.scale", 0), ("loss.scale", "automatic"),
    ("loss.scale", float("inf")),
])  # fmt: skip
def test_a_wrong_recipe_layer_or_scale_is_named(path, value):
    assert refused(changed(path, value)).key.startswith(path)


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
    assert found["query_side"] == GOOD["query_side"] | {"seed": 4, "learning_rate": 3e-4}
    assert files["eadpr-qsft/train.json"]["train"]["steps"] == 0


def test_trainings_stand_in_the_order_of_their_seeds_in_which_two_arms_are_paired():
    values = changed("active.dpr3", AGAIN | {"seed": 3})
    values["active"]["dpr2"] = AGAIN
    report = params.configs(values)["report.json"]["report"]
    assert report["trainings"]["dpr"] == ["dpr", "dpr2", "dpr3"]


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
