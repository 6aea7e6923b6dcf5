"""The training loop end to end on a small collection: it learns, repeats itself, and survives being killed."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from transformers import AutoConfig, AutoModel

from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Distractor, Example, SetMember
from eadpr.training import contrastive, forward, loop
from eadpr.training.arm import ArmInputs, ArmSettings, freeze_lower, train_arm
from eadpr.training.config import Loss
from eadpr.training.encoder import load, load_pair
from eadpr.training.example_set import read_examples
from eadpr.training.forward import encode
from eadpr.training.losses import dpr_loss
from eadpr.training.padding import pad
from eadpr.training.state import TrainingState
from tests import training_toy as toys
from tests.killed import Killed, assert_goes_on
from tests.training_toy import BALANCED, CITIES, DPR, EADPR, MACHINE, NAMES, PLAIN, SETTINGS, TRAIN, batcher_of, series

pytestmark = pytest.mark.usefixtures("one_thread")


def train(toy: Path, out: Path, *, loss=EADPR, settings=SETTINGS, init=None, **changes) -> int:
    """Train an arm into `out/model` and `out/log`."""
    inputs = ArmInputs(toy / "records", toy / "examples", init or toy / "base")
    sections = ArmSettings(loss, TRAIN.model_copy(update=changes), settings, MACHINE)
    return train_arm(inputs, out / "model", out / "log", sections)


def contrasts(model: Path) -> torch.Tensor:
    """s(q,p+) - s(q,p*) of the validation questions."""
    question, passage = load(model, "question"), load(model, "passage")
    held_out = [(name, CITIES[i % len(CITIES)]) for i, name in enumerate(NAMES) if i % 4 == 3]
    questions = question.question_ids([f"where was {name} born?" for name, _ in held_out])
    texts = [toys.text_of(*pair) for pair in held_out]
    with torch.no_grad():
        q = question(*pad(questions, 0))
        p, d = (passage(*pad(passage.passage_ids(NAMES[3::4], [t[k] for t in texts]), 0)) for k in (0, 1))
    return (q * (p - d)).sum(1)


def test_the_loss_falls_and_positives_rise_above_their_distractors(toy, tmp_path):
    assert train(toy, tmp_path, steps=60, batch_size=8, validate_every=30) == 60
    loss = series(tmp_path, "train/loss")
    assert len(loss) == 60
    assert sum(loss[-10:]) / 10 < 0.6 * loss[0]
    assert contrasts(toy / "base").median() < contrasts(tmp_path / "model").median()
    assert (contrasts(tmp_path / "model") > 0).all()
    ranks = series(tmp_path, "validation/average_rank")
    assert len(ranks) == 2
    metrics = json.loads((tmp_path / "log" / "metrics.json").read_text())
    assert metrics["validation"]["average_rank"] == ranks[-1]
    assert (metrics["steps"], metrics["questions"], metrics["validation_questions"]) == (60, 15, 4)
    assert (metrics["without_distractor"], metrics["truncated"], metrics["without_negatives"]) == (1, 0, 0)
    assert series(tmp_path, "train/masked") != [0.0] * 60
    assert set(series(tmp_path, "train/without_distractor")) == {0.0, 1.0}
    assert series(tmp_path, "train/truncated") == [0.0] * 60


def test_a_training_with_placebos_logs_their_term_and_who_has_none(toy, tmp_path):
    folder = toys.with_placebos(toy, tmp_path / "toy")
    loss = BALANCED.model_copy(update={"tau1": 0.7, "tau2": 2.0})
    train(folder, tmp_path, loss=loss, steps=3, batch_size=8)
    columns = (series(tmp_path, f"train/{name}") for name in ("loss", "dpr", "hn", "pp", "placebo"))
    for total, dpr, hn, pp, placebo in zip(*columns, strict=True):
        assert total == pytest.approx(dpr + 0.7 * hn + 2.0 * pp + 0.5 * placebo, rel=1e-5)
        assert placebo > 0
    metrics = json.loads((tmp_path / "log" / "metrics.json").read_text())
    assert (metrics["without_placebo"], metrics["without_distractor"]) == (1, 1)
    assert max(series(tmp_path, "train/without_placebo")) == 1


@pytest.mark.parametrize(("keep", "step"), [("best", 1), ("last", 5)])
def test_a_training_that_died_at_any_step_ends_with_the_same_bytes(toy, tmp_path, monkeypatch, keep, step):
    changes = {"steps": 5, "keep": keep, "validate_every": 2}

    def run(out: Path) -> None:
        train(toy, out, **changes)

    assert_goes_on(run, "train", at=step, steps=5, folder=tmp_path, monkeypatch=monkeypatch)


def test_another_setting_or_version_of_a_library_does_not_continue_a_killed_training(
    toy, tmp_path, monkeypatch, update_library
):
    monkeypatch.setenv("EADPR_CHECKPOINT_SECONDS", "0")
    steps = []

    def dying(values, step, **_):
        steps.append(step)
        if len(steps) == 3:
            raise Killed

    monkeypatch.setattr(loop, "check_finite", dying)
    with pytest.raises(Killed):
        train(toy, tmp_path / "killed", steps=4)
    train(toy, tmp_path / "setting", steps=4, learning_rate=1e-4)
    update_library()
    train(toy, tmp_path / "library", steps=4)
    assert steps == [1, 2, 3, *range(1, 5), *range(1, 5)]


@pytest.mark.parametrize(("keep", "ranks", "kept_rank", "step"), [
    ("best", [6.0, 5.0, 2.0, 3.0], 2.0, 4), ("best", [1.0, 5.0, 2.0, 3.0], 1.0, 0),
    ("last", [5.0, 2.0, 3.0], 3.0, None), ("best", [2.5, 2.25, 3.0, 2.75], 2.25, 2),
])  # fmt: skip
def test_the_weights_of_the_best_validation_or_of_the_last_step_are_kept(
    toy, tmp_path, monkeypatch, keep, ranks, kept_rank, step
):
    """The start's are kept where no step made them better. Fractions are losses, which decide among equal ranks."""
    ranks = iter(ranks)
    weights = {}

    def fake_validate(encoders, *_):
        rank = next(ranks)
        weights[rank] = [p.detach().clone() for p in encoders.passage.parameters()]
        return contrastive.Validation(rank % 1, rank // 1)

    monkeypatch.setattr(contrastive, "validate", fake_validate)
    train(toy, tmp_path, steps=6, validate_every=2, keep=keep)
    saved = list(load(tmp_path / "model", "passage").parameters())
    same = {rank: all(torch.equal(a, b) for a, b in zip(saved, state, strict=True)) for rank, state in weights.items()}
    assert same == {rank: rank == kept_rank for rank in weights}
    assert json.loads((tmp_path / "log/metrics.json").read_text()).get("kept_step") == step


@pytest.mark.parametrize("side", ["question", "passage"])
def test_a_frozen_encoder_keeps_its_bytes_and_the_other_learns(toy, tmp_path, side):
    train(toy, tmp_path, freeze=side, steps=4, dropout=0.2)
    for name in ("question", "passage"):  # the whole folder, which the vectors kept of a passage encoder go by
        folders = (folder / f"{name}_encoder" for folder in (toy / "base", tmp_path / "model"))
        assert (len({files.tree_sha256(folder) for folder in folders}) == 1) == (name == side)


def test_a_frozen_encoder_drops_nothing_out(toy, monkeypatch):
    encoders = load_pair(toy / "base", SETTINGS)
    encoders.passage.requires_grad_(requires_grad=False)
    batcher = batcher_of(toy)
    task = contrastive.task(batcher, batcher, ArmSettings(EADPR, TRAIN, SETTINGS, MACHINE), 4)
    loop.take_step(TrainingState(encoders, TRAIN), task, batcher.sampled(0))
    assert (encoders.question.training, encoders.passage.training) == (True, False)


KINDS = {  # a model with as few weights as it can have
    "bert": {}, "xlm-roberta": {}, "modernbert": {}, "qwen3": {"num_key_value_heads": 1, "head_dim": 8},
    "llama": {"num_key_value_heads": 1}, "distilbert": {"n_layers": 3, "dim": 16, "n_heads": 2, "hidden_dim": 16},
}  # fmt: skip


def tiny(kind: str, **sizes) -> torch.nn.Module:
    common = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 16,
              "vocab_size": 60, "pad_token_id": 0}  # fmt: skip
    return AutoModel.from_config(AutoConfig.for_model(kind, **(common | sizes)))


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_upper_layers_learn_whatever_the_kind_of_encoder(kind):
    model = tiny(kind, **KINDS[kind]).train()
    upper = freeze_lower(model, 2)
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    numbers = {next(part for part in name.split(".") if part.isdigit()) for name in learning}
    assert (len(upper), numbers) == (2, {"1", "2"})
    assert {id(p) for layer in upper for p in layer.parameters()} == {
        id(p) for name, p in model.named_parameters() if name in learning
    }
    model(input_ids=torch.tensor([[5, 6, 7]])).last_hidden_state.sum().backward()
    assert all((p.grad is not None) == (name in learning) for name, p in model.named_parameters())
    with pytest.raises(ValueError, match=r"train\.layers is 4, but the encoder has 3 layers"):
        freeze_lower(model, 4)


