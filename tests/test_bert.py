"""Our BERT and RoBERTa compute the states and gradients of transformers', and read and write its folders."""

import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModel, BertConfig, BertModel, RobertaConfig, RobertaModel

from eadpr.training.bert import Bert, computes

SIZES = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 24, "max_position_embeddings": 12, "type_vocab_size": 2, "pad_token_id": 1}
KINDS = {"bert": (BertConfig, BertModel), "roberta": (RobertaConfig, RobertaModel)}
IDS = torch.tensor([[2, 1, 7, 3], [2, 9, 3, 1]])  # a text may name the token of padding, 1
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
TYPES = torch.tensor([[0, 0, 1, 1], [0, 1, 1, 0]])


@pytest.fixture(params=KINDS)
def folder(request, tmp_path):
    torch.manual_seed(0)
    config, model = KINDS[request.param]
    model(config(**SIZES), add_pooling_layer=False).save_pretrained(tmp_path)
    return tmp_path


def load(folder) -> Bert:
    return Bert.load(folder, AutoConfig.from_pretrained(folder))


@pytest.mark.parametrize("inputs", [(IDS, MASK), (IDS[:1], None), (IDS[:1], MASK[:1]), (IDS, MASK, TYPES)])
def test_states_and_gradients_are_those_of_transformers(folder, inputs):
    theirs, ours = AutoModel.from_pretrained(folder, add_pooling_layer=False), load(folder)
    mask = torch.ones_like(inputs[0]) if inputs[1] is None else inputs[1]
    for model in (theirs, ours):
        names = ("input_ids", "attention_mask", "token_type_ids")
        states = model(**dict(zip(names, inputs, strict=False))).last_hidden_state[mask.bool()]
        (states * torch.arange(16)).square().sum().backward()
        model.states = states.detach()
    torch.testing.assert_close(ours.states, theirs.states, rtol=0, atol=2e-6)
    expected = {name: weight.grad for name, weight in theirs.named_parameters()}
    assert dict(ours.named_parameters()).keys() == expected.keys()
    for name, weight in ours.named_parameters():
        torch.testing.assert_close(weight.grad, expected[name], rtol=1e-4, atol=1e-2, msg=name)


def test_states_are_bfloat16_in_its_passes_and_gradients_are_of_float32_weights(folder):
    model = load(folder)
    expected = model(IDS, MASK).last_hidden_state
    with torch.autocast("cpu", dtype=torch.bfloat16):
        states = model(IDS, MASK).last_hidden_state
    assert states.dtype == torch.bfloat16
    torch.testing.assert_close(states.float(), expected, rtol=0, atol=0.06)
    states.float().square().sum().backward()
    assert {weight.grad.dtype for weight in model.parameters()} == {torch.float32}


def test_a_model_is_written_as_transformers_does(folder, tmp_path):
    contents = {name: (folder / name).read_bytes() for name in ("config.json", "model.safetensors")}
    load(folder).save_pretrained(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in contents} == contents


@pytest.mark.parametrize("change", [{"hidden_act": "relu"}, {"is_decoder": True}, {"model_type": "distilbert"}])
def test_what_it_does_not_compute_is_left_to_transformers(folder, change):
    config = AutoConfig.from_pretrained(folder)
    assert computes(config)
    if "model_type" in change:
        config = AutoConfig.for_model("distilbert")
    config.update({key: value for key, value in change.items() if key != "model_type"})
    assert not computes(config)
    assert Bert.load(folder, config) is None


def test_weights_that_are_not_just_the_models_are_left_to_transformers(folder):
    config = AutoConfig.from_pretrained(folder)
    config.num_hidden_layers = 3
    assert Bert.load(folder, config) is None
    assert len(load_file(folder / "model.safetensors")) == len(list(load(folder).parameters()))


def test_training_imports_no_models_of_transformers():
    code = "import sys, eadpr.training.arm; sys.exit('transformers.modeling_utils' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
