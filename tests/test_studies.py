"""Studies: what they expand to, and that DVC makes of the overrides exactly that."""

import itertools
import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.settings.resolve import configs
from eadpr.settings.yaml import COLLECTIONS, completed, merged, read_yaml
from eadpr.studies.overrides import apply_overrides, check_effect, make_overrides
from eadpr.studies.study import OF_ARMS, Study, expand, read_studies, with_seeds
from tests import repository
from tests.repository import ROOT

pytestmark = pytest.mark.studies
GOOD, STUDIES = repository.values(), repository.studies()
PARAMS, BENEATH = read_yaml(ROOT / "params.yaml"), completed({}, ROOT / COLLECTIONS)  # BENEATH: what PARAMS goes over
CASES = [(name, collection) for name, s in STUDIES.items() for collection in s.collections or ["atlas", "squad-open"]]
CASES = [(name, collection) for name, collection in CASES if collection in GOOD["collections"]]  # nq-gold is brought in
CASES += [("evidence", "hotpot-sample")]
EDGES = {"negatives": "bm25", "init": "base"}
# The papers have two encoders; these have one where an encoder is trained from scratch.
PRESETS = ("wiki18", "wiki18-trex", "wiki18-paq", "hotpot")
OURS = {
    "plain", "recipes", "evidence", "evidence-world1", "evidence-world2", "near-duplicates", "real-text", "hybrid",
    "real-text-headline", "query-side", "001-table3", "anchored", "mined", "001-minilm", "001-minilm-negatives",
    "002-minilm", "two-hops", "word-vectors", "parts", "parts-eadpr", "parts-atlas", "units",
}  # fmt: skip
OURS |= {name for name in STUDIES if "001-table4" in name}


def study(**fields) -> Study:
    return Study.model_validate({"about": "a", "seeds": [1, 2], "active": {"dpr": EDGES}} | fields)


def on(collection: str, name: str, changes=()) -> dict:
    """The parameters of a study on a collection."""
    variant = STUDIES[name].model_copy(update={"settings": STUDIES[name].settings | {"collection": collection}})
    return expand(variant, GOOD, changes)


@pytest.mark.parametrize(("name", "collection"), CASES)
def test_every_study_is_valid_for_its_collections_and_dvc_makes_its_parameters(name, collection):
    parameters = on(collection, name)
    default = name in OURS and collection not in PRESETS
    for path, sections in configs(parameters).items():
        arm, _, stage = path.partition("/")
        if stage == "train.json":
            two = "2enc" in arm or "qsft" in arm
            assert sections["encoder"]["shared"] == ("1enc" in arm or default) & (not two), arm
    assert merged(BENEATH, apply_overrides([*make_overrides(GOOD, parameters)], PARAMS)) == parameters


def said_of_studies() -> list[tuple[str, str]]:
    """Study and words of overrides, of every command of docs/howto/studies.md that has some."""
    pages = (ROOT / "docs/howto/studies.md", ROOT / "docs/papers.yaml")
    text = "".join(page.read_text(encoding="utf-8") for page in pages).replace("\\\n", "")
    return re.findall(r"(?m)^(?:eadpr study|  again:) (\S+) (.*-S .*)", text)


@pytest.mark.parametrize(("name", "words"), said_of_studies())
def test_overrides_that_the_page_of_studies_names_are_valid(name, words):
    changes = [word for flag, word in itertools.pairwise(shlex.split(words)) if flag == "-S"]
    values = on(re.search(r"--collection (\S+)", words)[1], name, changes)
    configs(values)
    check_effect(changes, values)


@pytest.mark.parametrize(("override", "names"), [
    ("train.steps=20", "train.steps"), ("+train.steps=20", "train.steps"),
    ("annotator.build={}", "annotator.build.continuation_steps, annotator.build.answering_steps"),
])  # fmt: skip
def test_an_override_that_the_collection_has_its_own_value_for_is_refused(override, names):
    values = GOOD | {"collection": "squad-open"}
    with pytest.raises(ValueError, match=re.escape(f"-S {override}: nothing reads it")) as refused:
        check_effect([override], values)
    instead = f"-S ++collections.squad-open.settings.{override.removeprefix('+')}"
    assert f"its own {names}; write {instead}" in str(refused.value)
    check_effect([instead.removeprefix("-S "), "train.step=1", "train.steps_more=1"], values)
    check_effect([override], GOOD)  # atlas has no settings of its own