@pytest.mark.parametrize(("weights", "distractors", "placebos"), [
    ({}, False, False),
    ({"lambda": 0.2}, True, False),
    ({"tau1": 0.2}, True, False),
    ({"tau2": 0.2}, True, False),
    ({"form": "reference"}, True, False),  # whose sums have a 1 for each
    ({"tau1": 0.2, "balance": "placebo"}, True, True),
    ({"balance": "placebo"}, False, False),  # as of DPR, where all arms are balanced
    ({"placebo": 0.5}, False, True),
])  # fmt: skip
def test_which_losses_need_distractors_and_placebos(weights, distractors, placebos):
    loss = Loss.model_validate(PLAIN | {"lambda": 0.0, "tau1": 0.0, "tau2": 0.0} | weights)
    assert (loss.needs_distractors, loss.needs_placebos) == (distractors, placebos)


def test_a_training_reads_shuffled_texts_where_asked_to(toy, tmp_path):
    losses = set()
    for questions, passages in product((False, True), repeat=2):
        out = tmp_path / f"{questions}-{passages}"
        train(toy, out, steps=1, shuffle_questions=questions, shuffle_passages=passages)
        losses.update(series(out, "train/loss"))
    assert len(losses) == 4


def test_validation_reads_its_texts_as_they_are(toy, tmp_path):
    for name, shuffle in (("a", False), ("b", True)):
        train(toy, tmp_path / name, steps=0, shuffle_questions=shuffle, shuffle_passages=shuffle)
    assert series(tmp_path / "a", "validation/nll") == series(tmp_path / "b", "validation/nll")


