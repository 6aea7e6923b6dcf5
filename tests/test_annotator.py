"""The annotator: reading practice, UnifiedQA's input form, cross-fitting, and the same bytes after it died."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from eadpr.runtime import cache, files
from eadpr.runtime.model_folders import ModelFiles, model_files
from eadpr.runtime.section import Sets
from eadpr.storage.records import Passage, Question
from eadpr.supervision import annotator as building
from eadpr.supervision import annotator_lessons as lessons
from eadpr.supervision import qa_model
from eadpr.supervision.annotator import build_annotator, training_plan
from eadpr.supervision.config import Annotator
from eadpr.supervision.manifest import Manifest, Model, Prompt, read_manifest
from eadpr.supervision.pairs import Pair
from eadpr.supervision.small_t5 import new_model
from eadpr.training import loop
from eadpr.training.state import Checkpoints
from tests.killed import Killed
from tests.supervision_toy import ANNOTATOR, HARDWARE, SEPARATE, SHARED, annotator_settings, write_collection


@given(st.integers(2, 300), st.integers(3, 12), st.integers(1, 40), st.integers(0, 99))
def test_a_continuation_follows_its_snippet_in_the_passage(length, snippet, target, seed):
    tokens = np.arange(1000, 1000 + length)
    source, answer = lessons.continuation(tokens, snippet=snippet, target=target, rng=np.random.default_rng(seed))
    assert np.concatenate([source, answer]).tolist() == list(range(source[0], source[0] + len(source) + len(answer)))
    assert set(source) | set(answer) <= set(tokens)
    assert 1 <= len(source) <= snippet
    assert 1 <= len(answer) <= target
    if length >= snippet + target:
        assert len(source) >= 3
        assert len(answer) == target


def test_every_place_of_a_passage_is_continued():
    tokens, rng = np.arange(20), np.random.default_rng(0)
    draws = [lessons.continuation(tokens, snippet=4, target=6, rng=rng) for _ in range(500)]
    assert {int(source[0]) for source, _ in draws} >= set(range(11))
    assert {len(source) for source, _ in draws} == {3, 4}


ROWING = Pair(
    Question("q", "Where does she row?", ["Garda"], "string", None, None, None, None),
    Passage("p", "Ada", "Ada rows. She rows on Garda. She won twice. Garda is a lake.", None),
    None,
)


def test_sentences_without_an_answer_are_expendable():
    text = ROWING.passage.text
    assert [text[s.start : s.end] for s in lessons.expendable(ROWING)] == ["Ada rows.", "She won twice."]
    unanswered = ROWING._replace(question=ROWING.question._replace(answers=["Como"]))
    assert lessons.expendable(unanswered) == [], "any sentence may be the evidence of an answer that no sentence holds"


def test_learning_to_answer_reads_a_passage_without_other_sentences_each_time():
    rng = np.random.default_rng(0)
    text, spare = ROWING.passage.text, lessons.expendable(ROWING)
    assert {lessons.without_some(text, spare, rng) for _ in range(60)} == {
        "She rows on Garda. She won twice. Garda is a lake.",
        "Ada rows. She rows on Garda. Garda is a lake.",
        "She rows on Garda. Garda is a lake.",
    }
    assert lessons.without_some("All of it.", [], rng) == "All of it."


def test_a_fold_learns_from_practice_alone_and_not_from_the_fold_before_it(built, tmp_path, monkeypatch):
    *folders, out = built
    plan = building._plan(SHARED, *folders)
    monkeypatch.setattr(building, "_plan", lambda *_: plan[1:])
    alone = tmp_path / "annotator"
    build(built, alone, annotator_settings())
    assert files.tree_sha256(alone / "fold-0") == files.tree_sha256(out / "fold-1")


def test_the_gradient_is_that_of_the_mean_loss_over_all_target_tokens():
    """Check 20 examples, more than share a pass, with targets of 1 to 4 tokens, against one batch and one mean."""
    torch.manual_seed(0)
    model = new_model(annotator_settings(dropout=0.0).build, vocabulary=50)
    rng = np.random.default_rng(0)
    examples = [(rng.integers(3, 50, 2 + i % 5), rng.integers(3, 50, 1 + i % 4)) for i in range(20)]
    loss = lessons.add_gradients(model, examples, 0)
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    tensors = [tuple(map(torch.tensor, example)) for example in examples]
    rows = [model(input_ids=source[None], labels=target[None]).loss * len(target) for source, target in tensors]
    expected = sum(rows) / sum(len(target) for _, target in examples)
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    for name, p in model.named_parameters():
        torch.testing.assert_close(gradients[name], p.grad, rtol=1e-3, atol=1e-6)


def test_a_new_model_raises_the_logits_of_what_it_attends_to():
    """The output of cross-attention with all attention on one token is that token's state, whatever it is."""
    torch.manual_seed(0)
    model = new_model(annotator_settings(width=16).build, vocabulary=50)
    attention = model.decoder.block[0].layer[1].EncDecAttention
    state = torch.randn(16)
    torch.testing.assert_close(attention.o.weight @ attention.v.weight @ state, state, rtol=1e-4, atol=1e-5)
    bias = model.encoder.block[0].layer[0].SelfAttention.compute_bias(5, 5)[0]  # (heads, 5, 5)
    assert (bias[0, 2].argmax(), bias[1, 2].argmax()) == (1, 3)