NO, EADPR, PICL, ANALYSIS = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.2, 1.0, 1.0), (0.2, 0.2, 0.2)
INBATCH = {"dpr-inbatch": (128, 40, 0, NO), "eadpr-paper-inbatch": (128, 40, 0, EADPR)}
HARD = {"dpr": (128, 40, 1, NO), "eadpr-paper": (128, 40, 1, EADPR)}
ANALYSED = {"dpr-inbatch": (48, 25, 0, NO), "picl-inbatch": (48, 25, 0, ANALYSIS)}
# On wiki18, from the papers: batch, epochs, hard negatives, (lambda, tau1, tau2).
PAPERS = {
    "001-table2": INBATCH | HARD | {"dpr-mined": HARD["dpr"], "eadpr-paper-mined": HARD["eadpr-paper"]},
    "001-table7": INBATCH | {"pp-inbatch": (128, 40, 0, (1.0, 0.0, 1.0)), "hn-inbatch": (128, 40, 0, (1.0, 1.0, 0.0))},
    "001-table8": HARD | {"dpr-half": (128, 20, 1, NO), "dpr-twice": (128, 80, 1, NO)},
    "001-table9": INBATCH | HARD | {"dpr-two": (128, 40, 2, NO)},
    "001-figure6a-wiki18": INBATCH
    | {f"dpr-batch{n}": (n, 40, 0, NO) for n in (24, 48)}
    | {f"eadpr-batch{n}": (n, 40, 0, EADPR) for n in (24, 48)},
    "001-figure6b-wiki18": HARD
    | {f"dpr-{n}": (128, 40, 1, NO) for n in (15000, 30000)}
    | {f"eadpr-{n}": (128, 40, 1, EADPR) for n in (15000, 30000)},
    "004-table2": {"dpr-inbatch": INBATCH["dpr-inbatch"], "dpr": HARD["dpr"], "picl-inbatch": (128, 40, 0, PICL)}
    | dict.fromkeys(("picl", "picl-mined"), (128, 40, 1, PICL)),
    "004-table8": dict.fromkeys(("dpr", "dpr-better"), (48, 25, 1, NO))
    | dict.fromkeys(("picl", "picl-better"), (48, 25, 1, ANALYSIS)),
    "004-table4": ANALYSED
    | {"picl-cpp": (48, 25, 0, (0.2, 0.0, 0.2)), "picl-chn": (48, 25, 0, (0.2, 0.2, 0.0))}
    | {"picl-cpp-chn": (48, 25, 0, (0.0, 0.2, 0.2))}
    | {f"picl-{removed}": (48, 25, 0, ANALYSIS) for removed in ("answer", "window", "pseudo", "gold")},
    "004-figure4": ANALYSED
    | {f"dpr-random{n}": (48, 25, n, NO) for n in (1, 3)}
    | {f"picl-random{n}": (48, 25, n, ANALYSIS) for n in (1, 3)},
    "002-table4-1": {
        name: HARD[arm]
        for arm, family in (("dpr", "dpr"), ("eadpr-paper", "eadpr"))
        for name in (arm, f"{family}-shuffleq", f"{family}-shuffleqp")
    },
}


@pytest.mark.parametrize("name", PAPERS)
def test_on_wiki18_a_study_has_the_papers_settings(name):
    files = configs(on("wiki18", name))
    by_arm = {}
    for path, sections in files.items():
        arm, _, stage = path.partition("/")
        if stage == "train.json" and not arm.endswith(("-2", "-3")):
            train, loss = sections["train"], sections["loss"]
            assert (train["learning_rate"], train["steps"], train["seed"], loss["form"]) == (2e-5, None, 1, "paper")
            assert loss["dpr"] == (arm != "picl-cpp-chn")
            epochs = train["epochs"] * train["step_factor"]
            weights = (loss["lambda"], loss["tau1"], loss["tau2"])
            by_arm[arm] = (train["batch_size"], epochs, train["hard_negatives"], weights)
    assert by_arm == PAPERS[name]