def test_decay_spares_biases_and_norms(toy):
    encoders = load_pair(toy / "base", SETTINGS)
    state = TrainingState(encoders, TRAIN.model_copy(update={"weight_decay": 0.1}))
    decays, spared = state.optimizer.param_groups
    params = [(name, parameter) for encoder in encoders for name, parameter in encoder.named_parameters()]
    expected = {id(parameter) for name, parameter in params if "bias" in name or "LayerNorm" in name}
    assert (decays["weight_decay"], spared["weight_decay"]) == (0.1, 0.0)
    assert {id(parameter) for parameter in spared["params"]} == expected
    assert {id(parameter) for parameter in decays["params"]} == {id(parameter) for _, parameter in params} - expected


def test_the_dropout_of_attention_is_found_under_the_names_that_encoders_have():
    """Weights get theirs under any name; hidden states keep theirs where MPNet's and ALBERT's stand next to it."""
    names = {"bert": "attention.self.dropout", "modernbert": "layers.0.attn", "albert": "attention.attention_dropout",
             "mpnet": "attention.attn.dropout", "distilbert": "attention.dropout"}  # fmt: skip
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8,
             "vocab_size": 60, "pad_token_id": 0, "embedding_size": 8, "dim": 8, "n_layers": 1,
             "n_heads": 2}  # fmt: skip
    for kind, ending in names.items():
        model = AutoModel.from_config(AutoConfig.for_model(kind, **sizes))
        loop.set_dropout(model, hidden=0.25, attention=0.125)
        rates = {name: part.p for name, part in model.named_modules() if isinstance(part, torch.nn.Dropout)}
        rates |= {name: dropout for name, part in model.named_modules()
                  if isinstance(dropout := getattr(part, "attention_dropout", None), float)}  # fmt: skip
        assert {rate for name, rate in rates.items() if name.endswith(ending)} == {0.125}, (kind, rates)
        assert {rate for name, rate in rates.items() if not name.endswith(ending)} == {0.25}, (kind, rates)


def test_average_rank_counts_what_is_above_and_ties():
    assert [len(contrastive.sample(count, 4, 3)) for count in (0, 3, 4, 15)] == [0, 3, 4, 4]
    scores = torch.tensor([[3.0, 1.0, 2.0, 0.0], [5.0, 5.0, 1.0, 0.0]])
    passages = torch.eye(4)
    assert contrastive.average_rank(scores, passages, torch.tensor([2, 0])) == (1 + 1) / 2
    assert contrastive.average_rank(scores, passages, torch.tensor([0, 1])) == (0 + 1) / 2
    many = scores.repeat(200, 1)  # more than are scored at once
    assert contrastive.average_rank(many, passages, torch.tensor([3, 2] * 200)) == (3 + 2) / 2