def test_epoch_batches_are_of_similar_length():
    lengths = np.random.default_rng(0).integers(1, 100, size=160)
    spread = [np.ptp(lengths[batch]) for batch in lessons.epoch_batches(lengths, 10, np.random.default_rng(3))]
    assert max(spread) < 25


def test_an_epoch_of_batches_shows_every_example_once_each_epoch_in_another_order():
    recipe = annotator_settings(batch=3).build
    examples = lessons.Phase(1, np.arange(7), lambda index, rng: (np.array([index]), rng.integers(0, 2**31, 1)))
    epochs = [[examples.batch(3 * epoch + i, recipe) for i in range(3)] for epoch in range(4)]
    orders = [[int(source[0]) for batch in epoch for source, _ in batch] for epoch in epochs]
    assert [sorted(order) for order in orders] == [list(range(7))] * 4
    assert len(set(map(tuple, orders))) > 1
    targets = {int(target[0]) for epoch in epochs for batch in epoch for _, target in batch}
    assert len(targets) == 28, "an example is made anew each time"
    again = examples.batch(4, recipe)
    assert [list(map(list, example)) for example in again] == [list(map(list, e)) for e in epochs[1][1]]


def test_prompt_is_unifiedqas():
    prompt = Prompt("{question} \\n {context}", lowercase=True)
    assert prompt.input("Who {context}?", "Émile", "He {question}.") == "who {context}? \\n (émile) he {question}."
    assert (prompt.input("Who?", "", "Text"), prompt.cased("ABC")) == ("who? \\n text", "abc")
    assert Prompt("Q {context} {question}", lowercase=False).input("Who?", "T", "X") == "Q (T) X Who?"


@pytest.mark.parametrize("prompt", ["{question}", "{context} {question} {question}"])
def test_a_prompt_without_its_fields_is_refused(prompt):
    with pytest.raises(ValueError, match="each once"):
        Annotator(**ANNOTATOR | {"prompt": prompt})