def test_on_wiki18_arms_of_the_papers_read_what_they_should():
    files = configs(on("wiki18", "004-table4")) | configs(on("wiki18", "001-figure6b-wiki18"))
    arms = {"picl-inbatch": "sentence", "picl-answer": "answer", "picl-window": "window", "eadpr-paper": "pseudo"}
    for arm, strategy in arms.items():
        assert files[f"{arm}/examples.json"]["examples"]["strategy"] == strategy
    for family, most in itertools.product(("dpr", "eadpr"), (15000, 30000)):
        assert files[f"{family}-{most}/examples.json"]["examples"]["questions"] == most
    assert configs(on("wiki18", "004-figure4"))["dpr-random1/negatives.json"]["negatives"]["kind"] == "random"
    assert len(configs(on("wiki18", "002-table4-1"))["evaluate.json"]["sets"]["evaluate"]) == 5
    arms = {"001-table2": {"dpr-mined": "dpr", "eadpr-paper-mined": "eadpr-paper"}, "004-table2": {"picl-mined": "dpr"}}
    for name, sources in arms.items():
        files = configs(on("wiki18", name))
        for arm, source in sources.items():
            assert STUDIES[name].active[arm].negatives == source
            mined = files[f"{arm}/negatives.json"]["negatives"]
            assert (mined["kind"], mined["depth"], mined["keep"], mined["exclude"]) == ("ranked", 200, 200, ["answer"])
        assert files["dpr/retrieve.json"]["retrieve"]["depth"] == 200


@pytest.mark.parametrize(("more", "sets", "kind"), [("trex", None, "given"), ("paq", ["nq/train"], "ranked")])
def test_query_side_fine_tuning_of_the_thesis_has_the_rate_of_a_pretrained_encoder(more, sets, kind):
    files = configs(on(f"wiki18-{more}", "002-table5-2"))
    settings = files["query_sides/dpr-tuned.json"]["query_side"]
    expected = {"learning_rate": 3e-5, "top_k": 100, "batch_size": 12, "epochs": 5, "dropout": 0.1}
    assert settings | expected | {"sets": sets} == settings
    assert files["dpr/train.json"]["train"]["upsample"] == dict.fromkeys(sets or (), 0)
    assert files["dpr/negatives.json"]["negatives"]["kind"] == kind, "DPR's files name NQ's, none names PAQ's"


def test_two_hops_on_hotpot_have_mdrs_settings():
    files = configs(on("hotpot", "001-table4-mdr-hotpot"))
    expected = {"batch_size": 120, "learning_rate": 2e-5, "seed": 16, "warmup_steps": 3014, "epochs": 40}
    for model in ("mdr-dpr", "mdr-eadpr"):
        settings = files[f"multihop/{model}.json"]
        assert settings["train"] | expected | {"hard_negatives": 1} == settings["train"]
        assert settings["two_hop"] | {"shared": True, "query_tokens": 350} == settings["two_hop"]
        assert settings["encoder"] | {"question_tokens": 70, "passage_tokens": 300} == settings["encoder"]
    assert files["bases/roberta.json"]["base"]["model"] == "roberta-base"
    assert (files["retrieve_multihop.json"]["beam"]["paths"], files["read.json"]["read"]["paths"]) == (20, 20)


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from([0.5, 2e-5, 1e-9]),
    st.sampled_from(["base", "a b", "it's", "null", "True", "8", "x/y-z", "a: b", "{c}", "[d", "e,f", "", "~", "1e-6"]),
)  # fmt: skip


def values(leaves):
    """Each key has one kind of value: Hydra cannot make a mapping of a list."""
    kinds = {"k": leaves, "l": st.lists(LEAVES, max_size=2), "m-n": st.dictionaries(st.just("o"), leaves)}
    return st.fixed_dictionaries({}, optional=kinds)


@given(values(LEAVES.filter(lambda leaf: leaf is not None)), values(LEAVES))  # Hydra cannot delete a null
def test_overrides_turn_one_into_the_other(old, new):
    assert apply_overrides(list(make_overrides(old, new)), old | {"kept": 1}) == new | {"kept": 1}


