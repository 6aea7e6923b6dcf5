"""params.yaml: what is wrong is found before any work and named, and each stage gets its settings."""

import copy
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from eadpr.corpus.sources import Prepare, Source
from eadpr.runtime.section import Sets
from eadpr.settings import checks
from eadpr.settings import resolve as params
from eadpr.settings.yaml import SettingError
from tests.repository import ROOT

WHOLE = params.load(ROOT / "params.yaml")
GOOD = copy.deepcopy(WHOLE)
# Every collection's settings are checked each time: three are enough.
GOOD["collections"] = {name: WHOLE["collections"][name] for name in ("atlas", "squad-open", "wiki18")}
# Two arms are enough, and one that is the shared sections as they are shows what these do.
GOOD["active"] = {arm: edges for arm, edges in GOOD["active"].items() if arm in ("dpr", "eadpr")}
GOOD["arms"]["eadpr"] = {}


ACTIVE = {"negatives": "bm25", "init": "base"}
AGAIN = {"repeats": "dpr", "seed": 2} | ACTIVE
MEASURED = {"generators": ["removed", "endpoint"], "arms": ["dpr", "eadpr"], "counts": [0, 20]}
MDR = {"of": "eadpr", "init": "base"}
FROM_BM25 = {"ranking": "bm25", "init": "models/base"}
TAUGHT = {"kind": "paths", "ranking": "mdr", "init": "models/base"}
EACH = {"examples": {"positive": "each"}}
READING = {"readers": ["x"], "rankings": ["bm25"]}
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
        section = values
        *parents, last = path.split(".")
        for key in parents:
            section = section.setdefault(key, {})
        section[last] = copy.deepcopy(value)
    return values


def refused(values: dict) -> SettingError:
    with pytest.raises(SettingError, match=r"^(params|data/collections/[\w-]+)\.yaml: ") as error:
        params.configs(values)
    return error.value