def test_the_pool_of_validation_holds_all_positives_and_the_first_negatives_of_each_question(toy):
    negatives = pa.array([[7, 1, 2], [], [3], [4, 5, 6]])
    examples = batcher_of(toy).examples._replace(positives=np.array([5, 7, 8, 5]), negatives=negatives)
    assert contrastive.make_pool(examples, [0, 1, 3], 2) == ([5, 7, 1, 4], [0, 1, 0])


def test_average_ranks_of_one_hash_are_of_the_same_questions_and_passages(toy):
    batcher, two = batcher_of(toy), TRAIN.model_copy(update={"validation_questions": 2})
    counts = contrastive.count_validation(batcher, two)
    assert counts == contrastive.count_validation(batcher_of(toy), two)
    chosen = contrastive.sample(len(batcher), 2, two.seed)
    pool, _ = contrastive.make_pool(batcher.examples, chosen, two.validation_hard_negatives)
    assert (counts["validation_questions"], counts["validation_passages"]) == (2, len(pool))
    changes = {"seed": 6, "validation_questions": 3}, {"validation_hard_negatives": 0}
    hashes = [contrastive.count_validation(batcher, two.model_copy(update=x))["validation_pool"] for x in changes]
    assert len({*hashes, counts["validation_pool"]}) == 3
    assert contrastive.count_validation(batcher, two.model_copy(update={"validation_questions": 0})) == {}


def test_the_loss_of_validation_is_that_of_dpr_alone_as_a_mean_over_questions(toy, monkeypatch):
    """And drops nothing out; how many passages are encoded at once decides nothing."""
    batcher, encoders = batcher_of(toy), load_pair(toy / "base", SETTINGS)
    for encoder in encoders:
        encoder.train()
    settings = ArmSettings(EADPR, TRAIN, SETTINGS, MACHINE)
    validation = contrastive.validate(encoders, batcher, range(2, 8), settings)
    monkeypatch.setattr(contrastive, "ROWS", 2)
    assert contrastive.validate(encoders, batcher, range(2, 8), settings) == validation
    losses = []
    for part in (range(2, 6), range(6, 8)):
        batch = batcher.first(part)
        with torch.no_grad():
            losses.append(dpr_loss(forward.EncodedBatch(encoders, batch, MACHINE).scores(), batch.masks, 0.0).item())
    assert validation.nll == pytest.approx((4 * losses[0] + 2 * losses[1]) / 6, rel=1e-5)
    pool, gold = contrastive.make_pool(batcher.examples, list(range(2, 8)), TRAIN.validation_hard_negatives)
    with torch.no_grad():
        questions = forward.EncodedBatch(encoders, batcher.first(range(2, 8)), MACHINE).questions_QD
        passages = encode(encoders.passage, batcher.inputs.ids(pool), MACHINE)
    assert validation.average_rank == contrastive.average_rank(questions, passages, torch.tensor(gold))


def test_a_loss_that_is_not_finite_stops_naming_step_and_term(toy, tmp_path):
    with pytest.raises(ValueError, match=r"step [2-9]\d*: \w+ is (nan|inf)"):
        train(toy, tmp_path, steps=30, learning_rate=1e38, max_grad_norm=1e30, warmup_steps=0)
    assert not (tmp_path / "model").exists()


def test_what_cannot_be_trained_on_is_refused(toy, tmp_path):
    with pytest.raises(ValueError, match="one question without hard negatives"):
        train(toy, tmp_path, batch_size=1, hard_negatives=0, loss=DPR)
    with pytest.raises(ValueError, match=r"keep: best needs validation questions, and there are none"):
        train(toy, tmp_path, keep="best", validation_questions=0)
    spoilt = toys.write_all(tmp_path / "own")
    tables.write(spoilt / "examples/distractors.parquet", Distractor, [])
    with pytest.raises(ValueError, match=r"holds no distractors, but the loss needs them"):
        train(spoilt, tmp_path)
    with pytest.raises(ValueError, match="holds no placebos, but the loss needs them"):
        train(toy, tmp_path, loss=DPR.model_copy(update={"placebo": 0.5}))
    tables.write(spoilt / "examples/examples.parquet", Example, [])
    with pytest.raises(ValueError, match="no training examples"):
        train(spoilt, tmp_path)