def test_seeds_repeat_arms_with_their_own_sources():
    active = {"eadpr": EDGES, "mined": {"negatives": "eadpr", "init": "eadpr"}, "untrained": EDGES | {"once": True}}
    arms = {"mined": {}}
    assert expand(study(active=active, arms=arms), GOOD)["active"] == {
        "eadpr": EDGES, "mined": {"negatives": "eadpr", "init": "eadpr"}, "untrained": EDGES,
        "eadpr-2": {"repeats": "eadpr", "seed": 2, "negatives": "bm25", "init": "base-2"},
        "mined-2": {"repeats": "mined", "seed": 2, "negatives": "eadpr-2", "init": "eadpr-2"},
    }  # fmt: skip
    settings = {"robustness": {"generators": ["removed"], "arms": ["mined", "untrained"]}}
    of_user = {"fused": {"hybrid": {"first": "bm25", "second": "mine"}}}  # whose arms the study does not train
    of_user |= {"readers": {"r": {}}, "multihop": {"m": {}}, "query_sides": {"q": {}}, "reading": {"readers": ["r"]}}
    expanded = expand(study(active=active, arms=arms, settings=settings), GOOD | of_user)
    assert {key: expanded[key] for key in OF_ARMS} == OF_ARMS
    assert expanded["bases"] == {"base": {}, "base-2": {"seed": 2}}
    assert expanded["robustness"]["arms"] == ["mined", "mined-2", "untrained"]
    assert (expanded["train"]["seed"], expanded["base"]["seed"]) == (1, 1)


def test_seeds_repeat_query_sides_with_their_arms():
    tuned = {"query_sides": {"tuned": {"of": "eadpr"}, "single": {"of": "untrained"}}}
    qsft = {"negatives": "bm25", "init": "tuned"}
    active = {"eadpr": EDGES, "eadpr-qsft": qsft, "untrained": EDGES | {"once": True}}
    expanded = expand(study(active=active, settings=tuned), GOOD)
    assert expanded["query_sides"] == tuned["query_sides"] | {"tuned-2": {"of": "eadpr-2", "seed": 2}}
    again = {"repeats": "eadpr-qsft", "seed": 2, "negatives": "bm25", "init": "tuned-2"}
    assert expanded["active"]["eadpr-qsft-2"] == again
    configs(expanded)


def test_a_pretrained_encoder_is_the_same_for_every_seed():
    expanded = expand(study(settings={"base": {"model": "bert-base-uncased"}}), GOOD)
    assert (expanded["bases"], expanded["active"]["dpr-2"]["init"]) == ({"base": {}}, "base")
    settings = {"collections": {"atlas": {"settings": {"base": {"model": "bert-base-uncased"}}}}}
    assert expand(study(settings=settings), GOOD)["bases"] == {"base": {}}


def test_the_first_seed_of_the_default_is_the_default_pipeline():
    """So that a study takes the default's trainings from DVC's cache."""
    files, default = configs(expand(STUDIES["evidence"], GOOD)), configs(GOOD)
    excluded = {"report.json", "explore.json", "report_to.json"}  # these name all arms, and the study lacks one
    of_trainings = {name for name in default.keys() - excluded if not name.startswith("untrained/")}
    assert {name: files[name] for name in of_trainings} == {name: default[name] for name in of_trainings}