# What cases of the file below are put upon.
TWO_HOPS = {"multihop.mdr": MDR, "collections.atlas.settings": EACH}
ON = {
    None: {}, "two_hops": TWO_HOPS,
    "paths": TWO_HOPS | {"readers.x": TAUGHT, "reading": READING | {"rankings": ["mdr"]}},
}  # fmt: skip
REFUSED = YAML(typ="safe").load((ROOT / "tests" / "refused_settings.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["key"])
def test_what_is_wrong_is_named_by_the_key_that_has_to_be_changed(case):
    assert refused(with_changes(GOOD, ON[case.get("on")] | case["set"])).key == case["key"]


@pytest.mark.parametrize(
    ("collection", "sections"), [("wiki18-trex", {"facts"}), ("wiki18-paq", {"facts", "paq"}), ("atlas", set())]
)
def test_facts_and_paq_are_settings_of_the_collections_that_have_such_files(collection, sections):
    prepare = params.configs(WHOLE | {"collection": collection})["prepare.json"]
    assert {name for name in ("facts", "paq") if prepare[name] is not None} == sections


def test_files_that_only_ask_questions_of_unused_sets_are_not_fetched():
    """The corpus stays: contexts and RAMDocs bring passages, and training files do without a file of passages or where
    their contexts join it. Own rows name sets themselves."""
    prepare = Prepare.model_validate(GOOD["prepare"])
    joining = prepare.model_copy(update={"add_context_passages": True})
    kinds = ("training", "gold_info", "contexts", "ramdocs")
    files = [{"kind": kind, "path": f"{kind}-{name}", "set": name, "split": "x"} for name in "ab" for kind in kinds]
    passages = {"kind": "passages", "path": "psgs"}
    source, used = Source(format="dpr", files=[passages, *files]), Sets(train=["a/x"], evaluate=[], annotator=[])
    names = [file.name for file in source.of_sets(used, prepare).files]
    assert names == ["psgs", *(f"{kind}-a" for kind in kinds), "contexts-b", "ramdocs-b"]
    questions = {"kind": "questions", "path": "q", "set": "a", "split": "train", "test_share": 0.5}
    sources = Source(format="dpr", files=files), Source(format="own", files=[passages, questions])
    assert [item.of_sets(used, prepare) for item in sources] == list(sources)
    assert source.of_sets(used, joining) == source
    fetched = params.configs(changed("collection", "wiki18"))["fetch.json"]["source"]["files"]
    assert {file["set"] for file in fetched} == {None, "nq"}


def test_settings_merge_shared_then_collection_then_arm():
    values = changed("collection", "squad-open")
    values["collections"]["squad-open"]["settings"]["train"] = {"steps": 7}
    values["arms"]["eadpr"] = {"loss": {"tau1": 0.25}}
    files = params.configs(values)
    assert files["eadpr/train.json"]["train"]["steps"] == 7
    assert files["eadpr/train.json"]["loss"]["tau1"] == 0.25
    assert files["eadpr/train.json"]["loss"]["tau2"] == values["loss"]["tau2"]


def test_a_changed_loss_weight_changes_only_the_arms_that_use_it():
    old, new = params.configs(GOOD), params.configs(changed("loss.tau1", 0.5))
    assert {name for name in old if old[name] != new[name]} == {"eadpr/train.json"}


def test_trackers_change_no_input_of_a_stage_and_one_that_is_not_installed_is_refused(monkeypatch):
    reported = changed("arms.eadpr.train", {"report_to": ["wandb"]})
    monkeypatch.setattr(checks, "find_spec", {"accelerate": True}.get)
    assert refused(reported).reason == "wandb is not installed: pip install accelerate wandb"
    monkeypatch.setattr(checks, "find_spec", bool)
    assert params.configs(reported) == params.configs(GOOD) | {"report_to.json": {"dpr": [], "eadpr": ["wandb"]}}


def test_a_loss_without_evidence_needs_no_model_of_relevance():
    changes = {"annotator.kind": "relevance", "annotator.model": "none", "active": {"dpr": ACTIVE}}
    assert "dpr/train.json" in params.configs(with_changes(GOOD, changes))


def test_examples_have_placebos_where_the_loss_of_their_arm_uses_them():
    files = params.configs(with_changes(GOOD, {"active.mine": ACTIVE, "arms.mine": {"loss": {"balance": "both"}}}))
    arms = {arm: files[f"{arm}/examples.json"]["examples"]["placebos"] for arm in ("dpr", "eadpr", "mine")}
    assert arms == {"dpr": None, "eadpr": None, "mine": "placebo"}
    files = params.configs(changed("loss.balance", "placebo"))
    assert [files[f"{arm}/examples.json"]["examples"]["placebos"] for arm in ("dpr", "eadpr")] == [None, "placebo"]
    files = params.configs(with_changes(GOOD, {"loss.balance": "both", "arms.eadpr.examples": {"strategy": "placebo"}}))
    assert files["eadpr/examples.json"]["examples"]["placebos"] == "placebo_second"


def test_anchors_are_refused_because_dvc_loses_overrides_behind_them(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text("a: &x {b: 1}\nc: *x\n")
    with pytest.raises(ValueError, match=r"params\.yaml:1: anchors and aliases"):
        params.load(path)


@pytest.mark.parametrize("text", [
    "a: [1", "- 1\n- 2\n", "a: 1\na: 2\n", "a: caf\udce9", "[" * 5000, "a: 2026-13-45", "a: " + "9" * 5000,
    r'a: "\U99999999"',
])  # fmt: skip
def test_broken_yaml_is_refused(tmp_path, text):
    path = tmp_path / "params.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")  # the last is Latin-1
    with pytest.raises(ValueError, match=r"params\.yaml") as raised:
        params.load(path)
    assert "\n" not in str(raised.value)


def test_exponents_without_a_point_are_numbers(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text("train: {adam_eps: 1e-06}\n")  # what `dvc exp run -S` writes; YAML 1.1 reads it as text
    assert params.load(path)["train"]["adam_eps"] == 1e-06


def test_each_generator_has_its_own_settings_and_only_what_is_measured_is_reported():
    values = changed("robustness", MEASURED | {"arms": ["eadpr", "dpr2"]})
    values["active"]["dpr2"] = AGAIN
    files = params.configs(values)
    removed, endpoint = (files[f"near_duplicates/{name}.json"] for name in MEASURED["generators"])
    assert (removed["near_duplicates"]["generator"], removed["endpoint"]) == ("removed", None)
    assert endpoint["near_duplicates"]["generator"] == "endpoint"
    assert endpoint["endpoint"]["temperature"] == 0.5
    assert files["robustness.json"]["robustness"] == {"counts": [0, 20]}
    by_part = params.configs(with_changes(values, {"arms.eadpr.encoder": {"unit": "token"}}))
    assert by_part["robustness.json"]["robustness"] == {"counts": [0, 20], "candidates": 200}
    expected = {"dpr": ["dpr2"], "eadpr": ["eadpr"]}
    assert files["report.json"]["report"]["robustness"]["trainings"] == expected
    values["endpoint"]["temperature"] = 0.7
    after = params.configs(values)
    assert {name for name in files if files[name] != after[name]} == {"near_duplicates/endpoint.json"}


def test_the_stage_of_given_near_duplicates_alone_reads_the_collections_files_and_without_endpoint_none_has_one():
    squad_files = GOOD["collections"]["squad-open"]["source"]["files"]
    extended = [*squad_files, {"kind": "near_duplicates", "path": "own.jsonl"}]
    values = with_changes(GOOD, {"collection": "squad-open", "collections.squad-open.source.files": extended})
    assert params.configs(with_changes(values, {"endpoint.model": "m"})) == params.configs(values)
    files = params.configs(with_changes(values, {"robustness": MEASURED | {"generators": ["endpoint", "given"]}}))
    endpoint, from_files = (files[f"near_duplicates/{kind}.json"] for kind in ("endpoint", "given"))
    assert (endpoint["source"], from_files["endpoint"]) == (None, None)
    assert from_files["source"]["files"][-1]["path"] == "own.jsonl"
    assert params.configs(values)["evidence.json"]["endpoint"] is None
    chosen = params.configs(with_changes(values, {"collections.squad-open.settings.annotator.kind": "endpoint"}))
    assert chosen["evidence.json"]["endpoint"]["model"] == "gpt-3.5-turbo"


def recipe_of(file: dict) -> tuple:
    return tuple(file["train"][key] for key in ("learning_rate", "weight_decay", "keep", "validate_every"))


SCRATCH, PRETRAINED = (2e-3, 0.0, "last", 300), (2e-5, 0.01, "best", 50)


def test_auto_is_the_recipe_of_what_an_arm_starts_from_by_way_of_others_too():
    assert set(map(recipe_of, (params.configs(GOOD)[f"{arm}/train.json"] for arm in ("dpr", "eadpr")))) == {SCRATCH}
    changes = {
        "bases.bert": {"model": "bert-base-uncased"}, "query_sides.tuned": {"of": "again"},
        "active.again": {"repeats": "dpr", "seed": 5, "negatives": "bm25", "init": "bert"},
        "active.eadpr": {"negatives": "bm25", "init": "again"},
        "active.dpr-qsft": {"negatives": "bm25", "init": "tuned"},
        "multihop.mdr": MDR | {"of": "again", "init": "base"}, "multihop.mdr2": MDR | {"of": "dpr", "init": "eadpr"},
        "evidence.positive": "each", "examples.positive": "each", "multihop.mdr3": MDR | {"of": "again", "init": "mdr"},
    }  # fmt: skip
    files = params.configs(with_changes(GOOD, changes))
    recipes = {name.removesuffix("/train.json"): recipe_of(file) for name, file in files.items() if "train" in file}
    late = dict.fromkeys(("again", "eadpr", "dpr-qsft", "multihop/mdr2.json"), PRETRAINED)
    assert recipes == dict.fromkeys(("dpr", "multihop/mdr.json", "multihop/mdr3.json"), SCRATCH) | late
    assert files["multihop/mdr.json"]["train"]["seed"] == 5, "as the repeated arm"
    assert files["query_sides/tuned.json"]["query_side"]["learning_rate"] == 3e-5
    assert files["bases/base.json"]["base"]["model"] == "scratch"


def test_what_is_set_stands_before_a_recipe():
    changes = {"base.model": "bert-base-uncased", "arms.dpr.train": {"learning_rate": 5e-5, "keep": "last"}}
    changes |= {"train.weight_decay": 0.5}
    files = params.configs(with_changes(GOOD, changes))
    assert recipe_of(files["dpr/train.json"]) == (5e-5, 0.5, "last", 50)
    assert recipe_of(files["eadpr/train.json"]) == (2e-5, 0.5, "best", 50)
    files = params.configs(with_changes(GOOD, changes | {"train.validation_questions": 0}))
    assert files["eadpr/train.json"]["train"]["keep"] == "last", "where nothing is validated"


def test_what_needs_neither_placebos_nor_validation_questions_may_be():
    changes = {
        "probe": {"annotated": False, "strategy": "gold", "also": [], "placebos": []},
        "evidence.strategies": ["pseudo", "gold"],
    }
    assert params.configs(with_changes(GOOD, changes))
    assert params.configs(with_changes(GOOD, HYBRID | {"fuse.by": "reciprocal"}))


@pytest.mark.parametrize("changes", [OF_WINDOWS, OF_ANSWERS])
def test_what_is_cut_inside_a_sentence_goes_with_placebos_of_words_and_with_none(changes):
    strategy = changes["evidence.placebo_of"]
    probed = changes | {"probe.strategy": strategy, "probe.placebos": PLACEBOS[2:]}
    assert params.configs(with_changes(GOOD, probed | {"examples.strategy": strategy}))
    more = probed | {"examples.strategy": strategy, "arms.eadpr.loss": {"placebo": 1.0}}  # as one more positive
    assert params.configs(with_changes(GOOD, more))
    assert params.configs(with_changes(GOOD, {**changes, "evidence.placebo_of": "pseudo", "probe.also": [strategy]}))
    random = probed | {"arms.eadpr": {"loss": {"balance": "both"}, "examples": {"strategy": "placebo"}}}
    assert params.configs(with_changes(GOOD, random)), "a sentence beside another one"


def test_a_base_of_two_encoders_is_for_arms_with_two(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "is_folder", lambda _: False)  # a base has to be an encoder
    for side in ("question_encoder", "passage_encoder"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "model.safetensors").write_text("the same")
    values = changed("base.model", str(tmp_path))
    assert params.configs(values)["dpr/train.json"]["encoder"]["shared"]
    (tmp_path / side / "model.safetensors").write_text("another")
    assert refused(values).key == "active.dpr.init"
    values["encoder"]["shared"] = False
    params.configs(values)


def test_a_reader_need_not_fit_the_settings_of_other_collections():
    """Question and title take 64 of 96 tokens as atlas cuts them; as wiki18 does, 128."""
    values = changed("readers.x", {"ranking": "bm25", "init": "models/base", "tokens": 96})
    assert params.configs(values)["readers/x.json"]["reader"]["tokens"] == 96
    assert refused(values | {"collection": "wiki18"}).key == "readers.x"


def test_every_wrong_key_has_a_line_with_what_was_found():
    assert str(refused(with_changes(GOOD, {"loss.tau1": -1, "loss.tau3": 2}))) == (
        "params.yaml: loss.tau1: Input should be greater than or equal to 0 (found -1)\n"
        "params.yaml: loss.tau3: unknown key; did you mean tau2? (found 2)"
    )


def test_a_commit_that_yaml_reads_as_a_number_needs_quotes():
    error = refused(changed("annotator.revision", 12345678))
    assert str(error).endswith("""in quotes: -S 'annotator.revision="..."' (found 12345678)""")


@pytest.mark.parametrize("section", ["base", "annotator", "reader"])
def test_the_files_of_a_model_folder_are_handed_on_and_a_revision_of_it_is_refused(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checks, "is_folder", lambda _: False)  # a base has to be an encoder
    config, place = {
        "base": ("bases/base.json", "base"), "annotator": ("annotator.json", "annotator"),
        "reader": ("readers/x.json", "readers.x"),
    }[section]  # fmt: skip
    Path("models/own/1_Pooling").mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "vocab.txt", "README.md", "pytorch_model.bin"):
        Path("models/own", name).write_text(name)
    readers = {"readers.x": FROM_BM25} if section == "reader" else {}
    values = with_changes(GOOD, readers | {f"{place}.model": "models/own"})
    old = params.configs(values)
    assert set(old[config][f"{section}_files"]["sha256"]) == {"config.json", "model.safetensors", "vocab.txt"}
    Path("models/own/README.md").write_text("other")
    assert params.configs(values) == old
    Path("models/own/model.safetensors").write_text("other")
    new = params.configs(values)
    assert {name for name in new if new[name] != old[name]} == {config}
    assert refused(with_changes(values, {f"{place}.revision": "v2"})).key == f"{section}.revision"
    assert refused(with_changes(values, {f"{place}.model": "no such folder"})).key == f"{section}.model"
    of_hub = params.configs(with_changes(values, {f"{place}.model": "org/name-1.0"}))
    assert of_hub[config][f"{section}_files"] == {"sha256": {}}


PATHS = ON["paths"] | {"readers.x": TAUGHT | {"epochs": 1, "init": "models/mdr"}}


@pytest.mark.parametrize(("changes", "file", "section", "overrides"), [
    ({"bases.base2": {"seed": 2}}, "bases/base2.json", "base", {"seed": 2}),
    ({"fused.f": {"first": "bm25", "second": "eadpr", "by": "reciprocal", "k": 9}}, "fused/f.json", "fuse",
     {"by": "reciprocal", "k": 9}),
    ({"query_sides.q": {"of": "eadpr", "seed": 4}}, "query_sides/q.json", "query_side",
     {"seed": 4, "learning_rate": 3e-4}),
    ({"readers.x": FROM_BM25 | {"tokens": 96}}, "readers/x.json", "reader", {"tokens": 96}),
    ({"readers.x": {"ranking": "dpr", "init": "annotator", "kind": "fid"}}, "readers/x.json", "reader",
     {"kind": "fid"}),
    (TWO_HOPS | {"multihop.mdr.two_hop": {"query_tokens": 350}}, "multihop/mdr.json", "two_hop",
     {"query_tokens": 350}),
    (PATHS, "readings/x.json", "reader", {**GOOD["path_reader"], "epochs": 1, "kind": "paths"}),
    (PATHS | {"reader.kind": "paths", "readers.x": {"ranking": "mdr", "init": "models/mdr"}}, "readings/x.json",
     "reader", {**GOOD["path_reader"], "kind": "paths"}),
])  # fmt: skip
def test_a_named_entry_overrides_its_section_and_reruns_nothing_but_the_report(changes, file, section, overrides):
    files = params.configs(with_changes(GOOD, changes))
    assert files[file][section] == GOOD[section] | overrides
    without = {key: value for key, value in changes.items() if key == "collections.atlas.settings"}
    old = params.configs(with_changes(GOOD, without))
    entries = [*changes.get("fused.f", {}).values(), *changes.get("readers.x", {}).values()]
    expected = {"report.json", "explore.json"} | {f"{arm}/retrieve.json" for arm in ("dpr", "eadpr") if arm in entries}
    assert {name for name in old if old[name] != files[name]} <= expected


@pytest.mark.parametrize(("changes", "arms"), [
    ({}, set()), ({"active.eadpr.negatives": "dpr", "negatives.kind": "random"}, set()),
    ({"collection": "wiki18"}, set()), ({"readers.x": FROM_BM25 | {"ranking": "dpr"}}, {"dpr"}),
    ({"active.eadpr.negatives": "dpr"}, {"dpr"}), ({"fused.f": {"first": "dpr", "second": "eadpr"}}, {"dpr", "eadpr"}),
])  # fmt: skip
def test_an_arm_ranks_training_questions_where_a_stage_reads_that(changes, arms):
    files = params.configs(with_changes(GOOD, changes))
    sets = {arm: files[f"{arm}/retrieve.json"]["sets"] for arm in GOOD["active"]}
    all_sets = files["bm25.json"]["sets"]
    assert sets == {arm: all_sets if arm in arms else all_sets | {"train": [], "validation": []} for arm in sets}


def test_rows_of_the_report_are_what_is_trained_ranked_and_read_with_trainings_by_seed():
    changes = ON["paths"] | {
        "active.dpr3": AGAIN | {"seed": 3}, "active.dpr2": AGAIN, "report.compare": {"hybrid": "eadpr", "mdr": "eadpr"},
        "fused.hybrid": {"first": "bm25", "second": "eadpr"}, "readers.small": FROM_BM25,
        "reading": {"readers": ["x"], "rankings": ["mdr"]},
    }  # fmt: skip
    files = params.configs(with_changes(GOOD, changes))
    report = files["report.json"]["report"]
    assert report["trainings"] == {"dpr": ["dpr", "dpr2", "dpr3"], "eadpr": ["eadpr"]}
    assert (report["fused"], report["one_hop"], report["of_paths"]) == (["hybrid", "mdr"], {"mdr": "eadpr"}, ["x"])
    assert report["reading"] == {"by": ["x"], "trainings": {"mdr": ["mdr"]}}
    reading = {"readers": ["small"], "rankings": ["bm25", "dpr2", "eadpr"]}
    files = params.configs(with_changes(GOOD, changes | {"reading": reading}))
    rows = {"bm25": ["bm25"], "dpr": ["dpr2"], "eadpr": ["eadpr"]}
    assert files["report.json"]["report"]["reading"]["trainings"] == rows
    dpr, dpr2 = files["dpr/train.json"], files["dpr2/train.json"]
    assert dpr2 == dpr | {"train": dpr["train"] | {"seed": 2}}
    assert files["dpr2/examples.json"] == files["dpr/examples.json"]


def test_two_hop_retrieval_has_its_arms_settings_with_its_own_changes():
    files = params.configs(with_changes(GOOD, TWO_HOPS | {"multihop.mdr.train": {"batch_size": 120}}))
    hops, arm = files["multihop/mdr.json"], files["eadpr/train.json"]
    assert set(hops) == {"loss", "train", "encoder", "two_hop", "machine"}
    assert (hops["loss"], hops["train"]) == (arm["loss"], arm["train"] | {"batch_size": 120})