def test_training_plan():
    halves = {"a": 0, "b": 1, "c": 0}
    assert training_plan(["x", "y"], ["a", "b"], halves) == [["x", "y"]]
    assert training_plan(["a", "b", "c", "x"], ["a", "b", "c", "d"], halves) == [["b", "x"], ["a", "c", "x"]]
    assert training_plan(["a", "z"], ["a", "z"], {"a": 0}) == [[], ["a"]], "z has no positive, so no half"


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)), st.integers(0, 2**31))
def test_no_model_annotates_a_question_it_saw(training, annotated, bits):
    halves = {str(i): bits >> i & 1 for i in range(31)}
    plan = training_plan([str(i) for i in sorted(training)], [str(i) for i in sorted(annotated)], halves)
    models = [Model(f"fold-{k}", ids) for k, ids in enumerate(plan)]
    manifest = Manifest("build", Prompt("", lowercase=True), models, {})
    for question in annotated:
        (model,) = manifest.assign([str(question)])
        assert str(question) not in plan[model]
    assert set().union(*plan) == {str(i) for i in training}  # all have a half here


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path, Path]:
    """records, positives and a cross-fit annotator."""
    folder = tmp_path_factory.mktemp("collection")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EADPR_CACHE", str(folder / "cache"))
        records, positives = write_collection(folder)
        out = folder / "annotator"
        build_annotator(annotator_settings(), SHARED, HARDWARE, records=records, positives=positives, out=out)
        assert not list((folder / "cache" / "annotator").glob("*/*")), "work in progress is deleted"
    return records, positives, out


def test_cross_fit_writes_two_models(built):
    _, _, out = built
    manifest = read_manifest(out)
    assert manifest.models == [Model("fold-0", ["q1", "q3"]), Model("fold-1", ["q0", "q2"])]
    assert manifest.assign([f"q{i}" for i in range(6)]) == [0, 1, 0, 1, 0, 0]
    for fold in ("fold-0", "fold-1"):
        assert {"config.json", "model.safetensors", "tokenizer.json"} <= {p.name for p in (out / fold).iterdir()}
    assert files.sha256(out / "fold-0" / "model.safetensors") != files.sha256(out / "fold-1" / "model.safetensors")


def test_a_built_model_is_an_ordinary_t5_folder(built):
    tokenizer = AutoTokenizer.from_pretrained(built[2] / "fold-0")
    model = AutoModelForSeq2SeqLM.from_pretrained(built[2] / "fold-0")
    ids = tokenizer("who was born? \\n (person 1) naïve 東京").input_ids
    assert tokenizer.decode(ids, skip_special_tokens=True).strip() == "who was born? \\n (person 1) naïve 東京"
    assert ids[-1] == tokenizer.eos_token_id == model.config.eos_token_id
    assert tokenizer.pad_token_id == model.config.pad_token_id == model.config.decoder_start_token_id
    assert len(tokenizer) == model.config.vocab_size


def test_the_stage_never_shows_a_whole_passage_while_it_teaches_answering(built, tmp_path, monkeypatch):
    tokenizer = AutoTokenizer.from_pretrained(built[2] / "fold-0")  # the same: it is learnt from the same passages
    texts: set[str] = set()
    take_step = loop.take_step

    def recorded(state, task, examples: list) -> None:
        texts.update(tokenizer.decode(source, skip_special_tokens=True).split(") ")[1] for source, _ in examples)
        take_step(state, task, examples)

    monkeypatch.setattr(loop, "take_step", recorded)
    settings = annotator_settings(continuation_steps=0, answering_steps=24)
    out = tmp_path / "annotator"
    build(built, out, settings, SEPARATE)
    assert read_manifest(out).models == [Model("fold-0", ["q6", "q7"])], "without overlap one model is built"
    assert sorted(p.name for p in out.iterdir()) == ["annotator.json", "fold-0"]
    forms = "was born in {1}. nobody knows why.", "liked tea. person {0} was born in {1}.", "was born in {1}."
    people = (6, "gant"), (7, "hull")
    assert texts == {f"person {person[0]} {form.format(*person)}" for person in people for form in forms}


def build(built, out: Path, settings: Annotator, sets: Sets = SHARED, **options: ModelFiles) -> Manifest:
    records, positives, _ = built
    return build_annotator(settings, sets, HARDWARE, records=records, positives=positives, out=out, **options)


def build_given(built, out: Path, model: Path, pinned_files: ModelFiles) -> Manifest:
    return build(built, out, Annotator(**ANNOTATOR | {"model": str(model)}), model_files=pinned_files)