def test_what_is_wrong_in_a_study_is_named(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("one:\n  about: a\n  seeds: []\n  active: {dpr: {negatives: bm25}}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"(?s)a\.yaml: one: .*seeds.*active\.dpr\.init"):
        read_studies(tmp_path)
    for name in ("a", "b"):
        text = "one: {about: a, seeds: [1], active: {dpr: {negatives: bm25, init: base}}}\n"
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"b\.yaml: one: another file"):
        read_studies(tmp_path)


def test_what_cannot_be_expanded():
    with pytest.raises(ValueError, match="this study is for hotpot and squad-open, not for atlas"):
        expand(study(collections=["hotpot", "squad-open"]), GOOD)
    with pytest.raises(ValueError, match=r"seeds \[2, 2\]: "):
        expand(study(seeds=[2, 2]), GOOD)


def test_an_override_is_of_every_seed():
    custom = study(settings={"bases": {"better": {"layers": 4}}, "train": {"steps": 7}}, arms={"other": {}}, active={
        "dpr": EDGES, "other": {"negatives": "bm25", "init": "better"},
    })  # fmt: skip
    changes = ["train.steps=9", "robustness.generators=[removed]", "robustness.arms=[dpr]", "base.model=folder"]
    expanded = expand(custom, GOOD, changes)
    assert expanded["train"]["steps"] == 9, "it wins over the study's"
    assert expanded["robustness"]["arms"] == ["dpr", "dpr-2"]
    assert set(expanded["bases"]) == {"base", "better"}, "with a pretrained encoder no weights are drawn"
    assert expanded["active"]["other-2"]["init"] == "better"
    assert set(expand(custom, GOOD)["bases"]) == {"base", "better", "base-2", "better-2"}
    assert expand(custom, GOOD, ["+active.picl={negatives: bm25, init: base}"])["active"]["picl-2"]["repeats"] == "picl"


@pytest.mark.parametrize("change", ["train=5", "~train", "base=null", "active=5", "+active.x=5", "collection=null"])
def test_an_override_that_is_no_setting_is_named(change):
    with pytest.raises(ValueError, match=change.strip("~+").partition("=")[0].partition(".")[0]):
        expand(study(), GOOD, [change])


@pytest.mark.parametrize(("change", "advice"), [
    ("tau1=0.5", "-S tau1=0.5: no setting tau1; did you mean loss.tau1?"),
    ("steps=5", "-S steps=5: no setting steps; did you mean train.steps?"),
    ("active.dpr.negativs=bm25", "; did you mean active.dpr.negatives?"),
    ("los.tau1=0.5", "-S los.tau1=0.5: no setting los.tau1; did you mean loss.tau1 or loss.tau2?"),
    ("~loss.tau9", "-S ~loss.tau9: no setting loss.tau9; did you mean loss.tau1 or loss.tau2?"),
    ("zzz=1", "-S zzz=1: no setting zzz; params.yaml and src/eadpr/settings/defaults.yaml have all"),
    ("train.adam_eps", "-S train.adam_eps: it has no value; write KEY=VALUE, as in loss.tau1=0.5"),
    ("active.picl={}", "To append to your config use +active.picl={}"),
    ("train.adam_eps=1", "train.adam_eps stands in defaults.yaml, not in params.yaml; write -S ++train.adam_eps=1"),
    ("src/defaults.yaml:loss.tau1=1", "a key stands here without its file; write -S ++loss.tau1=1"),
    ("params.yaml:~arms.eadpr", "without its file; write -S ~arms.eadpr"),
])  # fmt: skip
def test_a_key_in_the_wrong_place_is_answered_with_the_right_one(change, advice):
    with pytest.raises(ValueError, match=f"{re.escape(advice)}$"):
        apply_overrides([change], PARAMS)


@pytest.mark.parametrize("key", ["train.seed", "base.seed", "++collections.atlas.settings.train.seed", "++reader.seed"])
def test_a_seed_that_the_study_would_outdo_is_refused(key):
    with pytest.raises(ValueError, match=re.escape(f"-S {key}=7: nothing reads it")):
        expand(study(), GOOD, [f"{key}=7"])


def test_a_seed_reaches_two_hop_trainings_and_readers():
    seeded = with_seeds(STUDIES["001-table4-mdr-hotpot"], [3])
    files = configs(expand(seeded.model_copy(update={"settings": seeded.settings | {"collection": "hotpot"}}), GOOD))
    for path, sections in files.items():
        if path in ("dpr/train.json", "multihop/mdr-dpr.json") or path.startswith("readers/"):
            assert (sections.get("train") or sections["reader"])["seed"] == 3, path


@pytest.mark.parametrize(("name", "kind"), [("001-table4-mdr-atlas", "multihop and readers"), ("hybrid", "fused")])
def test_several_seeds_of_what_is_made_once_are_refused(name, kind):
    with pytest.raises(ValueError, match=rf"seeds \[1, 2\]: {kind} are of one training; give one --seed at a time"):
        expand(with_seeds(STUDIES[name], [1, 2]), GOOD)