def test_the_reference_form_trains_without_masks(toy, tmp_path):
    reference = Loss.model_validate(PLAIN | {"form": "reference", "lambda": 0.2, "tau1": 1.0, "tau2": 1.0})
    train(toy, tmp_path, loss=reference, steps=3)
    assert series(tmp_path, "train/masked") == [0.0] * 3
    total, *parts = (series(tmp_path, f"train/{n}") for n in ("loss", "dpr", "hn", "pp", "plain"))
    assert total == pytest.approx([sum(p) for p in zip(*parts, strict=True)], rel=1e-5)


@pytest.fixture
def mixture(tmp_path):
    """Five of the 15 training questions are in small/train, the others in large/train; one of each in both."""
    toys.write_all(tmp_path)
    trained = [i for i in range(len(NAMES)) if i % 4 != 3]
    members = [SetMember("small" if n < 5 else "large", "train", f"q{i}") for n, i in enumerate(trained)]
    members += [SetMember("both", "train", f"q{trained[n]}") for n in (0, 5)]
    members += [SetMember("small", "train", f"q{i}") for i in range(3, len(NAMES), 8)]  # of validation
    tables.write(tmp_path / "records" / "question_sets.parquet", SetMember, members)
    return tmp_path


@pytest.mark.parametrize(("upsample", "questions", "per_epoch"), [
    ({"small/train": 4}, 15, 4 * 5 + 10), ({"small/train": 0}, 10, 10), ({"small/train": 0, "large/train": 2}, 10, 20),
    ({"small/train": 0, "both/train": 3}, 11, 3 + 3 + 9), ({"small/train": 2, "others": 0}, 5, 2 * 5),
    ({"both/train": 1, "others": 3}, 15, 2 + 3 * 13),
])  # fmt: skip
def test_an_epoch_asks_the_sets_as_often_as_it_should(mixture, tmp_path, upsample, questions, per_epoch):
    steps = train(mixture, tmp_path / "out", loss=DPR, steps=None, batch_size=8, upsample=upsample)
    metrics = json.loads((tmp_path / "out" / "log" / "metrics.json").read_text())
    assert (metrics["questions"], metrics["questions_per_epoch"]) == (questions, per_epoch)
    assert steps == per_epoch // min(8, questions)


def test_sets_without_a_question_left_and_unknown_ones_are_refused(mixture, tmp_path):
    for upsample, message in (
        ({"others": 0}, r"no training examples \(train\.upsample {'others': 0}\)"),
        ({"smal/train": 4}, "'smal/train' is not in"),
    ):
        with pytest.raises(ValueError, match=message):
            train(mixture, tmp_path / "out", loss=DPR, upsample=upsample)


@pytest.mark.parametrize("name", ["small", "own"])
def test_a_validation_set_is_validated_with_whatever_is_trained_on(mixture, name):
    """small/train alone is trained on; the validation questions are of that set too, or of one of their own."""
    members = tables.rows(mixture / "records/question_sets.parquet", SetMember)
    rows = [row for row in members if int(row.question_id[1:]) % 4 != 3]
    rows += [SetMember(name, "train", f"q{i}") for i in range(3, len(NAMES), 4)]
    tables.write(mixture / "records/question_sets.parquet", SetMember, rows)
    store = PassageStore(mixture / "records/passages.parquet")
    upsample = {"small/train": 1, "others": 0}
    examples = read_examples(mixture / "examples", mixture / "records", store, "validation", DPR, upsample)
    assert examples.question_ids == [f"q{i}" for i in range(3, len(NAMES), 4)]


def test_the_weights_do_not_depend_on_the_threads_unless_units_are_dropped(toy, tmp_path, monkeypatch):
    monkeypatch.setitem(forward.TOKENS, "cpu", 60)
    for threads in (1, 2):
        torch.set_num_threads(threads)
        train(toy, tmp_path / str(threads), steps=5, batch_size=8, dropout=0.0, attention_dropout=0.0)
    first, second = (files.tree_sha256(tmp_path / threads / "model") for threads in ("1", "2"))
    assert first == second
    for run in ("a", "b"):
        torch.set_num_threads(2)
        train(toy, tmp_path / run, steps=5, batch_size=8, dropout=0.2)
    assert files.tree_sha256(tmp_path / "a" / "model") == files.tree_sha256(tmp_path / "b" / "model")
