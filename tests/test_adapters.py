"""LoRA by peft, and activations computed again: gradients, files, kills and refusals."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file

from eadpr.runtime import machine
from eadpr.training import arm, config, contrastive
from eadpr.training.arm import ArmInputs, ArmSettings, train_arm
from eadpr.training.config import Lora, Train
from eadpr.training.encoder import Encoders, load_pair, pretrained
from tests.killed import assert_goes_on
from tests.training_toy import EADPR, MACHINE, SETTINGS, TRAIN, batcher_of

pytestmark = pytest.mark.usefixtures("one_thread")

LORA = Lora(rank=2, alpha=6.0, dropout=0.0, modules="auto")
LOW = MACHINE.model_copy(update={"precision": "bfloat16"})
LAYER = "encoder.layer.0"
FILES = ["adapter_config.json", "adapter_model.safetensors"]


def train(toy: Path, out: Path, *, shared=False, lora=LORA, **changes) -> int:
    inputs = ArmInputs(toy / "records", toy / "examples", toy / "base")
    settings = SETTINGS.model_copy(update={"shared": shared})
    sections = ArmSettings(EADPR, TRAIN.model_copy(update={"lora": lora} | changes), settings, MACHINE)
    return train_arm(inputs, out / "model", out / "log", sections)


def encoders_of(toy: Path, hardware=MACHINE, **changes) -> Encoders:
    encoders = load_pair(toy / "base", SETTINGS.model_copy(update={"shared": True}))
    return arm.prepare_encoders(encoders, ArmSettings(EADPR, TRAIN.model_copy(update=changes), SETTINGS, hardware))


def gradients(toy: Path, encoders: Encoders, hardware=MACHINE, **changes) -> list[torch.Tensor]:
    """Return those of the weights that learn, from one batch."""
    sections = ArmSettings(EADPR, TRAIN.model_copy(update=changes), SETTINGS, hardware)
    encoders.passage.train()
    torch.manual_seed(5)
    contrastive.add_gradient(encoders, batcher_of(toy).sampled(0, size=8, seed=3), sections)
    computed = [weight.grad for weight in encoders.passage.parameters() if weight.requires_grad]
    assert any(gradient is not None and gradient.abs().sum() > 0 for gradient in computed)
    return computed


@pytest.mark.parametrize("shared", [True, False])
def test_merged_weights_are_the_bases_plus_scaled_products_of_the_adapters(toy, tmp_path, shared):
    train(toy, tmp_path, shared=shared, steps=3)
    for side in ("question_encoder", "passage_encoder"):
        folder = tmp_path / "model" / side
        base, merged = (load_file(path / side / "model.safetensors") for path in (toy / "base", tmp_path / "model"))
        learnt = load_file(folder / "adapters" / "adapter_model.safetensors")
        assert sorted(path.name for path in (folder / "adapters").iterdir()) == FILES
        changed = 0
        for name, weight in base.items():
            key = f"base_model.model.{name.removesuffix('.weight')}"
            if f"{key}.lora_A.weight" in learnt:
                a, b = (learnt.pop(f"{key}.lora_{letter}.weight") for letter in "AB")
                assert (a.shape[0], b.shape[1]) == (2, 2)
                assert b.abs().sum() > 0
                weight = weight + 3.0 * b @ a  # alpha / rank
                changed += 1
            torch.testing.assert_close(merged[name], weight, atol=1e-7, rtol=1e-6)
        assert (changed, learnt) == (6, {}), "the linear layers of one BERT layer"
        written = json.loads((folder / "adapters" / "adapter_config.json").read_text())
        assert written["target_modules"] == sorted(written["target_modules"])


def test_only_named_layers_get_adapters_and_a_frozen_encoder_gets_none(toy, tmp_path):
    lora = LORA.model_copy(update={"modules": ["query", "output.dense"]})
    train(toy, tmp_path, lora=lora, steps=2, freeze="question")
    learnt = load_file(tmp_path / "model" / "passage_encoder" / "adapters" / "adapter_model.safetensors")
    layers = {name.removeprefix(f"base_model.model.{LAYER}.").partition(".lora_")[0] for name in learnt}
    assert layers == {"attention.self.query", "attention.output.dense", "output.dense"}
    assert not (tmp_path / "model" / "question_encoder" / "adapters").exists()
    same = [folder / "question_encoder" / "model.safetensors" for folder in (toy / "base", tmp_path / "model")]
    assert same[0].read_bytes() == same[1].read_bytes()


@pytest.mark.parametrize(("keep", "at"), [("best", 3), ("last", 4)])
def test_a_training_with_adapters_that_died_ends_with_the_same_bytes(toy, tmp_path, monkeypatch, keep, at):
    lora = LORA.model_copy(update={"dropout": 0.2})

    def run(out: Path) -> None:
        train(toy, out, lora=lora, steps=5, keep=keep, validate_every=2)

    assert_goes_on(run, "train", at=at, steps=5, folder=tmp_path, monkeypatch=monkeypatch)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("tokens", [None, 60])
@pytest.mark.parametrize("lora", [None, LORA])
def test_gradients_with_activations_computed_again_are_those_of_the_plain_step(toy, dropout, tokens, lora):
    torch.set_num_threads(2)  # pieces side by side, but where units are dropped; put back by `one_thread`
    changes = {"gradient_cache": tokens, "dropout": dropout, "attention_dropout": dropout, "lora": lora}
    plain, again = (
        gradients(toy, encoders_of(toy, gradient_checkpointing=checkpointing, **changes), **changes)
        for checkpointing in (False, True)
    )
    torch.testing.assert_close(again, plain, atol=1e-6, rtol=1e-5)


def test_frozen_weights_in_bfloat16_give_the_gradients_of_autocast(toy, monkeypatch):
    low = encoders_of(toy, LOW, lora=LORA)
    monkeypatch.setattr(machine, "place_model", lambda part, _: part)
    high = encoders_of(toy, LOW, lora=LORA)
    for encoders in (low, high):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            for name, weight in encoders.passage.named_parameters():
                if "lora_B" in name:
                    torch.nn.init.normal_(weight, std=0.1)
    kinds = [{name: w.dtype for name, w in each.passage.model.named_parameters()} for each in (low, high)]
    half = {name for name, kind in kinds[0].items() if kind == torch.bfloat16}
    assert half == {name for name in kinds[0] if ".base_layer." in name}
    assert set(kinds[1].values()) == {torch.float32}
    found, expected = (gradients(toy, encoders, LOW) for encoders in (low, high))
    assert {gradient.dtype for gradient in found} == {torch.float32}
    torch.testing.assert_close(found, expected, atol=0, rtol=0)


def test_a_layer_that_is_not_there_and_a_model_that_keeps_its_activations_are_named(toy, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"^train\.lora\.modules: .*'q_proj' is none of .*: dense, key, query, value$"):
        train(toy, tmp_path, lora=LORA.model_copy(update={"modules": ["query", "q_proj"]}))
    monkeypatch.setattr("transformers.BertModel.supports_gradient_checkpointing", False)
    with pytest.raises(ValueError, match=r"^train\.gradient_checkpointing: a BertModel has none"):
        train(toy, tmp_path, gradient_checkpointing=True)
    assert not list(tmp_path.iterdir())


def test_without_peft_the_setting_is_refused(monkeypatch):
    monkeypatch.setattr(config, "find_spec", lambda _: None)
    values = TRAIN.model_dump() | {"lora": LORA.model_dump()}
    with pytest.raises(ValidationError, match=r"lora\n.*peft.*pip install -r requirements/lora\.txt"):
        Train(**values)
    Train(**values | {"lora": None})


@pytest.mark.parametrize("whole", [False, True])
def test_adapters_are_no_encoder(toy, tmp_path, whole):
    """Nor are they with weights of their base around them: transformers would add them only where peft is installed."""
    train(toy, tmp_path, steps=1)
    folder = tmp_path / "model" / "passage_encoder" / "adapters"
    if whole:
        folder = Path(shutil.copytree(toy / "base" / "passage_encoder", tmp_path / "whole"))
        shutil.copytree(tmp_path / "model" / "passage_encoder" / "adapters", folder, dirs_exist_ok=True)
    with pytest.raises(ValueError, match=r"^base\.model '.*' holds adapters \(adapter_config\.json\); merge them"):
        pretrained(str(folder), setting="base.model")