def test_a_local_model_is_pointed_to_with_its_hashes(built, tmp_path):
    model = built[2] / "fold-0"
    build_given(built, tmp_path / "given", model, model_files(str(model)))
    manifest = read_manifest(tmp_path / "given")
    assert manifest.models == [Model(str(model), [])]
    assert manifest.hashes["model.safetensors"] == files.sha256(model / "model.safetensors")
    assert manifest.revision is None
    assert [p.name for p in (tmp_path / "given").iterdir()] == ["annotator.json"]


def test_a_local_model_that_changed_since_configs_is_refused(built, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(built[2] / "fold-0", model)
    pinned_files = model_files(str(model))
    shutil.copy(built[2] / "fold-1" / "model.safetensors", model)
    with pytest.raises(ValueError, match=r"model: model\.safetensors changed.* `dvc repro -f configs`"):
        build_given(built, tmp_path / "given", model, pinned_files)
    assert not (tmp_path / "given").exists()


def test_a_given_name_is_loaded_at_its_revision_here_and_to_find_evidence(built, tmp_path, monkeypatch):
    loaded = []
    monkeypatch.setattr(qa_model, "load", lambda model, *, revision: loaded.append((model, revision)))
    build(built, tmp_path / "given", Annotator(**ANNOTATOR | {"model": "org/name", "revision": "v2"}))
    qa_model.load_annotator(tmp_path / "given", read_manifest(tmp_path / "given"), 0)
    assert loaded == [("org/name", "v2")] * 2


def steps_of(settings: Annotator, sets: Sets, folder: Path, out: Path, *, die_after: int | None = None) -> list[int]:
    """The steps that building takes, with checkpoints every 4; with `die_after` it dies after so many."""
    steps, take_step = [], loop.take_step

    def counted(state, *arguments):
        if len(steps) == die_after:
            raise Killed
        steps.append(state.step)
        take_step(state, *arguments)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed) if die_after else nullcontext():
        patch.setattr(loop, "take_step", counted)
        patch.setattr(Checkpoints, "due", lambda _: len(steps) % 4 == 0)
        inputs = {"records": folder / "records", "positives": folder / "positives"}
        build_annotator(settings, sets, HARDWARE, **inputs, out=out)
    return steps


def test_killed_and_started_again_gives_the_bytes_of_an_undisturbed_run(tmp_path):
    """Six steps of practice, then ten for each fold; killed in fold 1, after its sixth."""
    settings = annotator_settings(answering_steps=10)
    write_collection(tmp_path)
    assert steps_of(settings, SHARED, tmp_path, tmp_path / "whole") == [*range(16), *range(6, 16)]
    steps_of(settings, SHARED, tmp_path, tmp_path / "annotator", die_after=22)
    assert not (tmp_path / "annotator").exists()
    assert steps_of(settings, SHARED, tmp_path, tmp_path / "annotator") == [*range(10, 16)]
    assert files.tree_sha256(tmp_path / "annotator") == files.tree_sha256(tmp_path / "whole")
    leftovers = [path for path in cache.root().rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert {path.relative_to(cache.root()).parts[0] for path in leftovers} <= {"passages"}, "no checkpoint"


def test_none_builds_nothing_and_a_missing_model_is_an_error(built, tmp_path):
    assert build(built, tmp_path / "a", Annotator(**ANNOTATOR | {"model": "none"})).models == []
    with pytest.raises(ValueError, match="nowhere' is neither a folder nor a name of the Hub"):
        build(built, tmp_path / "b", Annotator(**ANNOTATOR | {"model": str(tmp_path / "nowhere")}))
    assert not (tmp_path / "b").exists()


def test_nothing_to_learn_from_is_an_error(built, tmp_path):
    nothing = Sets(train=["toy/train"], evaluate=["toy/dev"], annotator=[])
    with pytest.raises(ValueError, match="nothing to learn question answering from"):
        build(built, tmp_path / "a", annotator_settings(), nothing)
    assert not (tmp_path / "a").exists()
